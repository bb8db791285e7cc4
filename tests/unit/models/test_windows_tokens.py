"""Windows, averages, batches and the shared half of embedders, with no model at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.errors import BackendError, Cancelled
from ketrag_fast.models.embedders.batching import Piece, average, batches, pad_rows, spans
from ketrag_fast.models.embedders.protocol import Embedder, Engine, Role, windows_of


class Plain(Embedder):
    """Vectors from the letters; `raw` changes what the model gives."""

    def __init__(self, raw: Callable[[np.ndarray], np.ndarray] = lambda x: x) -> None:
        super().__init__()
        self.spec, self.dimension, self.longest, self.fingerprint = "plain:", 5, None, "f" * 32
        self.engine = Engine("plain", "1", "cpu", "fp32", 1.0)
        self.raw = raw
        self.windows: list[int] = []

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def _encode(self, texts: Sequence[str], role: Role, tick: Callable[[int], None]) -> Any:
        self.windows.append(len(texts))
        tick(sum(self.count(texts)))
        rows = [[1 + text.count(letter) for letter in "aeiou"] for text in texts]
        return self.raw(np.asarray(rows, np.float32))


@given(st.integers(0, 5000), st.integers(1, 300))
def test_spans_cover_all_tokens_in_the_fewest_even_windows(tokens: int, longest: int) -> None:
    cuts = spans(tokens, longest)
    assert cuts[0][0] == 0 and cuts[-1][1] == tokens
    assert all(a[1] == b[0] for a, b in pairwise(cuts))
    sizes = [end - start for start, end in cuts]
    assert max(sizes) <= longest and max(sizes) - min(sizes) <= 1
    assert len(cuts) == max(1, -(-tokens // longest))


def test_average_is_weighted_by_tokens_and_leaves_single_windows_alone() -> None:
    pieces = np.array([[3.0, 0.0], [2.0, 0.0], [0.0, 5.0]], np.float32)
    out = average(pieces, [0, 1, 1], [7, 3, 1], 2)
    assert out[0].tolist() == [3.0, 0.0]
    assert np.allclose(out[1], [3.0, 1.0])  # directions count, not the windows' lengths


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80), st.integers(1, 200))
def test_batches_take_each_piece_once_and_keep_to_the_padded_size(lengths: list[int], most: int) -> None:
    pieces = [Piece(number, [1] * length, length) for number, length in enumerate(lengths)]
    groups = list(batches(pieces, most))
    assert sorted(n for group in groups for n in group) == list(range(len(lengths)))
    for group in groups:
        padded_size = len(group) * max(lengths[n] for n in group)
        assert padded_size <= most or len(group) == 1
    ordered = [lengths[n] for group in groups for n in group]
    assert ordered == sorted(ordered, reverse=True)


def test_padding_on_either_side() -> None:
    ids, mask = pad_rows([[5, 6, 7], [8]], 9, left=False)
    assert ids.tolist() == [[5, 6, 7], [8, 9, 9]] and mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    ids, mask = pad_rows([[5, 6, 7], [8]], 9, left=True)
    assert ids.tolist() == [[5, 6, 7], [9, 9, 8]] and mask.tolist() == [[1, 1, 1], [0, 0, 1]]


@given(st.lists(st.text(max_size=30), max_size=60), st.integers(1, 7), st.integers(1, 50))
def test_windows_are_consecutive_and_bounded(texts: list[str], most: int, chars: int) -> None:
    windows = list(windows_of(iter(texts), most, chars))
    assert [text for window in windows for text in window] == texts
    for window in windows:
        assert 1 <= len(window) <= most
        assert sum(map(len, window)) <= chars or len(window) == 1


def test_vectors_have_length_one_and_empty_texts_are_zero_and_counted() -> None:
    plain = Plain()
    vectors = plain.embed(["alpha", "", " \n\t", "omega"])
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 1], atol=1e-6)
    assert (plain.tally.texts, plain.tally.empty, plain.windows) == (4, 2, [2])
    assert plain.embed([]).shape == (0, 5)


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (lambda x: np.where(np.arange(len(x))[:, None] == 1, np.nan, x), "NaN"),
        (lambda x: np.where(np.arange(len(x))[:, None] == 1, np.inf, x), "infinity"),
        (lambda x: np.where(np.arange(len(x))[:, None] == 1, 0, x), "zero vector"),
    ],
)
def test_no_vector_is_an_error_that_names_the_text(raw: Any, word: str) -> None:
    with pytest.raises(BackendError, match=word) as caught:
        Plain(raw).embed(["first", " ", "the culprit", "third"])
    assert "text 2 ('the culprit')" in str(caught.value)


def test_a_wrong_shape_is_an_error() -> None:
    with pytest.raises(BackendError, match="shape"):
        Plain(lambda x: x[:, :4]).embed(["a"])
    with pytest.raises(BackendError, match="shape"):
        Plain(lambda x: x[:-1]).embed(["a", "b"])


def test_progress_counts_tokens_and_either_way_of_stopping_works() -> None:
    texts = ["one two three " * 500] * 60  # several windows
    seen: list[tuple[int, int | None]] = []
    Plain().embed(texts, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == 60 * 1500 and len(seen) > 2
    assert seen[0][1] is None and seen[-1][1] == 60 * 1500
    with pytest.raises(Cancelled):
        Plain().embed(texts, progress=lambda done, total: False)
    plain = Plain()
    with pytest.raises(Cancelled):
        plain.embed(texts, cancel=lambda: len(plain.windows) == 1)
    assert len(plain.windows) == 1


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="role"):
        Plain().embed(["a"], "passage")  # type: ignore[arg-type]
