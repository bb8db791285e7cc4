"""The report of a comparison as text and as JSON."""

from __future__ import annotations

from ketrag_fast.eval.comparison.report import BuildCost, Outcome, Report, render, split_questions
from ketrag_fast.eval.datasets import Question
from ketrag_fast.eval.prices import Bill
from ketrag_fast.eval.results import Result, summarise


def _outcome(name: str, covered: tuple[bool | None, ...]) -> Outcome:
    results = tuple(
        Result(f"q{n}", "walk", 100, "walk", 90, 1.0, covered=c, recall=0.5, all_gold=False, rank=1)
        for n, c in enumerate(covered)
    )
    cost = BuildCost(1.5, {"units": 0.5}, 3, 1000, 50, 0, Bill(None, 0.0), 10**6, None, True, 1.5)
    rows = (summarise("walk", 100, results),)
    return Outcome(name, {}, {"core_ratio": 0.5}, cost=cost, rows=rows, results=results)


def test_a_report_names_what_differs_what_failed_and_what_is_unknown() -> None:
    questions = tuple(Question(f"q{n}", f"Who {n}?", (), frozenset({"d"}), {}) for n in range(3))
    outcomes = (
        _outcome("a", (True, False, None)),
        _outcome("b", (False, False, None)),
        Outcome("c", {}, error="no key", hint="set one"),
    )
    report = Report("builds", {}, questions, outcomes, tuple(split_questions(questions, outcomes)), ("note",))
    assert [entry.question.id for entry in report.divided] == ["q0"]
    verdicts = report.to_json()["divided"][0]["verdicts"]
    assert [v["has_it"] for v in verdicts] == [True, False]
    text = render(report)
    assert "questions on which configurations differ: 1 of 3" in text
    assert "found by a; not by b" in text
    assert "unknown" in text
    assert "c: not run: no key\n  set one" in text
