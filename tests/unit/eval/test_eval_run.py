from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.errors import ModeUnavailable
from ketrag_fast.eval import DataSet, Question, ResultRow, collect, metrics
from ketrag_fast.eval.run import _documents, _line_by_line
from ketrag_fast.types import Copy, Passage


def evaluate(*given: Any, **options: Any) -> list[ResultRow]:
    return collect(*given, **options).rows()


@dataclass(frozen=True)
class FakePassage:
    document: str


@dataclass(frozen=True)
class FakeContext:
    mode: str
    text: str
    tokens: int
    passages: tuple[FakePassage, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)


class FakeIndex:
    """Holds one ranking of (document, text) per question; a budget is a number of passages."""

    def __init__(self, ranking: Mapping[str, Sequence[tuple[str, str]]], runs: str = "walk") -> None:
        self.ranking = ranking
        self.runs = runs
        self.calls: list[tuple[int, str]] = []

    def retrieve_many(
        self,
        questions: Sequence[str],
        *,
        mode: str,
        budgets: Sequence[int],
        top: int | None = None,
        explain: bool = False,
    ) -> list[list[FakeContext]]:
        if mode == "keyword":
            raise ModeUnavailable("the index has no keyword vectors", hint="rebuild")
        self.calls.append((len(questions), mode))
        found = []
        for number, question in enumerate(questions):
            contexts = []
            for budget in budgets:
                rows = self.ranking.get(question, ())[:budget][:top]
                contexts.append(
                    FakeContext(
                        self.runs,
                        "\n".join(text for _, text in rows),
                        10 * len(rows),
                        tuple(FakePassage(document) for document, _ in rows),
                        {"embed": 1.0, "search": float(number)},
                    )
                )
            found.append(contexts)
        return found


def dataset(*questions: Question) -> DataSet:
    return DataSet(Path("set"), None, questions, ())


def question(identity: str, answers: tuple[str, ...] = (), gold: tuple[str, ...] = ()) -> Question:
    return Question(identity, identity, answers, frozenset(gold), {})


RANKING = {
    "q1": [("a", "the party"), ("b", "the art of ice"), ("b", "more")],
    "q2": [("c", "Oslo"), ("d", "yes")],
    "q3": [("d", "yes and no")],
}
ASKED = dataset(
    question("q1", ("art",), ("a", "b")),
    question("q2", ("Oslo", "Kristiania"), ("c", "z")),
    question("q3", ("yes",)),
)


def test_scores_by_budget() -> None:
    index = FakeIndex(RANKING)
    small, large = evaluate(index, ASKED, ["walk"], [1, 3])
    assert (small.budget, large.budget) == (1, 3)
    assert small.n == large.n == 3
    assert small.means.get("coverage") == 0.5  # "art" is in the second passage; q3 is a yes/no question
    assert large.means.get("coverage") == 1.0
    assert small.means.get("recall") == 0.5
    assert large.means.get("recall") == 0.75
    assert large.means.get("all_gold") == 0.5
    assert small.tokens_mean == 10.0
    assert large.tokens_mean == 20.0
    assert small.ms_p50 == 2.0  # 1 + 1: the parts added up
    assert large.counted == dict.fromkeys(
        ("coverage", "recall", "all_gold", "mrr", "hit@1", "hit@5", "hit@10", "ndcg@10", "p@10", "map"), 2
    )
    assert large.yes_no == {"n": 1, "coverage": 1.0}
    assert large.ci95["coverage"] == (1.0, 1.0)
    assert index.calls == [(3, "walk")]  # ranked once for both budgets


def test_top_reaches_the_index() -> None:
    assert evaluate(FakeIndex(RANKING), ASKED, ["walk"], [3], top=1)[0].means["coverage"] == 0.5


def test_a_mode_that_cannot_run_gives_rows_that_say_so() -> None:
    rows = evaluate(FakeIndex(RANKING), ASKED, ["keyword", "walk"], [1, 2])
    assert [(row.mode, row.budget, row.status) for row in rows] == [
        ("keyword", 1, "not run"),
        ("keyword", 2, "not run"),
        ("walk", 1, "ok"),
        ("walk", 2, "ok"),
    ]
    assert rows[0].means.get("coverage") is None
    assert rows[0].as_dict()["reason"] == "the index has no keyword vectors"


def test_metrics_without_answers_or_gold_are_absent() -> None:
    row = evaluate(FakeIndex(RANKING), dataset(question("q1"), question("q2")), ["walk"], [2])[0]
    assert row.n == 2
    assert row.means.get("coverage") is None
    assert row.means.get("recall") is None
    assert row.means.get("all_gold") is None
    assert row.ci95 == {}
    assert row.yes_no is None
    assert row.tokens_mean == 20.0


def test_a_question_that_finds_nothing_counts_as_missed() -> None:
    row = evaluate(FakeIndex({}), dataset(question("q", ("x",), ("a",))), ["walk"], [2])[0]
    assert [row.means[name] for name in ("coverage", "recall", "all_gold")] == [0.0] * 3
    assert row.tokens_mean == 0.0


def test_no_questions_and_no_budgets() -> None:
    empty = evaluate(FakeIndex({}), dataset(), ["walk"], [2])[0]
    assert (empty.n, empty.means.get("coverage"), empty.tokens_mean, empty.ms_p50, empty.ran) == (
        0,
        None,
        None,
        None,
        None,
    )
    assert evaluate(FakeIndex(RANKING), ASKED, ["walk"], []) == []
    assert evaluate(FakeIndex(RANKING), ASKED, [], [5]) == []


def test_auto_names_the_mode_that_ran() -> None:
    row = evaluate(FakeIndex(RANKING), ASKED, ["auto"], [2])[0]
    assert (row.mode, row.ran) == ("auto", "walk")
    assert row.as_dict()["ran"] == "walk"
    assert evaluate(FakeIndex(RANKING), ASKED, ["walk"], [2])[0].ran is None


def test_many_questions_go_in_batches_with_the_same_scores() -> None:
    asked = dataset(*(question(f"q{i}", ("ice",), ("a",)) for i in range(600)))
    index = FakeIndex({f"q{i}": [("a", "ice")] for i in range(0, 600, 3)})
    row = evaluate(index, asked, ["walk"], [1])[0]
    assert row.means.get("coverage") == pytest.approx(1 / 3)
    assert row.means.get("recall") == pytest.approx(1 / 3)
    assert sum(count for count, _ in index.calls) == 600
    assert max(count for count, _ in index.calls) < 600


def test_an_index_that_loses_a_context_is_not_believed() -> None:
    class Short(FakeIndex):
        def retrieve_many(self, questions: Sequence[str], **options: Any) -> list[list[FakeContext]]:
            return super().retrieve_many(questions, **options)[:-1]

    with pytest.raises(ValueError, match="shorter"):
        evaluate(Short(RANKING), ASKED, ["walk"], [1])


PIECES = st.sampled_from(
    ["a", "the", "Σ", "ΑΣ", "ς", ".", "'", "–", "é", "\u0301", "\r", "\u2028", "\n", "\n", " ", "x"]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=4))).map("".join))
def test_normalising_line_by_line_changes_nothing(text: str) -> None:
    normalise = _line_by_line()
    assert normalise(text) == normalise(text) == metrics.normalise(text)


def test_lines_too_long_to_remember_are_normalised_too() -> None:
    text = "The ice, " * 2000 + "\n" + "the floe."
    assert _line_by_line()(text) == metrics.normalise(text)


def test_a_passage_counts_as_the_judged_documents_with_its_text() -> None:
    also = tuple(Copy(unit, name, "T", 0, 4) for unit, name in enumerate(("b", "c"), 1))
    passage = Passage(1, "chunk", 0, 0, "a", "T", 0, 4, 1.0, 9, "walk", "text", also_in=also)
    cases = {("x",): ["a"], ("c",): ["c"], ("a", "b", "x"): ["a", "b"]}
    for gold, found in cases.items():
        assert _documents(passage, Question("1", "q?", (), frozenset(gold), {})) == found
