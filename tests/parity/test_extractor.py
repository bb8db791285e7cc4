"""Extractive answers against `transformers` on small random models: the same windows, spans and scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import extractive_model, small_model
from tests.support.parts import part

from ketrag_fast.kernels.encoder import KERNEL_VARIABLE, kernels
from ketrag_fast.models.cross_encoders import Extractor, SpanScores

transformers = part("transformers", "embed")
torch = part("torch", "embed")

LONGEST = 48
ANSWER = 30
"""Maximum tokens of a span."""


def words(n: int, seed: int) -> str:
    return " ".join(f"w{i}" for i in np.random.default_rng(seed).integers(0, small_model.WORDS, n))


def load(folder: Path, family: str) -> tuple[Any, Any]:
    """Return the model and the tokeniser of transformers."""
    kind = f"{extractive_model.CLASS[family]}ForQuestionAnswering"
    tokeniser = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]", model_max_length=LONGEST
    )
    return getattr(transformers, kind).from_pretrained(folder).eval(), tokeniser


def expected(loaded: tuple[Any, Any], family: str, question: str, text: str) -> tuple[str, float, float]:
    """Return span, score and score of no answer: the best of the windows that transformers makes."""
    model, tokeniser = loaded
    asked = " ".join(question.split()[: (LONGEST - 3) // 2])  # a word is a token
    room = LONGEST - 3 - len(asked.split())
    windows = tokeniser(
        asked,
        text,
        truncation="only_second",
        max_length=LONGEST,
        stride=room // 2,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_token_type_ids=True,
    )
    best, none = ("", -np.inf), np.inf
    for at, ids in enumerate(windows["input_ids"]):
        given: dict[str, Any] = {"input_ids": torch.tensor([ids])}
        if family == "bert":
            given["token_type_ids"] = torch.tensor([windows["token_type_ids"][at]])
        with torch.no_grad():
            out = model(**given)
        starts, ends = out.start_logits[0].numpy(), out.end_logits[0].numpy()
        none = min(none, float(starts[0] + ends[0]))
        own, offsets = np.array(windows.sequence_ids(at)) == 1, windows["offset_mapping"][at]
        i, j = np.indices((len(own), len(own)))
        allowed = own[:, None] & own[None, :] & (i <= j) & (j < i + ANSWER)
        scores = np.where(allowed, starts[:, None] + ends[None, :], -np.inf)
        first, last = np.unravel_index(np.argmax(scores), scores.shape)  # of equal spans the first
        if scores[first, last] > best[1]:
            best = text[offsets[first][0] : offsets[last][1]], float(scores[first, last])
    return *best, none


def check(found: SpanScores, texts: list[str], wanted: list[tuple[str, float, float]], close: float) -> None:
    for i, (text, (span, score, none)) in enumerate(zip(texts, wanted, strict=True)):
        assert found.scores[i] == pytest.approx(score, abs=close)
        assert found.none[i] == pytest.approx(none, abs=close)
        if close < 0.01:
            assert text[int(found.starts[i]) : int(found.ends[i])] == span


QUESTIONS = (words(5, 1), words(30, 2), words(90, 3))
# One window, a full one, several, many; blanks around words; characters of several bytes; unknown words.
TEXTS = [
    *(words(n, n) for n in (1, 2, 20, 31, 55, 200)),
    "  w1\n w2   w3 ",
    "ünbekannt w1 🙂 w2",
    "w7",
]


@pytest.mark.parametrize("family", sorted(extractive_model.CLASS))
def test_spans_are_those_of_transformers(tmp_path: Path, family: str) -> None:
    folder = extractive_model.save(tmp_path, family, max_position_embeddings=50, num_hidden_layers=3)
    (folder / "tokenizer_config.json").write_text(f'{{"model_max_length": {LONGEST}}}')
    model = Extractor(f"native:{folder}", threads=2)
    assert model.precision == "f32"
    loaded = load(folder, family)
    for question in QUESTIONS:
        wanted = [expected(loaded, family, question, text) for text in TEXTS]
        assert np.ptp([score for _, score, _ in wanted]) > 0.1, "the model tells texts apart"
        found = model.spans(question, TEXTS)
        check(found, TEXTS, wanted, 1e-4)
        assert found.is_cut == (len(question.split()) > (LONGEST - 3) // 2)
        # A result depends only on its text and the question.
        some = model.spans(question, TEXTS[3:6], threads=1)
        assert np.array_equal(some.scores, found.scores[3:6])
        assert np.array_equal(some.starts, found.starts[3:6])


@pytest.mark.parametrize("kernel", [kernel for kernel in kernels() if not kernel.endswith("-vnni")])
def test_every_kernel_has_the_spans_of_transformers(
    tmp_path: Path, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = extractive_model.save(tmp_path, max_position_embeddings=LONGEST, num_hidden_layers=3)
    question = QUESTIONS[0]
    loaded = load(folder, "bert")
    wanted = [expected(loaded, "bert", question, text) for text in TEXTS]
    monkeypatch.setenv(KERNEL_VARIABLE, kernel)
    model = Extractor(f"native:{folder}")
    assert model.kernel == kernel
    assert model.precision == ("bf16" if kernel in ("amx", "avx512-bf16") else "f32")
    spread = float(np.ptp([score for _, score, _ in wanted]))
    check(model.spans(question, TEXTS), TEXTS, wanted, 1e-4 if model.precision == "f32" else 0.2 * spread)
