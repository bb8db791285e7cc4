"""Measures of ranked documents, beside trec_eval's own; and of answers by yes, no or maybe."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ketrag_fast.eval import collect, load_dataset, metrics, render
from ketrag_fast.eval.results import METRICS, Result, summarise
from ketrag_fast.types import Context
from tests.support.parts import part


def drawn(seed: int) -> tuple[list[str], dict[str, float]]:
    """A ranking, and grades of some documents of which it may lack some."""
    random = Random(seed)
    pool = [f"d{n}" for n in range(30)]
    ranked = random.sample(pool, random.randint(0, 25))
    grades = {name: float(random.randint(0, 3)) for name in random.sample(pool, random.randint(1, 12))}
    return ranked, grades


@pytest.mark.parametrize("graded", [False, True])
def test_the_same_numbers_as_trec_eval(graded: bool) -> None:
    pytrec_eval: Any = part("pytrec_eval", "checks")
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    want = {}
    for seed in range(300):
        ranked, grades = drawn(seed)
        if not graded:
            grades = {name: float(grade > 0) for name, grade in grades.items()}
        gold = {name for name, grade in grades.items() if grade > 0}
        if not gold or not ranked:
            continue
        name = f"q{seed}"
        qrels[name] = {document: int(grade) for document, grade in grades.items()}
        run[name] = {document: 1.0 / rank for rank, document in enumerate(ranked, 1)}
        result = Result(name, "walk", 100, "walk", 1, rank=metrics.first_rank(ranked, gold))
        want[name] = {
            "ndcg_cut_10": metrics.ndcg_at(ranked, grades, 10),
            "map": metrics.average_precision(ranked, gold),
            "P_10": metrics.precision_at(ranked, gold, 10),
            "recip_rank": METRICS["mrr"](result),
            "success_1": METRICS["hit@1"](result),
            "success_5": METRICS["hit@5"](result),
        }
    measures = {"ndcg_cut.10", "map", "P.10", "recip_rank", "success.1,5"}
    got = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    assert len(want) > 200
    for name, own in want.items():
        assert own == pytest.approx({measure: got[name][measure] for measure in own}, abs=1e-12)


def test_by_hand_and_where_they_do_not_apply() -> None:
    gold = {"a", "b"}
    assert metrics.average_precision(["x", "a", "b"], gold) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert metrics.precision_at(["a"], gold, 10) == 0.1
    best = 2 / math.log2(2) + 1 / math.log2(3)
    assert metrics.ndcg_at(["b", "a"], {"a": 2, "b": 1}, 10) == pytest.approx((1 + 2 / math.log2(3)) / best)
    assert metrics.ndcg_at([], {"a": 1}, 10) == 0.0
    assert metrics.ndcg_at(["a"], {}, 10) is None
    assert metrics.ndcg_at(["a"], {"a": 0, "b": -1}, 10) is None
    assert metrics.average_precision(["a"], set()) is None
    assert metrics.precision_at(["a"], set(), 10) is None
    assert metrics.precision_at(["a"], {"a"}, 0) is None


def test_answers_that_decide() -> None:
    assert [metrics.decision(text) for text in ("Yes, it does.", "It may be. Maybe.", "unclear", "No")] == [
        "yes",
        "maybe",
        None,
        "no",
    ]
    pairs = [("yes", "yes"), ("yes", "no"), ("no", "no"), ("maybe", None)]
    assert metrics.macro_f1(pairs) == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert metrics.macro_f1([("yes", "yes")]) == 1.0
    assert metrics.macro_f1([]) is None
    results = [Result(str(at), "m", 1, "m", 1, decided=pair) for at, pair in enumerate(pairs)]
    row = summarise("m", 1, [*results, Result("x", "m", 1, "m", 1)])
    assert (row.means["accuracy"], row.counted["accuracy"]) == (0.5, 4)
    assert row.means["macro_f1"] == metrics.macro_f1(pairs)
    again = [Result.from_json(result.to_json()) for result in results]
    assert again[1].decided == ("yes", "no")


class Scripted:
    """Gives every question one document."""

    def retrieve_many(self, questions: Any, *, budgets: Any, **_: Any) -> list[list[Context]]:
        return [[Context(text, "bm25", budget, 1, "[1]\nx\n") for budget in budgets] for text in questions]


def test_options_that_are_ranked(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n')
    rows = [
        {"answers": ["The Fram"], "options": ["Maud", "the Fram.", "Gjoa"]},
        {"answers": ["c"], "options": ["one", "two", "three"]},
        {"answers": ["one"], "options": ["one", "two", "three"]},
        {"answers": ["four"], "options": ["one", "two", "three"]},
        {"answers": ["free"]},
        {"answers": ["yes"], "kind": "yes-no", "options": "no list"},
    ]
    entries = [{"_id": str(at), "text": f"{at}?", "metadata": row} for at, row in enumerate(rows)]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    dataset = load_dataset(tmp_path)
    assert [q.kind for q in dataset.questions] == [None] * 5 + ["yes-no"]
    said = {"0": "[b,a] as [1] says", "1": "(b)", "2": "I cannot say", "3": "[a]", "4": "[b]", "5": "Yes."}
    found = collect(Scripted(), dataset, ["bm25"], [100], answer=lambda q, *_: said[q.id])
    assert [r.option_rank for r in found.results] == [1, 3, 1, None, None, None]
    (row,) = found.rows()
    assert row.means["option_mrr"] == pytest.approx((1 + 1 / 3 + 1) / 3)
    assert row.as_dict()["option_hit"] == {"1": pytest.approx(2 / 3), "3": 1.0}
    assert "MRR of options" in render([row])
    assert [Result.from_json(r.to_json()).option_rank for r in found.results] == [1, 3, 1, None, None, None]
    unasked = collect(Scripted(), dataset, ["bm25"], [100]).rows()[0]
    assert not unasked.means.keys() & {"option_mrr", "option_hit@1"}


def test_graded_judgements_of_a_data_set(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n{"_id": "b", "text": "y"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "x?"}\n{"_id": "2", "text": "y?"}\n')
    qrels = tmp_path / "qrels.tsv"
    head = "query-id\tcorpus-id\tscore\n"
    qrels.write_text(head + "1\ta\t3\n1\tb\t1\n1\tb\t2\n2\ta\t0\n2\tb\t1\n")
    one, two = load_dataset(tmp_path).questions
    assert (one.grades, one.graded) == ({"a": 3.0, "b": 2.0}, {"a": 3.0, "b": 2.0})
    assert (two.gold, two.graded) == ({"b"}, {"b": 1.0})
    qrels.write_text(head + "1\ta\t1\n")
    plain = load_dataset(tmp_path)
    assert plain.questions[0].grades == {}
    assert plain.questions[0].graded == {"a": 1.0}
    qrels.write_text(head + "1\ta\tnan\n")
    with pytest.raises(Exception, match="is not a score"):
        load_dataset(tmp_path)
