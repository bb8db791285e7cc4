"""The records extracted from a chunk (KET-RAG, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class EntityRecord(NamedTuple):
    """An entity in one chunk. Cleaned, but not yet upper-cased or merged."""

    name: str
    type: str = ""
    description: str = ""


class RelationRecord(NamedTuple):
    """A relation between two entities, by name. `strength` is finite."""

    source: str
    target: str
    description: str = ""
    strength: float = 1.0


class NameMention(NamedTuple):
    """A mention of an entity in the text."""

    start: int
    end: int
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """All records of a chunk, in reply order; `dropped` counts malformed ones."""

    entities: tuple[EntityRecord, ...] = ()
    relations: tuple[RelationRecord, ...] = ()
    dropped: int = 0
