"""The native cross-encoder against `transformers` on small random models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import cross_encoder, small_model
from tests.support.parts import part

from ketrag_fast.kernels.encoder import KERNEL_VARIABLE, kernels
from ketrag_fast.models.cross_encoders import CrossEncoder

transformers = part("transformers", "embed")
torch = part("torch", "embed")


def words(n: int, seed: int) -> str:
    return " ".join(f"w{i}" for i in np.random.default_rng(seed).integers(0, small_model.WORDS, n))


def expected(folder: Path, question: str, texts: list[str], longest: int) -> np.ndarray[Any, Any]:
    model = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
    assert model.config.num_labels == 1
    tokeniser = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        pad_token="[PAD]",
        model_max_length=longest,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    found = []
    for text in texts:  # one at a time: no padding
        pair = tokeniser(question, text, truncation="longest_first", max_length=longest, return_tensors="pt")
        with torch.no_grad():
            found.append(
                model(input_ids=pair["input_ids"], token_type_ids=pair["token_type_ids"]).logits[0, 0].item()
            )
    return np.array(found)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("threads", [1, 2])
def test_scores_are_those_of_transformers(tmp_path: Path, seed: int, threads: int) -> None:
    folder = cross_encoder.save(tmp_path, seed=seed, max_position_embeddings=64, num_hidden_layers=3)
    # Pairs that fit, pairs that are cut (in the text, in the question, in both), one word, unknown words.
    for question in (words(5, seed), words(40, seed), words(90, seed)):
        texts = [words(n, n + seed) for n in (1, 2, 7, 20, 31, 55, 60, 200)] + ["never seen", "w1"]
        want = expected(folder, question, texts, 64)
        assert np.ptp(want) > 0.1, "the model tells texts apart"
        exact = CrossEncoder(f"native:{folder}", precision="fp32", threads=threads)
        assert exact.precision == "f32"
        got = exact.scores(question, texts)
        assert np.abs(got - want).max() < 2e-5 * (1 + np.abs(want).max())
        low = CrossEncoder(f"native:{folder}", precision="bf16", threads=threads).scores(question, texts)
        assert 0 < np.abs(low - got).max() < 0.1 * np.ptp(want)
        # A number depends on its pair alone.
        assert np.array_equal(exact.scores(question, texts[3:5]), got[3:5])


def case(folder: Path) -> tuple[Path, str, list[str], np.ndarray[Any, Any]]:
    """A model in `folder`, a question, texts, and the scores that transformers gives them."""
    cross_encoder.save(folder, max_position_embeddings=64, num_hidden_layers=3)
    question, texts = words(5, 2), [words(n, n) for n in (1, 7, 20, 31, 55, 200)]
    return folder, question, texts, expected(folder, question, texts, 64)


PAIRS = [kernel for kernel in kernels() if not kernel.endswith("-vnni")]
"""Kernels that compute in f32 or bf16."""


@pytest.mark.parametrize("kernel", PAIRS)
def test_every_kernel_has_the_scores_of_transformers(
    tmp_path: Path, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, question, texts, want = case(tmp_path)
    monkeypatch.setenv(KERNEL_VARIABLE, "portable")
    emulated = CrossEncoder(f"native:{folder}", precision="bf16").scores(question, texts)
    monkeypatch.setenv(KERNEL_VARIABLE, kernel)
    if kernel not in ("amx", "avx512-bf16"):
        exact = CrossEncoder(f"native:{folder}", precision="fp32")
        assert (exact.kernel, exact.precision) == (kernel, "f32")
        assert np.abs(exact.scores(question, texts) - want).max() < 2e-5 * (1 + np.abs(want).max())
    low = CrossEncoder(f"native:{folder}", precision="bf16")
    assert (low.kernel, low.precision) == (kernel, "bf16")
    scores = low.scores(question, texts)
    assert np.abs(scores - want).max() < 0.1 * np.ptp(want)
    assert np.array_equal(low.scores(question, texts[2:4]), scores[2:4])
    # `vdpbf16ps` adds in another order; all other kernels repeat the arithmetic of the tiles.
    assert np.array_equal(scores, emulated) == (kernel != "avx512-bf16")


@pytest.mark.parametrize("kernel", [kernel for kernel in kernels() if kernel != "avx512-bf16"])
def test_int8_is_close_and_has_the_same_bits_with_every_kernel(
    tmp_path: Path, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, question, texts, want = case(tmp_path)
    monkeypatch.setenv(KERNEL_VARIABLE, "portable")
    portable = CrossEncoder(f"native:{folder}", precision="int8").scores(question, texts)
    monkeypatch.setenv(KERNEL_VARIABLE, kernel)
    model = CrossEncoder(f"native:{folder}", precision="int8")
    assert (model.kernel, model.precision) == (kernel, "int8")
    scores = model.scores(question, texts)
    assert 0 < np.abs(scores - want).max() < 0.1 * np.ptp(want)
    assert np.array_equal(model.scores(question, texts[2:4]), scores[2:4])
    assert np.array_equal(scores, portable)


def test_int8_is_used_only_if_it_is_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cross_encoder.save(tmp_path)
    monkeypatch.delenv(KERNEL_VARIABLE, raising=False)
    assert CrossEncoder(f"native:{folder}").precision in ("f32", "bf16")
    assert CrossEncoder(f"native:{folder}", precision="int8").precision == "int8"
    for kernel in kernels():
        monkeypatch.setenv(KERNEL_VARIABLE, kernel)
        assert CrossEncoder(f"native:{folder}").precision in ("f32", "bf16")
