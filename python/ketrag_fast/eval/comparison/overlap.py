"""Overlap of two graphs: entities by name, relations by their pair of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any

from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared.rows import Arrays, read_strings


@dataclass(frozen=True, slots=True)
class Graph:
    """Names and pairs of a graph of entities; names are in upper case, pairs are unordered."""

    entities: frozenset[str]
    relations: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Shared:
    """Two sets: the number of items in A alone, in both, in B alone."""

    only_a: int
    both: int
    only_b: int

    @property
    def jaccard(self) -> float | None:
        """Jaccard index; None if both sets are empty."""
        every = self.only_a + self.both + self.only_b
        return self.both / every if every else None

    def to_json(self) -> dict[str, Any]:
        """Return the counts and the share."""
        return {**asdict(self), "jaccard": self.jaccard}


@dataclass(frozen=True, slots=True)
class Overlap:
    """The overlap of the graphs of two configurations."""

    a: str
    b: str
    entities: Shared
    relations: Shared

    def to_json(self) -> dict[str, Any]:
        """Return the overlap for a report."""
        shared = {"entities": self.entities.to_json(), "relations": self.relations.to_json()}
        return {"a": self.a, "b": self.b, **shared}


def graph_of(stages: Mapping[str, Arrays]) -> Graph | None:
    """Return the first graph of entities that a stage of an index declares; None if the index has none."""
    for stage in registry().stages:
        arrays = stages.get(stage.name)
        if stage.entity_graph is not None and arrays is not None:
            own = stage.entity_graph
            names = read_strings(arrays, own.name)
            pairs = zip(arrays[own.source].tolist(), arrays[own.target].tolist(), strict=True)
            linked = (sorted((names[a], names[b])) for a, b in pairs)
            return Graph(frozenset(names), frozenset((a, b) for a, b in linked))
    return None


def overlaps(graphs: Sequence[tuple[str, Graph]]) -> list[Overlap]:
    """Return the overlap of every pair, in the given order."""
    return [
        Overlap(a, b, _overlap(one.entities, two.entities), _overlap(one.relations, two.relations))
        for place, (a, one) in enumerate(graphs)
        for b, two in graphs[place + 1 :]
    ]


def _overlap(a: Set[Any], b: Set[Any]) -> Shared:
    both = len(a & b)
    return Shared(len(a) - both, both, len(b) - both)
