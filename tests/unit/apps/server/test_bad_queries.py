"""Queries that nobody means to type: the same passages in Python, the command, HTTP and MCP, and no error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index
from tests.process import command
from tests.unit.apps.server.conftest import TEXTS
from tests.unit.apps.server.test_mcp import in_process, said

# The documents that each finds.
QUERIES: dict[str, set[str]] = {
    "?!… — “” ()": set(),
    "-": set(),
    "\t-- *": set(),
    '"': set(),
    '"polar ship': {"fram.md", "maud.md"},
    "“polar ship": {"fram.md", "maud.md"},
    '"polar ship" "': {"maud.md"},
    "w*": {"maud.md"},
    "q*": set(),
    "colour:purple Wisting": {"maud.md"},
    "x" * 20_000: set(),
    "Wisting " * 2_500: {"maud.md"},
    '-"Wisting ' * 2_000: {"maud.md"},
    "wist* " * 500: set(),
    ": : :": set(),
    "title:": set(),
}
FIELDS = ("colour: is not a field", "title:", "in:", "type:", "from:", "after:", "before:", "letters:")


@pytest.fixture(scope="module")
def index(folder: Path) -> Any:
    with Index.open(folder) as opened:
        yield opened


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query[:12])
def test_python_finds_what_the_words_say(index: Index, query: str) -> None:
    assert {hit.document for hit in index.search(query, mode="bm25")} == QUERIES[query]
    assert {p.document for p in index.retrieve(query, mode="bm25").passages} == QUERIES[query]
    # The walk adds passages that are linked to those that match.
    linked = [hit.document for hit in index.search(query, mode="walk")]
    assert QUERIES[query] == set(linked[: len(QUERIES[query])]) and bool(linked) == bool(QUERIES[query])


def test_an_unknown_field_is_named_with_those_that_exist(index: Index) -> None:
    (note,) = index.search("colour:purple Wisting").notes
    assert all(field in note for field in FIELDS)


def test_http_answers_like_python(client: Any) -> None:
    for query, expected in QUERIES.items():
        reply = client.post("/v1/search", json={"query": query, "mode": "bm25"})
        assert reply.status_code == 200, (query[:20], reply.text)
        assert {hit["document"] for hit in reply.json()["hits"]} == expected, query[:20]
        reply = client.post("/v1/retrieve", json={"question": query, "mode": "bm25"})
        assert reply.status_code == 200, (query[:20], reply.text)
        assert {one["document"] for one in reply.json()["passages"]} == expected, query[:20]
    (note,) = client.post("/v1/search", json={"query": "colour:purple Wisting"}).json()["notes"]
    assert all(field in note for field in FIELDS)


def test_mcp_answers_like_python(folder: Path) -> None:
    async def use(client: Any) -> None:
        for query, expected in QUERIES.items():
            found = await said(client, "search", query=query)
            named = [name for name in re.findall(r"[a-z]+\.md", found) if name.removesuffix(".md") in TEXTS]
            first = list(dict.fromkeys(named))[: len(expected)]
            assert set(first) == expected and bool(named) == bool(expected), (query[:20], found)
        found = await said(client, "search", query="colour:purple Wisting")
        assert all(field in found for field in FIELDS)

    in_process(use, {"ships": str(folder)})


def test_the_command_answers_like_python(folder: Path) -> None:
    for query, expected in QUERIES.items():
        done = command("search", "-i", str(folder), "--mode", "bm25", "--json", "--", query, cwd=folder)
        assert done.code == (0 if expected else 1), (query[:20], done.err)
        assert {hit["document"] for hit in json.loads(done.out)["hits"]} == expected, query[:20]
        assert "Traceback" not in done.err
    done = command("search", "-i", str(folder), "colour:purple Wisting", cwd=folder)
    assert all(field in done.out + done.err for field in FIELDS)
