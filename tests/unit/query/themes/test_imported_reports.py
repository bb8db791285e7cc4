"""Which imported reports are read for the passages of a survey."""

from __future__ import annotations

from ketrag_fast.query.answer.notes import THEMES, covering_reports
from ketrag_fast.types import Passage, ThemeSummary


def passage(unit: int, score: float) -> Passage:
    return Passage(1, "chunk", unit, unit, "d", "", 0, 6, score, 2, "survey", f"text {unit}")


def chosen(reports: dict[str, set[int]], scores: dict[int, float]) -> list[tuple[str, list[str]]]:
    found = covering_reports(
        [(ThemeSummary(title, title), frozenset(units)) for title, units in reports.items()],
        [passage(unit, score) for unit, score in scores.items()],
    )
    return [(summary.title, texts) for summary, texts in found]


def test_the_best_report_comes_first_and_the_next_has_what_it_lacks() -> None:
    reports = {"most": {1, 2, 8}, "overlaps": {2, 9}, "rest": {2, 3}, "elsewhere": {9}}
    assert chosen(reports, {1: 0.5, 2: 1.0, 3: 0.25}) == [
        ("most", ["text 1", "text 2"]),
        ("rest", ["text 2", "text 3"]),
    ]


def test_of_reports_with_the_same_passages_the_narrowest_is_read() -> None:
    assert chosen({"wide": {1, 2, 3}, "narrow": {1, 2}}, {1: 1.0}) == [("narrow", ["text 1"])]


def test_the_number_of_reports_is_limited() -> None:
    units = range(THEMES + 5)
    assert len(chosen({str(unit): {unit} for unit in units}, dict.fromkeys(units, 1.0))) == THEMES
    assert chosen({}, {1: 1.0}) == []
