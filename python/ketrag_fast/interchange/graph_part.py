"""The part of a graph that is exported: all of it, the neighbourhood of a node, or nodes of some units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import IndexDamaged, InputError
from ketrag_fast.index import Index
from ketrag_fast.records import dataclass
from ketrag_fast.storage.io_errors import REPAIR
from ketrag_fast.systems.shared.graph_columns import texts_at
from ketrag_fast.systems.shared.rows import documents_of, strings, unit_owners
from ketrag_fast.systems.spec.drawing import Column, DrawableGraph, GraphTables, NodeBlock
from ketrag_fast.types import Document

I64 = NDArray[np.int64]
BATCH: Final = 8192
"""Rows that are in memory at a time."""
_SIMILAR: Final = 5

Tick = Callable[[int], None]
"""Called with the number of rows that were written; raises Cancelled to stop."""


class GraphRows(NamedTuple):
    """A batch of nodes or edges: numbers, kinds and columns; `source` and `target` are the ends of edges."""

    ids: I64
    kinds: list[str]
    columns: Mapping[str, Sequence[Any]]
    source: NDArray[np.uint32]
    target: NDArray[np.uint32]

    def column(self, name: str, default: Any) -> Sequence[Any]:
        """Return the values of a column, or the default for each row if the graph does not have it."""
        return self.columns[name] if name in self.columns else [default] * len(self.ids)


@dataclass(frozen=True, slots=True)
class GraphPart:
    """Nodes and edges of a graph, by number and ascending; edges have both ends among the nodes."""

    name: str
    tables: GraphTables
    node_ids: I64
    edge_ids: I64
    whole: bool

    def node_rows(self, columns: Sequence[str] | None = None) -> Iterator[GraphRows]:
        """Yield all nodes in batches, with some or all columns."""
        tables, none = self.tables, np.zeros(0, np.uint32)
        for ids in _batches(self.node_ids):
            kinds = [tables.kinds[number] for number in tables.kind[ids].tolist()]
            yield GraphRows(ids, kinds, _read(tables.nodes, columns, ids), none, none)

    def edge_rows(self, columns: Sequence[str] | None = None) -> Iterator[GraphRows]:
        """Yield all edges in batches, with some or all columns."""
        tables = self.tables
        for ids in _batches(self.edge_ids):
            kinds = [tables.relations[number] for number in tables.relation[ids].tolist()]
            values = _read(tables.edges, columns, ids)
            yield GraphRows(ids, kinds, values, tables.source[ids], tables.target[ids])

    def mentions(self) -> Iterator[tuple[I64, I64]]:
        """Yield batches of pairs of a node and one of its units."""
        return map(pairs_of, self.node_rows(("units",)))

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


def pairs_of(rows: GraphRows) -> tuple[I64, I64]:
    """Return the pairs of a node or edge and one of its units."""
    held = rows.column("units", [])
    owners = np.repeat(rows.ids, [len(own) for own in held])
    return owners, np.array([unit for own in held for unit in own], np.int64)


def _batches(ids: I64) -> Iterator[I64]:
    return (ids[first : first + BATCH] for first in range(0, len(ids), BATCH))


def _read(held: Mapping[str, Column], columns: Sequence[str] | None, ids: I64) -> dict[str, Sequence[Any]]:
    names = held if columns is None else [name for name in columns if name in held]
    return {name: held[name].read(ids) for name in names}


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
    inside = np.zeros(len(tables), np.bool_)
    for nodes, own in whole_graph(name, tables).mentions():
        inside[nodes[np.isin(own, units)]] = True
    return part_of(name, tables, inside)


def _nodes_named(name: str, tables: GraphTables, centre: str) -> NDArray[np.bool_]:
    """Return the mask of the nodes with a name, ignoring case."""
    wanted = " ".join(centre.split()).casefold()
    inside = np.zeros(len(tables), np.bool_)
    similar: list[str] = []
    for ids in _batches(np.arange(len(tables))):
        for place, known in zip(ids.tolist(), tables.nodes["name"].read(ids), strict=True):
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
        for rows in chain(self._part.node_rows(("units",)), self._part.edge_rows(("units",))):
            inside[pairs_of(rows)[1]] = True
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
        for ids in _batches(self.units):
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
                {"document": n, "id": one.id, "title": one.title, "text": one.text}
                | {"metadata": dict(one.metadata)}
                for n, one in pairs
            ]
        chunks = np.unique(self._units["unit_chunk"][self.units]).astype(np.int64)
        owners = documents_of(self._units)[0]
        for ids in _batches(chunks):
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


_MOST_KINDS: Final = 255
"""Kinds of nodes that tables can number; further ones are written as "node"."""


def drawing_tables(graph: DrawableGraph) -> GraphTables:
    """Return a drawable graph as tables, with one row for each repetition of an edge."""
    starts = np.cumsum([0, *(block.count for block in graph.blocks)])

    def each(value: Callable[[NodeBlock, int], Any]) -> Callable[[I64], list[Any]]:
        def read(rows: I64) -> list[Any]:
            owners = np.searchsorted(starts, rows, "right") - 1
            pairs = zip(rows.tolist(), owners.tolist(), strict=True)
            return [value(graph.blocks[owner], row - int(starts[owner])) for row, owner in pairs]

        return read

    kinds: dict[str, int] = {}
    kind = np.zeros(int(starts[-1]), np.uint8)
    for block, start in zip(graph.blocks, starts.tolist(), strict=False):
        for number in range(block.count if callable(block.kind) else min(block.count, 1)):
            name = block.kind(number) if callable(block.kind) else block.kind
            place = kinds.setdefault(name if len(kinds) < _MOST_KINDS else "node", len(kinds))
            last = start + number + 1 if callable(block.kind) else start + block.count
            kind[start + number : last] = place
    owners = [np.searchsorted(starts, ends, "right") - 1 for ends in (graph.sources, graph.targets)]
    pairs = np.minimum(*owners) * len(graph.blocks) + np.maximum(*owners)
    relations = [graph.edge, *dict.fromkeys(graph.edges_between.values())]
    relation = np.zeros(len(pairs), np.uint8)
    for (one, other), name in graph.edges_between.items():
        relation[pairs == one * len(graph.blocks) + other] = relations.index(name)
    return GraphTables(
        kinds=tuple(kinds) or ("node",),
        kind=kind,
        nodes={
            "name": Column("text", each(lambda block, number: block.title(number))),
            "units": Column("ids", each(lambda block, n: [] if block.unit is None else [block.unit(n)])),
        },
        relations=tuple(relations),
        relation=relation,
        source=graph.sources,
        target=graph.targets,
        edges={"weight": Column("float", lambda rows: graph.weights[rows].tolist())},
    )
