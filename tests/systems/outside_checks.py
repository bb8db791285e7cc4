"""A small index, and what holds while the system of another package is broken."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast import Document, Index, Settings
from ketrag_fast.base.config import catalogue
from tests.systems.outside import Install

DOCUMENTS = [Document("a", "Ada wrote the first program."), Document("b", "Charles built an engine for Ada.")]


def broken(found: Install, source: str, *, whole: bool = False) -> str:
    """Why the system of this package cannot be used; that it is, is checked."""
    registry = found(source, whole=whole)
    assert "mine" not in {system.name for system in registry.systems}
    assert "backwards" not in registry.recipes
    assert "own_start" not in catalogue()
    return registry.broken["mine"]


def unharmed(path: Path) -> None:
    """Everything else works while a system is broken."""
    with Index.build(DOCUMENTS, path, settings=Settings(modes="bm25")) as index:
        assert index.retrieve("Who built an engine?", mode="bm25").passages[0].document == "b"
        assert index.modes == ("bm25", "walk", "survey")
        assert index.stats()["counts"]["documents"] == 2
