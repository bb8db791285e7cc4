"""An edit is found by the very next call, whichever way it is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ketrag_fast import Index
from tests.process import ketrag
from tests.support.parts import part

pytestmark = pytest.mark.usefixtures("loopback")
Find = Callable[[str], str]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    for name in ("a", "b", "sub/c"):
        (folder / f"{name}.md").write_text(f"# Note {name}\n\nThe penguins of {name} swim.\n")
    Index.build(folder, tmp_path / "index").close()
    return folder


def command(*words: str) -> Callable[[Path], contextmanager]:  # type: ignore[type-arg]
    @contextmanager
    def use(index: Path) -> Iterator[Find]:
        yield lambda word: ketrag(*words, word, "--index", str(index), cwd=index.parent).out

    return use


@contextmanager
def library(index: Path) -> Iterator[Find]:
    with Index.open(index) as opened:

        def find(word: str) -> str:
            opened.freshen()
            return str(opened.search(word).hits) + str(opened.retrieve(word).text)

        yield find


@contextmanager
def mcp(index: Path) -> Iterator[Find]:
    part("mcp", "server")
    from mcp.client.client import Client

    from ketrag_fast.apps.server.mcp_tools import create_mcp_server
    from ketrag_fast.apps.server.options import ServerOptions
    from ketrag_fast.apps.server.service import OpenIndexes

    opened = OpenIndexes(ServerOptions(indexes={"notes": str(index)}))

    async def call(word: str) -> str:
        async with Client(create_mcp_server(opened, local=True)) as client:
            found = [await client.call_tool("search", {"query": word})]
            found.append(await client.call_tool("grep", {"pattern": word}))
            return "".join(str(one.content[0].text) for one in found)

    yield lambda word: asyncio.run(asyncio.wait_for(call(word), 60))
    opened.close()


WAYS = {
    "search": command("search"),
    "retrieve": command("retrieve"),
    "grep": command("grep"),
    "library": library,
    "mcp": mcp,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_next_call_finds_an_edit_and_not_the_text_before(way: str, notes: Path) -> None:
    with WAYS[way](notes.parent / "index") as find:
        assert "penguins of a" in find("penguins")
        (notes / "a.md").write_text("# Note a\n\nThe walruses of a sleep.\n")
        assert "walruses of a" in find("walruses")
        assert "penguins of a" not in find("penguins")
        (notes / "sub" / "new.md").write_text("# New\n\nThe kestrels of new nest.\n")
        assert "kestrels of new" in find("kestrels")
        (notes / "deep" / "er").mkdir(parents=True)
        (notes / "deep" / "er" / "d.md").write_text("# Deep\n\nThe narwhals of d dive.\n")
        assert "narwhals of d" in find("narwhals")
        (notes / "b.md").rename(notes / "sub" / "moved.md")
        assert "penguins of b" in find("penguins")
        (notes / "sub" / "c.md").unlink()
        assert "penguins of sub/c" not in find("penguins")
