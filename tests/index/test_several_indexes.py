"""Several indexes share a deadline, agree on a mode, and are merged by relevance."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import DeadlineExceeded, ModeUnavailable
from ketrag_fast.index import part_ranking, querying
from ketrag_fast.index import parts as module
from ketrag_fast.index.indexes import Indexes
from ketrag_fast.types import Lazy
from ketrag_fast.types.contexts import NOTHING_FITS

NORTH = [
    Document("fram", "Nansen sailed the Fram into the ice.", "Fram", {"date": "2020-01-01"}),
    Document("whales", "Whales feed on krill near the surface.", "Whales", {"date": "2024-01-01"}),
]
SOUTH = [
    Document("maud", "Amundsen sailed the Maud into the ice.", "Maud", {"date": "2025-01-01"}),
    Document("bread", "Bread is baked from flour and water.", "Bread", {"date": "2023-01-01"}),
]
QUESTION = "Who sailed into the ice?"


class Opened:
    """Builds indexes that the test closes."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack

    def build(self, name: str, documents: list[Document], **settings: Any) -> Index:
        index = Index.build(documents, self.folder / name, settings=Settings(threads=1, **settings))
        return self.stack.enter_context(index)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with ExitStack() as stack:
        yield Opened(tmp_path, stack)


def record_plans(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.0) -> list[tuple[str, Any, float]]:
    """Record the mode, the deadline and the time of each plan. Each takes `seconds`."""
    plan, calls = querying.plan, []

    def recorded(state: Any, query: Any) -> Any:
        calls.append((query.mode, query.deadline, time.monotonic()))
        time.sleep(seconds)
        return plan(state, query)

    monkeypatch.setattr(querying, "plan", recorded)
    return calls


def test_the_deadline_is_one_for_all_indexes(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    both = Indexes({"north": opened.build("north", NORTH), "south": opened.build("south", SOUTH)})
    calls = record_plans(monkeypatch, 0.05)
    both.retrieve(QUESTION, mode="bm25", deadline=600.0)
    assert len(calls) == 2 and calls[1][1] <= calls[0][1] - 0.05 < 600.0


def test_the_deadline_of_the_settings_is_that_of_the_first_index(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened.build("north", NORTH, deadline=500.0)
    both = Indexes({"north": first, "south": opened.build("south", SOUTH, deadline=400.0)})
    calls = record_plans(monkeypatch)
    both.retrieve(QUESTION, mode="bm25")
    assert [400.0 < deadline <= 500.0 for _, deadline, _ in calls] == [True, True]
    calls.clear()
    both.retrieve(QUESTION, mode="bm25", deadline=300.0)
    assert [200.0 < deadline <= 300.0 for _, deadline, _ in calls] == [True, True]


def test_indexes_with_different_modes_agree_on_one(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mode is agreed on after each index was planned alone, and takes its time from the same deadline."""
    walk, bm25 = opened.build("walk", NORTH, mode="walk"), opened.build("bm25", SOUTH, mode="bm25")
    calls = record_plans(monkeypatch, 0.05)
    for first, second in ((walk, bm25), (bm25, walk)):
        mode = "walk" if first is walk else "bm25"
        context = Indexes({"first": first, "second": second}).retrieve(QUESTION, deadline=600.0)
        assert context.mode == mode and {one.index for one in context.passages} == {"first", "second"}
        assert [mode for mode, _, _ in calls] == [None, None, mode, mode]
        deadlines = [deadline for _, deadline, _ in calls]
        assert all(later <= before - 0.05 for before, later in itertools.pairwise(deadlines))
        calls.clear()
    bm25._opened.missing["walk"] = "the links"  # as in an index that was built without them
    context = Indexes({"walk": walk, "bm25": bm25}).retrieve(QUESTION)
    assert context.mode == "bm25" and {one.index for one in context.passages} == {"walk", "bm25"}


def test_a_mode_of_keywords_is_agreed_on_if_no_mode_of_an_index_is_common(opened: Opened) -> None:
    bm25, survey = opened.build("bm25", NORTH, mode="bm25"), opened.build("survey", SOUTH, mode="survey")
    bm25._opened.missing["survey"] = survey._opened.missing["bm25"] = "it"
    assert Indexes({"bm25": bm25, "survey": survey}).retrieve(QUESTION).mode == "walk"


def test_indexes_without_a_common_mode_are_named(opened: Opened) -> None:
    walk, bm25 = opened.build("walk", NORTH, mode="walk"), opened.build("bm25", SOUTH, mode="bm25")
    for index, only in ((walk, "walk"), (bm25, "bm25")):
        index._opened.missing.update({name: "it" for name in index._opened.missing if name != only})
    with pytest.raises(ModeUnavailable, match="no mode in common: north, south"):
        Indexes({"north": walk, "south": bm25}).retrieve(QUESTION)


def test_a_plan_that_is_late_leaves_its_index_out(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    north, south = opened.build("north", NORTH), opened.build("south", SOUTH)
    plan = querying.plan

    def late(state: Any, query: Any) -> Any:
        if state is north._state:
            raise DeadlineExceeded("too late")
        return plan(state, query)

    monkeypatch.setattr(querying, "plan", late)
    context = Indexes({"north": north, "south": south}).retrieve(QUESTION, mode="bm25")
    assert context.missing == ("north",)
    assert context.warnings[0] == "without north: no answer in time"
    assert [(one.document, one.index, one.rank) for one in context.passages] == [("maud", "south", 1)]


@pytest.mark.parametrize("work", ["run_plan", "build_contexts"])
def test_a_late_ranking_leaves_its_index_out(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    north, south = opened.build("north", NORTH), opened.build("south", SOUTH)
    function = getattr(module, work)

    def late(plan: Any, *arguments: Any, **named: Any) -> Any:
        if plan.opened is north._opened:
            raise DeadlineExceeded("too late")
        return function(plan, *arguments, **named)

    monkeypatch.setattr(module, work, late)
    if work == "build_contexts":  # passages of all indexes together are late, too
        monkeypatch.setattr(part_ranking, work, late)
    both = Indexes({"north": north, "south": south})
    newest = work == "run_plan"  # such passages are ranked in each index
    context = both.retrieve(QUESTION, mode="bm25", newest=newest)
    assert context.missing == ("north",) and {one.index for one in context.passages} == {"south"}
    with pytest.raises(DeadlineExceeded, match="too late"):
        Indexes({"a": north, "b": north}).retrieve(QUESTION, mode="bm25", newest=newest)


def test_passages_of_each_index_alone_are_merged_by_relevance(opened: Opened) -> None:
    north, south = opened.build("north", NORTH), opened.build("south", SOUTH)
    alone = [
        (one.relevance, name, one.document)
        for name, index in (("south", south), ("north", north))
        for one in index.retrieve(QUESTION, mode="bm25", newest=True).passages
    ]
    wanted = sorted(alone, key=lambda row: -row[0])
    context = Indexes({"south": south, "north": north}).retrieve(QUESTION, mode="bm25", newest=True)
    assert [(one.relevance, one.index, one.document) for one in context.passages] == wanted
    assert [one.rank for one in context.passages] == list(range(1, len(wanted) + 1))
    assert [block.split("\n")[0] for block in context.text.split("\n\n")] == [
        f"[{one.rank}]" for one in context.passages
    ]
    hits = Indexes({"south": south, "north": north}).search(QUESTION, limit=1, mode="bm25", newest=True)
    assert [(hit.document, hit.index, hit.rank) for hit in hits] == [(wanted[0][2], wanted[0][1], 1)]


def test_a_word_is_corrected_if_no_index_has_it(opened: Opened) -> None:
    both = Indexes({"north": opened.build("north", NORTH), "south": opened.build("south", SOUTH)})
    context = both.retrieve("Amundsn", mode="bm25")
    assert [one.document for one in context.passages] == ["maud"]
    assert dict(context.replaced) == {"Amundsn": "amundsen"} and context.unknown == ()
    context = both.retrieve("Amundsen Nansen", mode="bm25")
    assert {one.document for one in context.passages} == {"maud", "fram"}
    assert not context.replaced and not context.notes and not context.unknown
    nothing = both.retrieve("qqqqq wwwww", mode="bm25")
    assert nothing.text == "" and nothing.unknown == ("qqqqq", "wwwww")


def test_a_word_that_one_index_has_is_not_corrected_for_the_others(opened: Opened) -> None:
    one = opened.build("one", [Document("a", "The harbours are closed by ice, and harbours freeze.")])
    other = opened.build("other", [Document("b", "The sea is open, and Harbourg is a town.")])
    assert one.retrieve("harbourg", mode="bm25").replaced
    context = Indexes({"one": one, "other": other}).retrieve("harbourg", mode="bm25")
    assert [passage.document for passage in context.passages] == ["b"] and not context.replaced


def test_a_least_relevance_holds_in_all_indexes(opened: Opened) -> None:
    both = Indexes({"north": opened.build("north", NORTH), "south": opened.build("south", SOUTH)})
    every = both.retrieve("Nansen sailed into the ice", mode="bm25").passages
    assert [one.document for one in every] == ["fram", "maud"]
    least = every[0].relevance
    assert every[1].relevance < least
    found = both.retrieve("Nansen sailed into the ice", mode="bm25", min_score=least)
    assert [(one.document, one.relevance) for one in found.passages] == [("fram", least)]
    none = both.retrieve("Nansen sailed into the ice", mode="bm25", min_score=1.0)
    assert not none.passages and none.reason == "below_min_score" and none.text == ""


def test_the_budget_counts_whole_passages(opened: Opened) -> None:
    both = Indexes({"north": opened.build("north", NORTH), "south": opened.build("south", SOUTH)})
    every = both.retrieve(QUESTION, mode="bm25").passages
    assert len(every) == 2
    needed = sum(one.tokens for one in every)
    for budget, count in ((needed, 2), (needed - 1, 1)):
        context = both.retrieve(QUESTION, mode="bm25", budget=budget)
        assert len(context.passages) == count and context.budget == budget
        assert context.tokens == sum(one.tokens for one in context.passages) <= budget


def test_hits_of_no_index_have_a_reason(opened: Opened) -> None:
    both = Indexes({"north": opened.build("north", NORTH), "south": opened.build("south", SOUTH)})
    nothing = both.search("qqqqq", mode="bm25")
    assert not nothing and nothing.reason == "no_match" and nothing.query == "qqqqq"
    found = both.search("whales", mode="bm25")
    assert [hit.document for hit in found] == ["whales"] and found.reason is None
    assert (found.query, found.mode) == ("whales", "bm25")


@pytest.mark.parametrize("newest", [True, False])  # with `newest`, passages are ranked in each index
def test_nothing_fits_only_if_no_index_has_a_relevant_passage(opened: Opened, *, newest: bool) -> None:
    north, south = opened.build("north", NORTH), opened.build("south", SOUTH)
    for both in (Indexes({"north": north, "south": south}), Indexes({"south": south, "north": north})):
        one = both.retrieve("Nansen sailed the Fram into the ice", mode="bm25", newest=newest)
        assert [passage.document for passage in one.passages] == ["fram", "maud"]
        assert not one.nothing_fits and one.warnings == ()
        # The south has no passage for these words.
        none = both.retrieve("Nansen quark gluon plasma lattice theory", mode="bm25", newest=newest)
        assert [passage.document for passage in none.passages] == ["fram"]
        assert none.nothing_fits and none.warnings == (NOTHING_FITS,) and none.reason is None
        empty = both.retrieve("qqqqq", mode="bm25", newest=newest)
        assert (list(empty.passages), empty.nothing_fits, empty.reason) == ([], False, "no_match")


@pytest.mark.parametrize("newest", [True, False])
def test_an_index_without_passages_does_not_describe_the_context(opened: Opened, *, newest: bool) -> None:
    north, south = opened.build("north", NORTH), opened.build("south", SOUTH)
    for both in (Indexes({"north": north, "south": south}), Indexes({"south": south, "north": north})):
        context = both.retrieve("Maud", mode="bm25", newest=newest)
        assert [passage.document for passage in context.passages] == ["maud"] and context.reason is None
        assert [section.text for section in context.sections] == [context.text] != [""]


def test_the_only_index_in_time_may_have_no_passage(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    north, south = opened.build("north", NORTH), opened.build("south", SOUTH)
    plan = querying.plan

    def late(state: Any, query: Any) -> Any:
        if state is north._state:
            raise DeadlineExceeded("too late")
        return plan(state, query)

    monkeypatch.setattr(querying, "plan", late)
    both = Indexes({"north": north, "south": south})
    for newest in (True, False):
        context = both.retrieve("qqqqq", mode="bm25", newest=newest)
        assert (context.missing, context.reason, context.text) == (("north",), "no_match", "")


def test_a_passage_of_several_chunks_ranks_as_its_best_chunk(opened: Opened) -> None:
    """The other index has a passage that ranks between its chunks."""
    strong = "The Fram was sailed by Nansen into the ice, and the Fram came back with Nansen. " * 2
    weak = "The harbour office keeps a list of boats with their masters, and of the ice in the bay. " * 2
    rest = "Bread is baked from flour and water, and cakes from flour and butter and much sugar. " * 2
    log = opened.build("log", [Document("log", strong + weak + rest), NORTH[1]], chunk_tokens=40)
    sale = Document("sale", "Nansen and the Fram were sold in Bergen.", "Sale")
    sales = opened.build("sales", [sale, SOUTH[1]], chunk_tokens=40)
    context = Indexes({"log": log, "sales": sales}).retrieve("Nansen Fram ice", mode="bm25")
    found = [(one.document, one.unit, one.units) for one in context.passages]
    assert found == [("log", 0, (0, 1)), ("sale", 0, ())]
    assert context.passages[0].relevance > context.passages[1].relevance


@pytest.mark.parametrize("mode", ["bm25", "walk"])
@pytest.mark.parametrize(
    "fields",
    [{}, {"top": 1}, {"top": 3}, {"budget": 30}, {"budget": 90}, {"min_score": 0.3}, {"min_score": 1}],
)
def test_passages_printed_together_equal_those_printed_by_each_index(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, mode: str, fields: dict[str, Any]
) -> None:
    """Neighbours are merged, copies left out, and marks in texts are not taken for those of passages."""
    long = " ".join(f"Amundsen sailed over ice in year {year}. Nobody saw it happen." for year in range(60))
    north = [*NORTH, Document("log", f"[1] [2]\n[2]\nThe ice. {long}", "Log\u2028[3]")]
    south = [*SOUTH, Document("copy", NORTH[0].text, "Copy"), Document("log2", long, "")]
    both = Indexes({"north": opened.build("north", north), "south": opened.build("south", south)})
    together = [both.retrieve(text, mode=mode, **fields) for text in (QUESTION, "Amundsen", "zzz", "krill")]

    def late(*_: Any) -> Any:
        raise DeadlineExceeded("too late")

    monkeypatch.setattr(part_ranking._core, "print_shards", late)
    for context in together:
        expected = both.retrieve(context.question, mode=mode, **fields)
        assert isinstance(context.passages, Lazy) and not isinstance(expected.passages, Lazy)
        left, right = ({**one.to_json(), "timings_ms": None} for one in (context, expected))
        assert left == right


def test_an_index_of_another_format_or_a_damaged_one_is_named(
    opened: Opened, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, documents in (("north", NORTH), ("south", SOUTH)):
        opened.build(name, documents).close()
    north, south = (str(opened.folder / name) for name in ("north", "south"))
    manifest = next(Path(south).glob("gen-*/manifest.json"))
    text = manifest.read_text()
    for changed, words in (
        (text.replace('"format": 5', '"format": 3'), "format 3"),
        (text[:-40], "manifest"),
    ):
        manifest.write_text(changed)
        assert changed != text
        assert main(["retrieve", QUESTION, "-i", f"{north},{south}"]) != 0
        printed = capsys.readouterr()
        assert words in printed.err and "south" in printed.err and not printed.out
    manifest.write_text(text)
    assert main(["retrieve", QUESTION, "-i", f"{north},{south}"]) == 0


def test_indexes_of_two_languages_rank_words_of_both(opened: Opened) -> None:
    german = [
        Document("haus", "Die Häuser der Stadt liegen am Fjord, und die Schiffe fahren hinaus.", "Haus"),
        Document("brot", "Das Brot wird aus Mehl und Wasser gebacken, und nichts anderem.", "Brot"),
    ]
    one = opened.build("one", [*NORTH, *german], language="auto")
    both = Indexes(
        {"en": opened.build("en", NORTH, language="auto"), "de": opened.build("de", german, language="auto")}
    )
    for question in ("Haus am Fjord", QUESTION, "ice Brote"):
        for mode in ("bm25", "walk"):
            expected, found = one.retrieve(question, mode=mode), both.retrieve(question, mode=mode)
            assert [(row.document, row.score) for row in found.passages] == [
                (row.document, row.score) for row in expected.passages
            ]
            assert found.passages


def test_an_index_without_the_vectors_of_the_others_is_named(opened: Opened) -> None:
    """Vectors of different spaces are never compared."""
    fitted = opened.build("fitted", NORTH, embedder="builtin", modes="knn,walk")
    plain = opened.build("plain", SOUTH, embedder="builtin", modes="walk")
    both = Indexes({"fitted": fitted, "plain": plain})
    with pytest.raises(ModeUnavailable, match="knn"):
        both.retrieve(QUESTION, mode="knn")
    assert {row.index for row in both.retrieve(QUESTION, mode="walk").passages} == {"fitted", "plain"}
