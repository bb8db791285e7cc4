"""`Query`: one value for what is asked of an index, the same as keywords, validated when it is made."""

from __future__ import annotations

import asyncio
import inspect as python_inspect
from collections import Counter
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Document, Index, KetragError, Query, Settings, _core
from ketrag_fast.errors import ConfigError, EmptyQuery, InputError
from ketrag_fast.systems.registry import Registry

SHIP = "Who sailed the Fram?"
ICE = "Which ship drifted in the ice?"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    texts = {
        "fram": "Fridtjof Nansen sailed the Fram into the ice in 1893.",
        "gjoa": "Roald Amundsen sailed the Gjoa through the passage in 1903.",
        "maud": "The Maud drifted in the ice for years. Amundsen had built her.",
    }
    documents = [
        Document(id=name, title=name.title(), text=text, metadata={"open": name != "maud"})
        for name, text in texts.items()
    ]
    path = tmp_path_factory.mktemp("query") / "ix"
    with Index.build(documents, path, settings=Settings(threads=1, modes="walk,bm25")) as built:
        yield built


def shown(context: Any) -> tuple[Any, ...]:
    return context.question, context.mode, context.budget, context.text, [p.unit for p in context.passages]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mode": "bm25", "budget": 60},
        {"top": 1},
        {"filter": "open=true"},
        {"filter": {"open": True}, "explain": True},
        {"allow": {"open": True}, "deadline": 60.0},
    ],
)
def test_a_query_is_the_same_as_keywords(index: Index, fields: dict[str, Any]) -> None:
    wanted = index.retrieve(SHIP, **fields)
    query = Query(SHIP, **fields)
    assert shown(index.retrieve(query)) == shown(wanted)
    assert [p.why for p in index.retrieve(query).passages] == [p.why for p in wanted.passages]
    assert shown(index.retrieve_many([query])[0]) == shown(wanted)
    assert shown(asyncio.run(index.aretrieve(query))) == shown(wanted)
    assert shown(index.ask(query, llm="none").context) == shown(wanted)


def test_keywords_replace_fields_of_a_query(index: Index) -> None:
    query = Query(SHIP, mode="bm25", budget=500)
    assert index.retrieve(query, budget=7).budget == 7
    assert index.retrieve(query, budget=7).mode == "bm25"
    assert query.budget == 500
    rows = index.retrieve_many([query], budgets=[10, 400])
    assert [[context.budget for context in row] for row in rows] == [[10, 400]]
    with pytest.raises(InputError, match="budget"):
        index.retrieve_many([query], budgets=[10], budget=5)
    with pytest.raises(ConfigError, match="modus"):
        index.retrieve(SHIP, modus="walk")  # type: ignore[call-arg]


def test_many_queries_with_options_of_their_own(index: Index) -> None:
    queries = [
        ICE,
        Query(SHIP, mode="bm25"),
        Query(ICE, filter={"open": True}),
        Query(SHIP, allow="open=true"),
        SHIP,
        Query(ICE, filter={"open": 1}),
        Query(ICE, filter="open=true"),
        Query(SHIP, mode="bm25", top=1),
    ]
    found = index.retrieve_many(queries, threads=2)
    assert [shown(context) for context in found] == [shown(index.retrieve(query)) for query in queries]
    assert found[2].fitting == found[6].fitting == 2
    assert found[5].fitting == 0  # True is not 1 in a filter
    assert index.retrieve_many([]) == []


@pytest.mark.parametrize(
    ("fields", "error", "value"),
    [
        ({"text": ""}, EmptyQuery, "empty"),
        ({"text": " \n"}, EmptyQuery, "empty"),
        ({"text": 5}, InputError, "int"),
        ({"text": None}, InputError, "NoneType"),
        ({"mode": 5}, ConfigError, "int"),
        ({"budget": -1}, ConfigError, "-1"),
        ({"budget": 1.5}, ConfigError, "float"),
        ({"top": -2}, ConfigError, "-2"),
        ({"top": "3"}, ConfigError, "str"),
        ({"deadline": -0.5}, InputError, "-0.5"),
        ({"deadline": float("nan")}, InputError, "nan"),
        ({"deadline": True}, InputError, "True"),
        ({"filter": "year>"}, InputError, "filter"),
        ({"filter": 5}, InputError, "filter"),
        ({"allow": {}}, InputError, "allow"),
        ({"allow": "team="}, InputError, "allow"),
    ],
)
def test_a_bad_field_is_refused_when_the_query_is_made(
    fields: dict[str, Any], error: type[KetragError], value: str
) -> None:
    with pytest.raises(error, match=value):
        Query(**{"text": SHIP, **fields})


def test_a_bad_text_among_many_is_named_by_its_position(index: Index) -> None:
    with pytest.raises(EmptyQuery, match="question 2"):
        index.retrieve_many([SHIP, Query(ICE), " "])
    for one in (SHIP, Query(SHIP), b"Fram"):
        with pytest.raises(InputError, match="list"):
            index.retrieve_many(one)  # type: ignore[arg-type]


def test_a_query_is_a_frozen_value() -> None:
    query = Query(SHIP, budget=np.int64(50), filter={"open": True})  # type: ignore[arg-type]
    assert type(query.budget) is int
    with pytest.raises(FrozenInstanceError):
        query.mode = "bm25"  # type: ignore[misc]
    assert query == Query(SHIP, budget=50, filter={"open": True}) != replace(query, top=1)
    assert len({query, Query(SHIP, budget=50, filter={"open": True}), replace(query, text=ICE)}) == 2


def test_a_mapping_that_changes_later_does_not_change_the_query(index: Index) -> None:
    given = {"open": True}
    query = Query(ICE, filter=given)
    wanted = shown(index.retrieve(query))
    given["open"] = False
    assert shown(index.retrieve(query)) == wanted


@pytest.mark.parametrize("fields", [{}, {"explain": True}, {"deadline": 60.0}, {"mode": "auto"}])
def test_a_query_resolves_its_mode_and_builds_its_request_once(
    index: Index, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    counts: Counter[str] = Counter()
    recipe, request = Registry.recipe, _core.Request

    def counted_recipe(self: Registry, mode: str) -> Any:
        counts["recipes"] += 1
        return recipe(self, mode)

    def counted_request(*values: Any, **options: Any) -> Any:
        counts["requests"] += 1
        return request(*values, **options)

    monkeypatch.setattr(Registry, "recipe", counted_recipe)
    monkeypatch.setattr(_core, "Request", counted_request)
    context = index.retrieve(SHIP, **{"mode": "walk", **fields})
    assert len(context.passages)
    assert counts == {"recipes": 1, "requests": 1}


def test_index_has_few_public_members(index: Index) -> None:
    members = {name for name in {*dir(Index), *vars(index)} if not name.startswith("_")}
    assert len(members) <= 42, sorted(members)
    assert {"build", "open", "retrieve", "ask", "inspect", "stats", "path", "report"} <= members
    assert Index.__mro__ == (Index, object)
    assert not python_inspect.isabstract(Index)
