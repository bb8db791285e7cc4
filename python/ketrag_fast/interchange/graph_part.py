"""The part of a graph that is exported: all of it, the neighbourhood of a node, or nodes of some units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import InputError
from ketrag_fast.systems.spec.graph_tables import Column, GraphTables

I64 = NDArray[np.int64]
BATCH: Final = 8192
"""Rows that are in memory at a time."""
_SIMILAR: Final = 5

Tick = Callable[[int], None]
"""Called with the number of rows that were written; raises Cancelled to stop."""


class NodeRows(NamedTuple):
    """Some nodes: their numbers, their kinds, and their columns."""

    ids: I64
    kinds: list[str]
    columns: Mapping[str, Sequence[Any]]


class EdgeRows(NamedTuple):
    """Some edges: their numbers, their ends, their kinds, and their columns."""

    ids: I64
    source: NDArray[np.uint32]
    target: NDArray[np.uint32]
    kinds: list[str]
    columns: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class GraphPart:
    """Nodes and edges of a graph, by number and ascending; edges have both ends among the nodes."""

    name: str
    tables: GraphTables
    node_ids: I64
    edge_ids: I64
    whole: bool

    def node_rows(self, columns: Sequence[str] | None = None) -> Iterator[NodeRows]:
        """Yield all nodes in batches, with some or all columns."""
        held = _chosen(self.tables.nodes, columns)
        for first in range(0, len(self.node_ids), BATCH):
            ids = self.node_ids[first : first + BATCH]
            kinds = [self.tables.kinds[number] for number in self.tables.kind[ids].tolist()]
            yield NodeRows(ids, kinds, {name: column.read(ids) for name, column in held.items()})

    def edge_rows(self, columns: Sequence[str] | None = None) -> Iterator[EdgeRows]:
        """Yield all edges in batches, with some or all columns."""
        held = _chosen(self.tables.edges, columns)
        for first in range(0, len(self.edge_ids), BATCH):
            ids = self.edge_ids[first : first + BATCH]
            kinds = [self.tables.relations[number] for number in self.tables.relation[ids].tolist()]
            yield EdgeRows(
                ids,
                self.tables.source[ids],
                self.tables.target[ids],
                kinds,
                {name: column.read(ids) for name, column in held.items()},
            )

    def degrees(self) -> NDArray[np.int64]:
        """Return the number of edges of each node of the whole graph that are in this part."""
        count = len(self.tables)
        ends = (self.tables.source, self.tables.target)
        parts = [np.bincount(end[self.edge_ids], minlength=count) for end in ends]
        return (parts[0] + parts[1]).astype(np.int64)

    def titles(self) -> Callable[[NDArray[Any]], Sequence[str]]:
        """Return a function from node numbers to names that differ from each other."""
        names = self.tables.nodes["name"].read
        if self.tables.unique_names:
            return lambda ids: names(ids.astype(np.int64))
        kind, kinds = self.tables.kind, self.tables.kinds

        def told(ids: NDArray[Any]) -> list[str]:
            rows = ids.astype(np.int64)
            marks = zip(names(rows), kind[rows].tolist(), rows.tolist(), strict=True)
            return [f"{name} [{kinds[number]} {row}]" for name, number, row in marks]

        return told


def _chosen(held: Mapping[str, Column], columns: Sequence[str] | None) -> Mapping[str, Column]:
    return held if columns is None else {name: held[name] for name in columns if name in held}


def whole_graph(name: str, tables: GraphTables) -> GraphPart:
    """Return the part that is the whole graph."""
    return GraphPart(name, tables, np.arange(len(tables)), np.arange(len(tables.source)), whole=True)


def part_of(name: str, tables: GraphTables, inside: NDArray[np.bool_]) -> GraphPart:
    """Return some nodes, given as a mask, and the edges between them."""
    edges = np.flatnonzero(inside[tables.source] & inside[tables.target])
    return GraphPart(name, tables, np.flatnonzero(inside), edges, whole=False)


def neighbourhood(name: str, tables: GraphTables, centre: str, hops: int) -> GraphPart:
    """Return the nodes at most `hops` edges away from the nodes with a name, in either direction.

    Raises InputError if no node has the name.
    """
    if hops < 0:
        raise InputError(f"hops must be 0 or more, got {hops}")
    inside = _named(name, tables, centre)
    for _ in range(hops):
        touched = inside[tables.source] | inside[tables.target]
        before = int(inside.sum())
        inside = inside.copy()
        inside[tables.source[touched]] = True
        inside[tables.target[touched]] = True
        if int(inside.sum()) == before:
            break
    return part_of(name, tables, inside)


def of_units(name: str, tables: GraphTables, units: Sequence[int]) -> GraphPart:
    """Return the nodes that come from some units."""
    wanted, inside = set(units), np.zeros(len(tables), np.bool_)
    column = tables.nodes.get("units")
    if column is not None:
        for first in range(0, len(tables), BATCH):
            ids = np.arange(first, min(first + BATCH, len(tables)))
            held = [not wanted.isdisjoint(own) for own in column.read(ids)]
            inside[first : first + len(ids)] = held
    return part_of(name, tables, inside)


def _named(name: str, tables: GraphTables, centre: str) -> NDArray[np.bool_]:
    """Return the mask of the nodes with a name, ignoring case."""
    wanted = " ".join(centre.split()).casefold()
    inside = np.zeros(len(tables), np.bool_)
    similar: list[str] = []
    for first in range(0, len(tables), BATCH):
        ids = np.arange(first, min(first + BATCH, len(tables)))
        for place, known in enumerate(tables.nodes["name"].read(ids), first):
            folded = known.casefold()
            if folded == wanted:
                inside[place] = True
            elif wanted and wanted in folded and len(similar) < _SIMILAR:
                similar.append(known)
    if not inside.any():
        hint = f"did you mean {', '.join(similar)}?" if similar else "and no name contains it"
        raise InputError(f"the graph {name} has no node {centre!r}", hint=hint)
    return inside
