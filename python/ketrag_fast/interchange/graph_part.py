"""The part of a graph that is exported: all of it, the neighbourhood of a node, or nodes of some units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import IndexDamaged, InputError
from ketrag_fast.index import Index
from ketrag_fast.storage.io_errors import REPAIR
from ketrag_fast.systems.shared.graph_columns import texts_at
from ketrag_fast.systems.shared.rows import documents_of, strings, unit_owners
from ketrag_fast.systems.spec.drawing import Column, GraphTables
from ketrag_fast.types import Document

I64 = NDArray[np.int64]
BATCH: Final = 8192
"""Rows that are in memory at a time."""
_SIMILAR: Final = 5

Tick = Callable[[int], None]
"""Called with the number of rows that were written; raises Cancelled to stop."""


class NodeRows(NamedTuple):
    """A batch of nodes: numbers, kinds and columns."""

    ids: I64
    kinds: list[str]
    columns: Mapping[str, Sequence[Any]]


class EdgeRows(NamedTuple):
    """A batch of edges: numbers, end nodes, kinds and columns."""

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
        """Return a function that makes the names of nodes unique."""
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
    """Return the whole graph as a part."""
    return GraphPart(name, tables, np.arange(len(tables)), np.arange(len(tables.source)), whole=True)


def part_of(name: str, tables: GraphTables, inside: NDArray[np.bool_]) -> GraphPart:
    """Return the nodes of a mask and the edges between them."""
    edges = np.flatnonzero(inside[tables.source] & inside[tables.target])
    return GraphPart(name, tables, np.flatnonzero(inside), edges, whole=False)


def neighbourhood(name: str, tables: GraphTables, centre: str, hops: int) -> GraphPart:
    """Return the nodes at most `hops` edges away from the nodes with a name, in either direction.

    Raises InputError if no node has the name.
    """
    if hops < 0:
        raise InputError(f"hops must be 0 or more, got {hops}")
    inside = _nodes_named(name, tables, centre)
    for _ in range(hops):
        touched = inside[tables.source] | inside[tables.target]
        before = int(inside.sum())
        inside = inside.copy()
        inside[tables.source[touched]] = True
        inside[tables.target[touched]] = True
        if int(inside.sum()) == before:
            break
    return part_of(name, tables, inside)


def nodes_of_units(name: str, tables: GraphTables, units: Sequence[int]) -> GraphPart:
    """Return the nodes that occur in some units."""
    wanted, inside = set(units), np.zeros(len(tables), np.bool_)
    column = tables.nodes.get("units")
    if column is not None:
        for first in range(0, len(tables), BATCH):
            ids = np.arange(first, min(first + BATCH, len(tables)))
            held = [not wanted.isdisjoint(own) for own in column.read(ids)]
            inside[first : first + len(ids)] = held
    return part_of(name, tables, inside)


def _nodes_named(name: str, tables: GraphTables, centre: str) -> NDArray[np.bool_]:
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


_MOST_TEXT: Final = 4_000_000
"""Characters of documents that are in memory at a time, apart from the last document."""


class Passages:
    """The units of a part of a graph, and their chunks and documents; all of them for a whole graph."""

    def __init__(self, index: Index, part: GraphPart) -> None:
        self._index = index
        self._units: Mapping[str, NDArray[Any]] = index.inspect.arrays()["units"]
        self._part = part
        self.owners = unit_owners(self._units)
        self.document_rows = documents_of(self._units)[1].astype(np.int64)

    @cached_property
    def units(self) -> I64:
        """The numbers of the units, ascending."""
        count = len(self._units["unit_tokens"])
        if self._part.whole:
            return np.arange(count)
        inside = np.zeros(count, np.bool_)
        for nodes in self._part.node_rows(("units",)):
            for own in nodes.columns.get("units", ()):
                inside[own] = True
        for edges in self._part.edge_rows(("units",)):
            for own in edges.columns.get("units", ()):
                inside[own] = True
        return np.flatnonzero(inside)

    @cached_property
    def document_numbers(self) -> I64:
        """The numbers of the documents, ascending."""
        if self._part.whole:
            return np.arange(len(self.document_rows))
        return np.unique(self.owners[self.units]).astype(np.int64)

    @cached_property
    def unit_ends(self) -> I64:
        """For each document of the index the position of its first unit in `units`, and their number."""
        return np.searchsorted(self.owners[self.units], np.arange(len(self.document_rows) + 1))

    def unit_batches(self) -> Iterator[tuple[I64, list[str], list[int], NDArray[np.uint32]]]:
        """Yield numbers, texts, token counts and documents of the units."""
        for first in range(0, len(self.units), BATCH):
            ids = self.units[first : first + BATCH]
            texts = texts_at(strings(self._units, "unit_texts"), ids)
            yield ids, texts, self._units["unit_tokens"][ids].tolist(), self.owners[ids]

    def ids(self, documents: NDArray[Any]) -> list[str]:
        """Return the ids of documents, by number."""
        return texts_at(strings(self._units, "document_ids"), self.document_rows[documents])

    def document_batches(self) -> Iterator[tuple[list[int], list[Document]]]:
        """Yield numbers and documents.

        Raises IndexMissing, IndexLocked as `Inspection.stored`, IndexDamaged if the tables differ.
        """
        wanted = np.zeros(len(self.document_rows), np.bool_)
        wanted[self.document_numbers] = True
        numbers: list[int] = []
        held: list[Document] = []
        size = 0
        for number, document in enumerate(self._index.inspect.stored()):
            if number >= len(wanted) or document.id != self.ids(np.array([number]))[0]:
                raise IndexDamaged(
                    f"the stored documents of {self._index.path} differ from its generation", hint=REPAIR
                )
            if not wanted[number]:
                continue
            numbers.append(number)
            held.append(document)
            size += len(document.text)
            if size > _MOST_TEXT or len(held) >= BATCH:
                yield numbers, held
                numbers, held, size = [], [], 0
        if held:
            yield numbers, held

    def json_rows(self) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Yield batches of objects: documents, then chunks, then units."""
        for numbers, documents in self.document_batches():
            pairs = zip(numbers, documents, strict=True)
            yield [
                {
                    "document": number,
                    "id": one.id,
                    "title": one.title,
                    "text": one.text,
                    "metadata": dict(one.metadata),
                }
                for number, one in pairs
            ]
        chunks = np.unique(self._units["unit_chunk"][self.units]).astype(np.int64)
        owners = documents_of(self._units)[0]
        for first in range(0, len(chunks), BATCH):
            ids = chunks[first : first + BATCH]
            rows = zip(
                ids.tolist(),
                owners[self._units["chunk_document"][ids]].tolist(),
                self._units["chunk_tokens"][ids].tolist(),
                strict=True,
            )
            yield [{"chunk": n, "document": document, "tokens": t} for n, document, t in rows]
        for ids, texts, tokens, documents_ in self.unit_batches():
            parts = (ids, self._units["unit_chunk"][ids], documents_, self._units["unit_span"][ids])
            listed = zip(*(part.tolist() for part in parts), tokens, texts, strict=True)
            yield [
                {
                    "unit": n,
                    "chunk": chunk,
                    "document": document,
                    "start": span[0],
                    "end": span[1],
                    "tokens": count,
                    "text": text,
                }
                for n, chunk, document, span, count, text in listed
            ]
