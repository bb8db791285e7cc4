"""Parquet files in the layout of Microsoft GraphRAG 2 and 3 (its `data_model/schemas.py`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.index import Index
from ketrag_fast.interchange.communities import (
    GraphCommunity,
    computed_communities,
    report,
    stored_communities,
    theme_communities,
    theme_report,
)
from ketrag_fast.interchange.graph_part import BATCH, I64, GraphPart, Passages, Tick, pairs_of
from ketrag_fast.models.optional_imports import import_quietly
from ketrag_fast.systems.spec.drawing import Column

OWN_ID: Final = "ketrag_id"
"""Metadata field that stores the document id, because the tables identify documents by UUIDs."""
TABLES: Final = (
    "entities",
    "relationships",
    "communities",
    "community_reports",
    "text_units",
    "documents",
)
NAMES: Final = tuple(f"{name}.parquet" for name in TABLES)
_WIDTH: Final = 36
Ids = NDArray[np.bytes_]


def stable_id(kind: str, *parts: str) -> str:
    """Return a UUID (version 8) that is equal for equal content.

    Examples:
        >>> stable_id("entity", "FRAM") == stable_id("entity", "FRAM") != stable_id("document", "FRAM")
        True
    """
    text = "\x1f".join((kind, *parts)).encode("utf-8", "surrogatepass")
    code = hashlib.blake2b(text, digest_size=16).hexdigest()
    return f"{code[:8]}-{code[8:12]}-8{code[13:16]}-a{code[17:20]}-{code[20:]}"


def schemas(version: int) -> dict[str, list[tuple[str, str]]]:
    """Return the columns of each table, in order, with their types."""
    head = [("id", "string"), ("human_readable_id", "int64")]
    group = [*head, ("community", "int64"), ("level", "int64"), ("parent", "int64"), ("children", "ints")]
    tail = [("period", "string"), ("size", "int64")]
    old = version == 2
    return {
        "entities": [
            *head,
            *((name, "string") for name in ("title", "type", "description")),
            ("text_unit_ids", "strings"),
            ("frequency", "int64"),
            ("degree", "int64"),
            *([("x", "double"), ("y", "double")] if old else []),
        ],
        "relationships": [
            *head,
            *((name, "string") for name in ("source", "target", "description")),
            ("weight", "double"),
            ("combined_degree", "int64"),
            ("text_unit_ids", "strings"),
        ],
        "communities": [
            *group,
            ("title", "string"),
            *((name, "strings") for name in ("entity_ids", "relationship_ids", "text_unit_ids")),
            *tail,
        ],
        "community_reports": [
            *group,
            *((name, "string") for name in ("title", "summary", "full_content")),
            ("rank", "double"),
            ("rating_explanation", "string"),
            ("findings", "findings"),
            ("full_content_json", "string"),
            *tail,
        ],
        "text_units": [
            *head,
            ("text", "string"),
            ("n_tokens", "int64"),
            ("document_ids", "strings") if old else ("document_id", "string"),
            *((name, "strings") for name in ("entity_ids", "relationship_ids", "covariate_ids")),
        ],
        "documents": [
            *head,
            ("title", "string"),
            ("text", "string"),
            ("text_unit_ids", "strings"),
            ("creation_date", "string"),
            ("metadata" if old else "raw_data", "string"),
        ],
    }


class TableWriter:
    """Writes the tables of one export, each in row groups."""

    def __init__(self, folder: Path, version: int) -> None:
        self._arrow = import_quietly("pyarrow")
        self._parquet = import_quietly("pyarrow.parquet")
        self._folder = folder
        self._schemas = schemas(version)

    def write(self, name: str, batches: Iterable[Mapping[str, Any]]) -> None:
        """Write one table from batches of columns. Columns that the schema lacks are ignored."""
        columns = self._schemas[name]
        arrow = self._arrow
        schema = arrow.schema([(column, self._type(kind)) for column, kind in columns])
        with self._parquet.ParquetWriter(self._folder / f"{name}.parquet", schema) as writer:
            for batch in batches:
                arrays = [self._array(batch[column], kind) for column, kind in columns]
                writer.write_batch(arrow.record_batch(arrays, schema=schema))

    def _type(self, kind: str) -> Any:
        arrow = self._arrow
        plain = {"string": arrow.string(), "int64": arrow.int64(), "double": arrow.float64()}
        plain |= {"strings": arrow.list_(arrow.string()), "ints": arrow.list_(arrow.int64())}
        texts = [("explanation", arrow.string()), ("summary", arrow.string())]
        return plain.get(kind) or arrow.list_(arrow.struct(texts))

    def _array(self, values: Any, kind: str) -> Any:
        arrow = self._arrow
        if isinstance(values, IdLists):
            ends = arrow.array(values.ends, arrow.int32())
            return arrow.ListArray.from_arrays(ends, self._ids(values.ids))
        if isinstance(values, np.ndarray) and values.dtype.kind == "S":
            return self._ids(values)
        return arrow.array(values, self._type(kind))

    def _ids(self, ids: Ids) -> Any:
        """Return ids, which all have the same length, without making a Python string of each."""
        arrow = self._arrow
        ends = np.arange(len(ids) + 1, dtype=np.int32) * _WIDTH
        data = np.ascontiguousarray(ids)
        return arrow.StringArray.from_buffers(len(ids), arrow.py_buffer(ends), arrow.py_buffer(data))


class IdLists:
    """A column of lists of ids: list i is `ids[ends[i]:ends[i + 1]]`."""

    def __init__(self, ids: Ids, ends: NDArray[np.int32]) -> None:
        self.ids = ids
        self.ends = ends


def _lists(ids: Ids, rows: Sequence[Sequence[int]] | Sequence[NDArray[Any]]) -> IdLists:
    """Return the ids of lists of numbers."""
    ends = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(row) for row in rows], out=ends[1:])
    flat = np.fromiter((number for row in rows for number in row), np.int64, int(ends[-1]))
    return IdLists(ids[flat], ends)


def communities_of(part: GraphPart, index: Index, *, computed: bool) -> list[GraphCommunity]:
    """Return the communities just computed; else the stored ones; else the themes, if they have summaries."""
    if computed:
        return computed_communities(part)
    if part.tables.communities is not None:
        return stored_communities(part)
    themes = index.inspect.summarised_themes()
    return [] if themes is None else theme_communities(part, themes)


class GraphRagExport:
    """One export. Ids of all nodes, edges, units and documents are in memory, 36 bytes each."""

    def __init__(self, part: GraphPart, passages: Passages, tick: Tick) -> None:
        self._part = part
        self._passages = passages
        self._tick = tick
        self._titles = part.titles()
        self._degrees = part.degrees()
        self._node_ids = _blank(len(part.tables))
        self._edge_ids = _blank(len(part.tables.source))
        self._of_units: dict[str, list[tuple[I64, I64]]] = {"node": [], "edge": []}
        """Pairs of a node or edge and one of its units."""

    def write(self, folder: Path, version: int, found: Sequence[GraphCommunity]) -> None:
        """Write all tables, without those of communities if there are none."""
        writer = TableWriter(folder, version)
        writer.write("entities", self._entities())
        writer.write("relationships", self._relationships())
        if found:
            inside = self._edges_within(found)
            writer.write("communities", self._communities(found, inside))
            writer.write("community_reports", self._reports(found, inside))
        writer.write("text_units", self._text_units())
        writer.write("documents", self._documents())

    @cached_property
    def _unit_ids(self) -> Ids:
        out = _blank(len(self._passages.owners))
        for ids, texts, _, owners in self._passages.unit_batches():
            # The number is part of it: a document may repeat a passage.
            out[ids] = _ids_of("text_unit", self._passages.ids(owners), texts, map(str, ids.tolist()))
        return out

    @cached_property
    def _document_ids(self) -> Ids:
        out = _blank(len(self._passages.document_rows))
        numbers = self._passages.document_numbers
        for first in range(0, len(numbers), BATCH):
            some = numbers[first : first + BATCH]
            out[some] = _ids_of("document", self._passages.ids(some))
        return out

    def _entities(self) -> Iterable[Mapping[str, Any]]:
        for rows in self._part.node_rows():
            titles, units = self._titles(rows.ids), rows.column("units", [])
            own = self._node_ids[rows.ids] = _ids_of("entity", titles)
            self._of_units["node"].append(pairs_of(rows))
            yield {
                "id": own,
                "human_readable_id": rows.ids,
                "title": titles,
                "type": rows.columns.get("type", rows.kinds),
                "description": rows.column("description", ""),
                "text_unit_ids": _lists(self._unit_ids, units),
                "frequency": [len(some) for some in units],
                "degree": self._degrees[rows.ids],
                "x": np.zeros(len(rows.ids)),
                "y": np.zeros(len(rows.ids)),
            }
            self._tick(len(rows.ids))

    def _relationships(self) -> Iterable[Mapping[str, Any]]:
        for rows in self._part.edge_rows():
            source, target = self._titles(rows.source), self._titles(rows.target)
            own = self._edge_ids[rows.ids] = _ids_of("relationship", source, target, rows.kinds)
            self._of_units["edge"].append(pairs_of(rows))
            yield {
                "id": own,
                "human_readable_id": rows.ids,
                "source": source,
                "target": target,
                "description": rows.column("description", ""),
                "weight": np.asarray(rows.column("weight", 1.0), np.float64),
                "combined_degree": self._degrees[rows.source] + self._degrees[rows.target],
                "text_unit_ids": _lists(self._unit_ids, rows.column("units", [])),
            }
            self._tick(len(rows.ids))

    def _by_unit(self, what: str) -> tuple[I64, I64]:
        """Return the nodes or edges of each unit as compressed rows."""
        pairs = self._of_units[what] or [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        owners, units = (np.concatenate(one) for one in zip(*pairs, strict=True))
        order = np.argsort(units, kind="stable")
        ends = np.searchsorted(units[order], np.arange(len(self._passages.owners) + 1))
        return ends, owners[order]

    def _text_units(self) -> Iterable[Mapping[str, Any]]:
        nodes, edges = self._by_unit("node"), self._by_unit("edge")
        for ids, texts, tokens, owners in self._passages.unit_batches():
            documents = self._document_ids[owners]
            yield {
                "id": self._unit_ids[ids],
                "human_readable_id": ids,
                "text": texts,
                "n_tokens": tokens,
                "document_id": documents,
                "document_ids": IdLists(documents, np.arange(len(ids) + 1, dtype=np.int32)),
                "entity_ids": _lists(self._node_ids, _slices(nodes, ids)),
                "relationship_ids": _lists(self._edge_ids, _slices(edges, ids)),
                "covariate_ids": [[]] * len(ids),
            }
            self._tick(len(ids))

    def _documents(self) -> Iterable[Mapping[str, Any]]:
        ends, units = self._passages.unit_ends, self._passages.units
        for numbers, documents in self._passages.document_batches():
            about = [
                json.dumps({**one.metadata, OWN_ID: one.id}, ensure_ascii=False, sort_keys=True)
                for one in documents
            ]
            yield {
                "id": self._document_ids[numbers],
                "human_readable_id": numbers,
                "title": [one.title or one.id for one in documents],
                "text": [one.text for one in documents],
                "text_unit_ids": _lists(self._unit_ids, [units[ends[n] : ends[n + 1]] for n in numbers]),
                "creation_date": [""] * len(numbers),
                "metadata": about,
                "raw_data": about,
            }
            self._tick(len(numbers))

    # ------------------------------------------------------------ communities

    def _edges_within(self, found: Sequence[GraphCommunity]) -> list[I64]:
        """Return the edges whose ends are both in a community, for each."""
        tables, edges = self._part.tables, self._part.edge_ids
        out: list[I64] = [np.zeros(0, np.int64)] * len(found)
        for level in {one.level for one in found}:
            label = np.full(len(tables), -1, np.int64)
            for one in found:
                if one.level == level:
                    label[one.nodes] = one.number
            ends = label[tables.source[edges]], label[tables.target[edges]]
            both = (ends[0] == ends[1]) & (ends[0] >= 0)
            order = np.argsort(ends[0][both], kind="stable")
            inside = edges[both][order]
            numbers, starts = np.unique(ends[0][both][order], return_index=True)
            groups = np.split(inside, starts[1:]) if len(numbers) else []
            for number, group in zip(numbers.tolist(), groups, strict=True):
                out[number] = group
        return out

    def _communities(
        self, found: Sequence[GraphCommunity], inside: Sequence[I64]
    ) -> Iterable[Mapping[str, Any]]:
        units = self._part.tables.edges.get("units") or self._part.tables.nodes.get("units")
        by_edge = "units" in self._part.tables.edges
        for first in range(0, len(found), BATCH):
            some = found[first : first + BATCH]
            edges = inside[first : first + BATCH]
            members = edges if by_edge else [one.nodes for one in some]
            held = [self._units_within(one, rows, units) for one, rows in zip(some, members, strict=True)]
            yield {
                **self._heads("community", some),
                "title": [f"Community {one.number}" for one in some],
                "entity_ids": _lists(self._node_ids, [one.nodes for one in some]),
                "relationship_ids": _lists(self._edge_ids, edges),
                "text_unit_ids": _lists(self._unit_ids, held),
            }
            self._tick(len(some))

    def _units_within(self, one: GraphCommunity, rows: I64, column: Column | None) -> list[int]:
        """Return the exported units of a theme, or those of the edges or nodes of a community."""
        if one.units is not None:
            return list(np.intersect1d(one.units, self._passages.units).tolist())
        return [] if column is None else sorted({unit for row in column.read(rows) for unit in row})

    def _heads(self, kind: str, some: Sequence[GraphCommunity]) -> dict[str, Any]:
        """Return the columns that communities and their reports share."""
        names = [self._node_ids[one.nodes].tobytes().decode() for one in some]
        levels = [str(one.level) for one in some]
        return {
            "id": [stable_id(kind, level, name) for level, name in zip(levels, names, strict=True)],
            "human_readable_id": [one.number for one in some],
            "community": [one.number for one in some],
            "level": [one.level for one in some],
            "parent": [one.parent for one in some],
            "children": [one.children for one in some],
            "period": [""] * len(some),
            "size": [len(one.nodes) for one in some],
        }

    def _reports(self, found: Sequence[GraphCommunity], inside: Sequence[I64]) -> Iterable[Mapping[str, Any]]:
        largest = max(len(one.nodes) for one in found)
        for first in range(0, len(found), BATCH):
            some = found[first : first + BATCH]
            written = [
                report(self._best_nodes(one.nodes), self._best_edges(edges), len(one.nodes), largest)
                if one.theme is None
                else theme_report(one.theme, len(one.nodes), largest)
                for one, edges in zip(some, inside[first : first + BATCH], strict=True)
            ]
            yield {
                **self._heads("community_report", some),
                **{name: [row[name] for row in written] for name in written[0]},
                "full_content_json": [json.dumps(row, ensure_ascii=False, indent=1) for row in written],
            }
            self._tick(len(some))

    def _best_nodes(self, nodes: I64) -> list[tuple[str, str]]:
        best = nodes[np.lexsort((nodes, -self._degrees[nodes]))][:_SHOWN]
        column = self._part.tables.nodes.get("description")
        texts = column.read(best) if column is not None else [""] * len(best)
        return list(zip(self._titles(best), texts, strict=True))

    def _best_edges(self, edges: I64) -> list[tuple[str, str]]:
        tables = self._part.tables
        weight, told = tables.edges.get("weight"), tables.edges.get("description")
        weights = np.asarray(weight.read(edges) if weight is not None else np.ones(len(edges)), np.float64)
        best = edges[np.lexsort((edges, -weights))][:_SHOWN]
        ends = zip(self._titles(tables.source[best]), self._titles(tables.target[best]), strict=True)
        texts = told.read(best) if told is not None else [""] * len(best)
        return [(f"{a} -- {b}", text) for (a, b), text in zip(ends, texts, strict=True)]


_SHOWN: Final = 5


def _ids_of(kind: str, *parts: Iterable[str]) -> Ids:
    return np.array([stable_id(kind, *row) for row in zip(*parts, strict=True)], f"S{_WIDTH}")


def _blank(count: int) -> Ids:
    return np.zeros(count, f"S{_WIDTH}")


def _slices(rows: tuple[I64, I64], wanted: I64) -> list[I64]:
    ends, values = rows
    return [values[first:last] for first, last in zip(ends[wanted], ends[wanted + 1], strict=True)]


def require_arrow() -> None:
    """Raise BackendMissing unless pyarrow is installed."""
    import_quietly("pyarrow.parquet")
