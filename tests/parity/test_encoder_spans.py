"""Vectors of spans from the pass that encodes their text, against the oracle on small random models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import small_model
from tests.oracles import encoder as plain
from tests.parity.test_encoder import EXACT, FLOATS, MODES, ids, words

from ketrag_fast.errors import InputError
from ketrag_fast.kernels.encoder import Encoder, kernels

Spans = list[tuple[int, int]]


def spans_of(text: str, counts: list[int]) -> Spans:
    """Spans of so many words each, with the blank between two of them in neither."""
    found, at = [], 0
    starts = [0, *(i + 1 for i, c in enumerate(text) if c == " ")]
    for count in counts:
        last = starts[at + count] - 1 if at + count < len(starts) else len(text)
        found.append((starts[at], last))
        at += count
    return found


def want(sizes: dict[str, Any], folder: Path, text: str, rows: list[tuple[int, int]]) -> np.ndarray[Any, Any]:
    """The mean of the token vectors in rows of a window, at length 1."""
    weights = plain.read_safetensors(folder / "model.safetensors")
    vectors = plain.token_vectors(sizes, weights, ids(text))
    return np.array([plain.unit(vectors[first:last].mean(0)) for first, last in rows])


@pytest.mark.parametrize("kernel", FLOATS)
@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "mpnet"])
def test_a_span_is_the_mean_of_its_tokens(tmp_path: Path, family: str, kernel: str) -> None:
    sizes = small_model.config(family)
    folder = small_model.save(tmp_path, sizes)
    text = words(20, 3)
    expected = want(sizes, folder, text, [(1, 6), (6, 7), (7, 21)])
    own = kernel if kernel in EXACT else "auto"
    encoder = Encoder.open(folder, precision="f32", kernel=own)
    found = encoder.encode_spans([text, "w1"], [spans_of(text, [5, 1, 14]), []])
    assert np.abs(found.spans - expected).max() < 5e-6
    np.testing.assert_array_equal(found.vectors, encoder.encode([text, "w1"]))
    low = Encoder.open(folder, precision="bf16", kernel=kernel).encode_spans(
        [text], [spans_of(text, [5, 1, 14])]
    )
    assert (low.spans * expected).sum(1).min() > 0.999


@pytest.mark.parametrize("mode", MODES)
def test_pooling_of_the_text_does_not_matter_if_it_is_one_token(tmp_path: Path, mode: str) -> None:
    """With the first or the last token as the text's vector, a span still takes the mean of its own."""
    sizes = small_model.config()
    folder = small_model.save(tmp_path, sizes, pooling=(mode,))
    text = words(9, 1)
    found = Encoder.open(folder, precision="f32").encode_spans([text], [spans_of(text, [4, 5])])
    weights = plain.read_safetensors(folder / "model.safetensors")
    vectors = plain.token_vectors(sizes, weights, ids(text))
    own = "mean_tokens" if mode in ("cls_token", "lasttoken") else mode
    expected = [plain.unit(plain.pool(vectors[a:b], own)) for a, b in ((1, 5), (5, 10))]
    assert np.abs(found.spans - expected).max() < 5e-6


def test_a_span_over_two_windows_takes_the_one_with_more_of_it(tmp_path: Path) -> None:
    sizes = small_model.config(max_position_embeddings=12)  # ten words in a window
    folder = small_model.save(tmp_path, sizes)
    text = words(20, 5)
    first, second = " ".join(text.split()[:10]), " ".join(text.split()[10:])
    found = Encoder.open(folder, precision="f32").encode_spans([text], [spans_of(text, [7, 5, 8])])
    expected = [
        *want(sizes, folder, first, [(1, 8), (8, 11)]),  # three of five words are in the first window
        *want(sizes, folder, second, [(3, 11)]),
    ]
    assert found.more == 1
    assert np.abs(found.spans - expected).max() < 5e-6
    # Two words in each: the first window.
    found = Encoder.open(folder, precision="f32").encode_spans([text], [spans_of(text, [8, 4, 8])])
    assert np.abs(found.spans[1] - want(sizes, folder, first, [(9, 11)])[0]).max() < 5e-6


def test_prompts_are_context_and_blanks_around_a_text_move_nothing(tmp_path: Path) -> None:
    sizes = small_model.config()
    folder = small_model.save(tmp_path, sizes)
    encoder = Encoder.open(folder, precision="f32")
    text = words(6, 2)
    expected = want(sizes, folder, "w7 " + text, [(2, 5), (5, 8)])
    spans = spans_of(text, [3, 3])
    found = encoder.encode_spans([text], [spans], prompt="w7 ")
    assert np.abs(found.spans - expected).max() < 5e-6
    moved = [(start + 3, end + 3) for start, end in spans]
    shifted = encoder.encode_spans([f" \n {text}  "], [moved], prompt="w7 ")
    np.testing.assert_array_equal(shifted.spans, found.spans)


def test_lower_case_may_have_other_offsets(tmp_path: Path) -> None:
    """`do_lower_case` changes the length of a letter: the offsets are still those of the text."""
    sizes = small_model.config()
    folder = small_model.save(tmp_path, sizes)
    (folder / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    text = "İİİ W1 w2 W3"  # each of the three letters has two bytes, and three in lower case
    start = len("İİİ W1 ".encode())
    found = Encoder.open(folder, precision="f32").encode_spans([text], [[(0, start - 1), (start, start + 5)]])
    expected = want(sizes, folder, "never w1 w2 w3", [(1, 3), (3, 5)])
    assert np.abs(found.spans - expected).max() < 5e-6


@pytest.mark.parametrize("precision", ["f32", "bf16", "int8"])
def test_spans_have_the_same_bits_in_any_company(tmp_path: Path, precision: str) -> None:
    sizes = small_model.config(max_position_embeddings=40)
    folder = small_model.save(tmp_path, sizes)
    texts = [words(n, n) for n in (30, 3, 50, 12, 1)] * 20
    spans = [spans_of(text, [1] * len(text.split())) for text in texts]
    encoder = Encoder.open(folder, precision=precision)
    every = encoder.encode_spans(texts, spans, threads=2)
    for threads in (1, 3):
        np.testing.assert_array_equal(encoder.encode_spans(texts, spans, threads=threads).spans, every.spans)
    np.testing.assert_array_equal(encoder.encode_spans(texts[2:3], spans[2:3]).spans, every.spans[33:83])
    assert np.abs((every.spans.astype(np.float64) ** 2).sum(1) - 1).max() < 1e-6


def test_int8_has_the_same_bits_with_every_kernel(tmp_path: Path) -> None:
    folder = small_model.save(tmp_path, small_model.config(hidden_size=48))
    texts = [words(n, n) for n in (30, 3, 12)]
    spans = [spans_of(text, [1, 2]) for text in texts]
    found = [
        Encoder.open(folder, precision="int8", kernel=kernel).encode_spans(texts, spans).spans
        for kernel in kernels()
        if kernel != "avx512-bf16"
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other.view(np.uint32), found[0].view(np.uint32))


def test_empty_texts_and_spans_without_tokens_are_zero(tmp_path: Path) -> None:
    folder = small_model.save(tmp_path, small_model.config())
    texts = ["", "  ", "w1 w2"]
    found = Encoder.open(folder, precision="f32").encode_spans(texts, [[(0, 0)], [(0, 2)], [(2, 3), (0, 2)]])
    assert not found.spans[:3].any()
    assert found.spans[3].any()


def test_wrong_spans_are_refused(tmp_path: Path) -> None:
    encoder = Encoder.open(small_model.save(tmp_path, small_model.config()), precision="f32")
    for spans in ([[(0, 3)]], [[(2, 1)]], [[(-1, 1)]], [[(0, 2**32)]]):
        with pytest.raises(InputError):
            encoder.encode_spans(["w1"], spans)
    with pytest.raises(InputError, match="equal length"):
        encoder.encode_spans(["w1"], [])
