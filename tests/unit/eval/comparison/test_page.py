"""The page stands alone, is well formed, and shows nothing that a document, a model or a name smuggled in."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from ketrag_fast.eval.comparison import plots
from ketrag_fast.eval.comparison.outcome import (
    BuildCost,
    Graph,
    Outcome,
    Report,
    graph_of,
    overlaps,
    split_questions,
)
from ketrag_fast.eval.comparison.page import page
from ketrag_fast.eval.comparison.table import render
from ketrag_fast.eval.prices import Bill
from ketrag_fast.eval.question import Question
from ketrag_fast.eval.results import Result
from ketrag_fast.eval.rows import summarise

EVIL = "</title><script>alert(1)</script>'\"&"
VOID = {"meta", "br", "link"}


class Strict(HTMLParser):
    """Fails where a tag is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _outcome(name: str, covered: tuple[bool | None, ...], graph: Graph | None = None) -> Outcome:
    results = tuple(
        Result(
            f"q{n}",
            "walk",
            100,
            "walk",
            90,
            1.0,
            covered=c,
            recall=0.5,
            all_gold=False,
            rank=1,
            found=(EVIL,),
        )
        for n, c in enumerate(covered)
    )
    cost = BuildCost(
        1.5, {"units": 0.5, "vectors": 0.9}, 3, 1000, 50, 0, Bill(None, 0.0), 10**6, None, True, 1.5
    )
    rows = (summarise("walk", 100, results),)
    return Outcome(
        name, {"llm": EVIL}, {"core_ratio": 0.5}, cost=cost, rows=rows, results=results, graph=graph
    )


def _report(kind: str = "builds") -> Report:
    questions = tuple(Question(f"q{n}", f"Who {EVIL}?", (EVIL,), frozenset({"d"}), {}) for n in range(3))
    one = _outcome(EVIL, (True, False, None), Graph(frozenset({"A", "B"}), frozenset({("A", "B")})))
    two = _outcome("b" * 70, (False, False, None), Graph(frozenset({"B", "C"}), frozenset()))
    bad = Outcome("c", {}, error=EVIL, hint=EVIL)
    outcomes = (one, two, bad)
    graphs = [(o.name, o.graph) for o in outcomes if o.graph is not None]
    about = {
        "dataset": {"name": EVIL},
        "machine": {"processor": EVIL},
        "versions": {"x": EVIL},
        "documents": 2,
    }
    return Report(
        kind,
        about,
        questions,
        outcomes,
        tuple(overlaps(graphs)),
        tuple(split_questions(questions, outcomes)),
        (EVIL,),
    )


@pytest.mark.parametrize("kind", ["builds", "systems", "sweep"])
def test_the_page_is_whole_and_runs_nothing(kind: str) -> None:
    text = page(_report(kind))
    parser = Strict()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    assert "svg" in parser.seen
    assert not {"script", "img", "iframe", "link", "object"} & parser.seen
    assert not re.search(r"""(src|href)=|url\(|https?://""", text)
    assert "default-src 'none'" in text


def test_a_question_is_told_where_configurations_differ_and_only_there() -> None:
    report = _report()
    assert [entry.question.id for entry in report.divided] == ["q0"]
    assert "questions on which configurations differ: 1 of 3" in render(report)
    verdicts = report.to_json()["divided"][0]["verdicts"]
    assert [v["has_it"] for v in verdicts] == [True, False]


def test_an_unknown_price_and_a_failed_configuration_are_words() -> None:
    text = render(_report())
    assert "unknown" in text
    assert "c: not run" in text


def test_overlap_counts_names_and_unordered_pairs() -> None:
    overlap = _report().overlaps[0]
    assert (overlap.entities.only_a, overlap.entities.both, overlap.entities.only_b) == (1, 1, 1)
    assert overlap.entities.jaccard == pytest.approx(1 / 3)
    assert (overlap.relations.only_a, overlap.relations.both) == (1, 0)


def test_a_graph_is_read_from_the_arrays_of_an_index() -> None:
    blob = np.frombuffer("ÉABZ".encode(), np.uint8)
    arrays = {
        "entity_name_blob": blob,
        "entity_name_offsets": np.array([0, 3, 5, 5], np.uint64),
        "relation_source": np.array([1], np.uint32),
        "relation_target": np.array([0], np.uint32),
    }
    found = graph_of({"units": {}, "skeleton": arrays})
    assert found is not None
    assert found.entities == {"ÉA", "BZ", ""}
    assert found.relations == {("BZ", "ÉA")}
    assert graph_of({}) is None


@pytest.mark.parametrize("values", [[], [0.0], [5.0, 5.0], [1e-9, 3e5], [-1.0, 2.0], [99.9, 100.0]])
def test_plots_hold_any_values_within_their_frame(values: list[float]) -> None:
    points = [plots.Point(v, min(max(v, 0), 100), label=f"p{v}") for v in values]
    drawn = plots.scatter([plots.Series("s", points, joined=True)], "x", "y")
    drawn += plots.bars([plots.StackedBar("b", [("part", abs(v))], "t") for v in values], "s")
    drawn += plots.intervals([("r", [("s", min(abs(v), 100.0), None, None)]) for v in values])
    numbers = [float(n) for n in re.findall(r'(?:x|x1|x2|cx)="([-0-9.]+)"', drawn)]
    assert all(-1 <= n <= plots.WIDTH + 1 for n in numbers)
    assert "nan" not in drawn
    assert "inf" not in drawn
