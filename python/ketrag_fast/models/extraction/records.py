"""What is read out of one chunk, whoever read it (KET-RAG, Alg. 1; 10-ketrag 1.3 steps 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class EntityRecord(NamedTuple):
    """An entity as one chunk tells of it. Cleaned, not yet upper-cased or merged."""

    name: str
    type: str = ""
    description: str = ""


class RelationRecord(NamedTuple):
    """Two entities' names and what joins them. `strength` is finite."""

    source: str
    target: str
    description: str = ""
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Extraction:
    """All records of one chunk, in the order of the reply; `dropped` counts the malformed ones."""

    entities: tuple[EntityRecord, ...] = ()
    relations: tuple[RelationRecord, ...] = ()
    dropped: int = 0
