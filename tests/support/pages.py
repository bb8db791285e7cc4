"""Small documents, and an index of them that deltas change."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast import Document, Index
from tests.support.histories import SETTINGS


def page(n: int, text: str = "") -> Document:
    """Return page `n`, with a text of its own or another one."""
    return Document(
        f"page-{n:03}", text or f"Page {n} says that Nansen built the Fram in {1800 + n}.", f"Page {n}"
    )


def built(path: Path, count: int = 12) -> list[Document]:
    """Build an index of the first pages, and return them."""
    documents = [page(n) for n in range(count)]
    Index.build(documents, path, settings=SETTINGS).close()
    return documents
