"""A small index, and the service over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from tests.support.browser_fixtures import page as page
from tests.support.browser_fixtures import pictures as pictures
from tests.support.browser_fixtures import window as window

QUESTION = "Who sailed the Fram across the polar basin?"
TEXTS = {
    "fram": "The Fram drifted across the polar basin under Fridtjof Nansen. She was built by Colin Archer.",
    "maud": "The Maud was the last polar ship of Roald Amundsen. Oscar Wisting was her captain.",
    "gjoa": "The Gjøa sailed the Northwest Passage under Roald Amundsen in 1906.",
    "odd": "An odd text: <script>alert(1)</script> \x1b[31mred\x1b[0m \u202eturned\u202c \x9b2J "
    "and Colin Archer.",
}


def documents() -> list[Document]:
    return [
        Document(f"{name}.md", text, name.title(), {"letters": len(name)}) for name, text in TEXTS.items()
    ]


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "index"
    settings = Settings(threads=1, llm="heuristic")
    Index.build(documents(), path, settings=settings).close()
    return path


@pytest.fixture(scope="package", params=[True, False], ids=["front", "application"])
def served(folder: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The service, with plain requests answered by the core's front and by the application."""
    from tests.support.service import running

    with running(folder, concurrency=2, front=request.param) as service:
        yield service


@pytest.fixture
def client(served: Any, loopback: None) -> Iterator[Any]:
    with served.client() as made:
        yield made
