"""An index with every graph, over documents with hostile names, texts and metadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings

HOSTILE = (
    'He said "=1+1", <script>alert(1)</script> & left.\r\n\x0b\x01\ufffe '
    "Then \u202egnp.exe\u202c came to Oslo."
)
DOCUMENTS = [
    Document(
        "fram",
        "Fridtjof Nansen sailed the Fram into the ice in 1893. Colin Archer built the Fram in Larvik. "
        "Hjalmar Johansen left the Fram with Fridtjof Nansen.",
        "Fram",
        {"team": "polar", "year": 1893, "cites": ["maud"]},
    ),
    Document(
        "maud",
        "Roald Amundsen sailed the Maud. The Maud was built in Asker. Roald Amundsen had sailed the Fram to "
        "Antarctica, as Fridtjof Nansen agreed.",
        "Maud",
        {"team": "polar", "year": 1916},
    ),
    Document(
        "endurance",
        "Ernest Shackleton lost the Endurance in the Weddell Sea. Frank Worsley steered the Endurance.",
        "Endurance",
        {"team": "south", "cites": ["fram"]},
    ),
    Document("=HYPERLINK(1)", HOSTILE, '+"Title", <b>\u2028one\u2029', {"team": "secret"}),
]
SETTINGS = Settings(llm="heuristic", modes="all", threads=1, theta_co=1, theta_sem=-1.0)


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.build(DOCUMENTS, tmp_path_factory.mktemp("interchange") / "index", settings=SETTINGS) as built:
        yield built


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out"
