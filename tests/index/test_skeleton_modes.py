"""Modes that read a skeleton: what is printed, in which tables, and within which budget."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from ketrag_fast import Index, Settings, _core
from ketrag_fast.kernels.text import count_tokens
from ketrag_fast.query import modes
from ketrag_fast.query.modes import build_request, find_recipe
from tests.oracles.skeleton import ChunkReply, FoldedEntity, FoldedRelation
from tests.process import POLAR
from tests.support.skeleton_index import searcher_with_skeleton

QUESTION = "Which ship did Amundsen sail to the Ross Ice Shelf, and who built her?"
REPLIES = [
    ChunkReply(
        chunk,
        [
            FoldedEntity("Roald Amundsen", "person", "Amundsen led the expedition"),
            FoldedEntity("Fram", "ship", "a ship"),
        ],
        [
            FoldedRelation("Roald Amundsen", "Fram", "Amundsen sailed the Fram", 1.0),
            FoldedRelation("Fram", "Colin Archer", "Colin Archer built the Fram", 1.0),
            FoldedRelation("Roald Amundsen", "Ross Ice Shelf", "Amundsen landed on the Ross Ice Shelf", 1.0),
            FoldedRelation("Roald Amundsen", f"Man {chunk}", f"Amundsen knew man {chunk}", 1.0),
        ],
    )
    for chunk in range(40)
]
GRAPH = ["entities", "relationships", "sources"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skeleton")
    Index.build(POLAR / "articles", folder / "index", settings=Settings(modes="auto,text,keyword")).close()
    return folder


@pytest.fixture(scope="module")
def searcher(index: Path) -> _core.Searcher:
    (index / "arrays").mkdir()
    return searcher_with_skeleton(index / "index", index / "arrays", REPLIES)


def asked(
    searcher: _core.Searcher,
    mode: str,
    budget: int,
    *,
    share: float = 0.4,
    rollover: Any = "none",
    rules: Mapping[str, Any] = MappingProxyType({}),
    **more: Any,
) -> _core.Printed:
    settings, found = Settings(kg_share=share, **more), find_recipe(mode)
    request = _core.Request(
        mode,
        modes.split_budget(found, settings),
        [budget],
        rollover={"none": "none", "texts": "last", "graph": "first"}[rollover],
        options={**settings.rules, **rules},
    )
    reply = searcher.answer(request, QUESTION)
    assert reply.reason is None
    return reply.contexts[0]


@pytest.mark.parametrize(
    ("mode", "tables"),
    [
        ("skeleton", GRAPH),
        ("ket", [*GRAPH, "text"]),
    ],
)
@pytest.mark.parametrize("budget", [0, 20, 60, 300, 1000, 4000, 12000])
@pytest.mark.parametrize("rollover", ["none", "texts", "graph"])
def test_tables_and_budgets(
    searcher: _core.Searcher, mode: str, tables: list[str], budget: int, rollover: str
) -> None:
    found = asked(searcher, mode, budget, rollover=rollover)
    tokens, units, spans, printed = found.tokens, found.units, found.spans, found.sections
    assert tokens == sum(table[2] for table in printed) <= budget
    names = [table[0] for table in printed]
    assert names == tables if budget >= 1000 else [name for name in tables if name in names] == names
    whole = found.text.encode()
    assert [whole[end : end + 2] for _, _, _, _, end in printed[:-1]] == [b"\n\n"] * (len(printed) - 1)
    assert len(units) == len(found.row_tokens) == len(spans) == len(found.scores)
    places = searcher.places(units, [b - a for a, b in spans])
    for (a, b), place in zip(spans, places, strict=True):
        assert whole[a:b].decode() == place[5]
    if mode == "ket":
        graph = sum(table[2] for table in printed if table[1] == "kg")
        first = int(budget * 0.4 + 0.5 + 1e-9)
        assert rollover == "graph" or graph <= first
        assert rollover == "texts" or tokens - graph <= budget - first
    if rollover == "texts":
        assert len(set(units)) == len(units)


def test_the_words_of_the_tables(searcher: _core.Searcher) -> None:
    text = asked(searcher, "ket", 4000).text
    assert text.startswith("-----Entities-----\nid|entity|description|number of relationships\n")
    assert "\n\n\n-----Relationships-----\nid|source|target|description|weight|rank|links\n" in text
    assert "|ROALD AMUNDSEN|ROSS ICE SHELF|Amundsen landed on the Ross Ice Shelf|40.0|" in text
    assert "\n\n\n-----Sources-----\nid|text\n" in text
    assert "\n\n\n-----Text source that may be relevant-----\nid|text\nchunk_1|" in text


@pytest.mark.parametrize(("share", "names"), [(0.0, ["text"]), (1.0, GRAPH)])
def test_a_share_of_all_or_nothing(searcher: _core.Searcher, share: float, names: list[str]) -> None:
    printed = asked(searcher, "ket", 4000, share=share)
    assert [table[0] for table in printed.sections] == names
    twin = asked(searcher, "keyword" if share == 0.0 else "skeleton", 4000)
    assert printed.text == twin.text


@pytest.mark.parametrize("rollover", ["texts", "graph"])
def test_rollover_wastes_less(searcher: _core.Searcher, rollover: str) -> None:
    """The half that comes first is as it is without; the other has what that leaves."""
    plain, rolled = asked(searcher, "ket", 2000), asked(searcher, "ket", 2000, rollover=rollover)
    assert 2000 >= rolled.tokens >= plain.tokens + (rollover == "texts")
    first = GRAPH if rollover == "texts" else ["text"]
    tables = [[table[2:3] for table in found.sections if table[0] in first] for found in (plain, rolled)]
    assert tables[0] == tables[1]


def test_texts_print_no_source_again(searcher: _core.Searcher) -> None:
    """What stands in the tables' sources is left out, and nothing else: the order of the rest stays."""
    found = asked(searcher, "ket", 4000, rollover="texts")
    units, spans, printed = found.units, found.spans, found.sections
    begin = next(table[3] for table in printed if table[0] == "text")
    sources = {unit for unit, span in zip(units, spans, strict=True) if span[0] < begin}
    texts = [unit for unit, span in zip(units, spans, strict=True) if span[0] >= begin]
    assert sources and texts and not sources & set(texts)
    room = 4000 - sum(table[2] for table in printed if table[1] == "kg") - 1
    alone = [unit for unit in asked(searcher, "keyword", room).units if unit not in sources]
    assert texts[: len(alone)] == alone


def test_skeleton_alone_gives_its_sources_what_the_tables_leave(searcher: _core.Searcher) -> None:
    plain, rolled = asked(searcher, "skeleton", 1500), asked(searcher, "skeleton", 1500, rollover="texts")
    assert rolled.tokens > plain.tokens
    assert rolled.units[: len(plain.units)] == plain.units


def test_more_entities_begin_more_tables(searcher: _core.Searcher) -> None:
    def entities(count: int) -> int:
        found = asked(searcher, "skeleton", 12_000, rules={"seed_entities": count})
        _, _, _, a, b = found.sections[0]
        return found.text.encode()[a:b].decode().strip().count("\n") - 1

    assert [entities(count) for count in (1, 5, 10, 20)] == [1, 5, 10, 20]


def test_published_tables(searcher: _core.Searcher) -> None:
    """Those of graphrag (tests/parity compares them row by row): rows without a column of links, sources that
    come again; and never more than the budget.
    """
    for budget in (300, 1000, 4000, 12_000):
        for mode in ("skeleton", "ket"):
            for rollover in ("none", "graph"):
                found = asked(searcher, mode, budget, rollover=rollover, rules={"tables": "published"})
                assert count_tokens([found.text])[0] <= budget and found.tokens <= budget
    own, published = (
        asked(searcher, "skeleton", 4000, rules={"tables": made}).text for made in ("own", "published")
    )
    assert own != published and published.startswith("-----Entities-----\n")


def test_an_empty_skeleton_gives_its_share_away(index: Path, tmp_path: Path) -> None:
    searcher = searcher_with_skeleton(index / "index", tmp_path, [])
    reply = searcher.answer(build_request(Settings(), find_recipe("ket"), [4000]), QUESTION)
    assert (reply.reason, reply.empty_channels) == (None, ["skeleton"])
    assert reply.contexts[0].text == asked(searcher, "keyword", 4000).text
    alone = searcher.answer(build_request(Settings(), find_recipe("skeleton"), [4000]), QUESTION)
    assert (alone.contexts[0].text, alone.empty_channels) == ("", ["skeleton"])


def test_a_question_that_matches_nothing(searcher: _core.Searcher) -> None:
    reply = searcher.answer(build_request(Settings(), find_recipe("ket"), [4000]), "zzxqy")
    assert (reply.reason, reply.contexts[0].text) == ("no_match", "")


def test_what_is_missing_is_named(index: Path) -> None:
    with Index.open(index / "index") as opened:
        assert not {"ket", "skeleton"} & set(opened.modes)
