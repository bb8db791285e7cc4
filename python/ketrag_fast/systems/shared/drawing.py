"""Nodes and edges that the graphs of several systems share: passages, names, and rows of ids as edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.shared.graph_columns import (
    I64,
    blocks_column,
    lists_at,
    owners,
    shortened,
    texts_at,
)
from ketrag_fast.systems.shared.links import link_weights, unit_subjects
from ketrag_fast.systems.shared.name_lookup import Names
from ketrag_fast.systems.shared.rows import Arrays, csr, lengths, strings
from ketrag_fast.systems.shared.stored_rows import text_of
from ketrag_fast.systems.spec.drawing import PASSAGE, DrawableGraph, GraphTables, NodeBlock

Ids = NDArray[np.int64]


def read_links(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return the graph of the walk: passages, the names in them and the subjects that they mention."""
    links = stages["links"]
    passages = passage_block(stages["units"])
    names = name_block("name", links, "names", str.lower)
    first = passages.count
    number, subjects = _subjects(links, names.count)
    weights = link_weights(links)
    edges: list[Rows] = [(0, first, csr(links, "unit_names"), weights["name_idf"])]
    for indptr, indices in (csr(links, "unit_mentions"), unit_subjects(links)):
        edges.append((0, first, (indptr, number[indices]), weights["subject_idf"][indices]))
    return join_edges(
        (passages, names, subjects),
        edges,
        of_units=lambda units: units,
        edge="names",
        edges_between={(0, 2): "mentions"},
    )


def _subjects(links: Arrays, names: int) -> tuple[NDArray[np.uint32], NodeBlock]:
    """Return the node of each subject (by position), and a block of subjects that are not names."""
    subjects = Names(*strings(links, "subjects"), case=str.lower)
    known = {name: at for at, name in enumerate(unpack(*strings(links, "names")))}
    number = np.empty(len(subjects), np.uint32)
    own: list[int] = []
    for at, subject in enumerate(unpack(*strings(links, "subjects"))):
        name = known.get(subject)
        if name is None:
            number[at] = names + len(own)
            own.append(at)
        else:
            number[at] = name
    place = {subject: at for at, subject in enumerate(own)}

    def find(text: str) -> list[int]:
        found = subjects.find(text)
        return [place[found]] if found in place else []

    def near(text: str) -> list[str]:
        return subjects.near(text)

    return number, NodeBlock("subject", len(own), lambda node: subjects[own[node]], find, near)


def passage_block(units: Arrays, rows: Ids | None = None) -> NodeBlock:
    """Return the units as nodes, or those of `rows`. They are found by the title or id of their document."""
    starts, spans = units["unit_document"], units["unit_span"]
    count = len(starts) if rows is None else len(rows)

    def unit(number: int) -> int:
        return number if rows is None else int(rows[number])

    def title(number: int) -> str:
        own = unit(number)
        row = int(starts[own])
        name = text_of(units, "document_titles", row) or text_of(units, "document_ids", row)
        alone = (own == 0 or starts[own - 1] != row) and (own + 1 == len(starts) or starts[own + 1] != row)
        return name if alone else f"{name} [{int(spans[own, 0])}:{int(spans[own, 1])}]"

    def find(name: str) -> list[int]:
        found: set[int] = set()
        for field in ("document_titles", "document_ids"):
            row = Names(*strings(units, field), case=str).find(name)
            if row is not None:
                found.update(np.flatnonzero(starts == row).tolist())
        if rows is None:
            return sorted(found)
        return np.flatnonzero(np.isin(rows, sorted(found))).tolist()

    def near(name: str) -> list[str]:
        return Names(*strings(units, "document_titles"), case=str).near(name)

    return NodeBlock(PASSAGE, count, title, find, near, unit)


def name_block(
    kind: str | Callable[[int], str],
    arrays: Arrays,
    name: str,
    case: Callable[[str], str] = str,
    inspects: str | None = None,
) -> NodeBlock:
    """Return packed strings as nodes."""
    names = Names(*strings(arrays, name), case=case)

    def find(text: str) -> list[int]:
        found = names.find(text)
        return [] if found is None else [found]

    return NodeBlock(kind, len(names), names.__getitem__, find, names.near, inspects=inspects)


Rows = tuple[int, int, tuple[NDArray[np.uint64], NDArray[np.uint32]], NDArray[Any] | float]
"""The first node of the rows and of the ids, the rows, and a weight: one for all, one per id or per edge."""


def join_edges(
    blocks: tuple[NodeBlock, ...],
    edges: list[Rows],
    *,
    of_units: Callable[[Ids], Ids],
    edge: str,
    edges_between: dict[tuple[int, int], str] | None = None,
    both_ways: bool = False,
) -> DrawableGraph:
    """Return the graph of some blocks with rows of ids as edges. Weights that are not positive are raised.

    With `both_ways`, the rows list every edge from both ends, and each edge is added once.
    """
    sources, targets, weights = [], [], []
    for first, second, (indptr, indices), weight in edges:
        sources.append(np.repeat(np.arange(len(indptr) - 1, dtype=np.uint32), lengths(indptr)) + first)
        targets.append(indices.astype(np.uint32) + second)
        if isinstance(weight, float):
            weights.append(np.full(len(indices), weight))
        else:
            own = weight if len(weight) == len(indices) else weight[indices]
            weights.append(np.maximum(own.astype(np.float64), 1e-6))
    ends = [np.concatenate(part).astype(np.uint32) for part in (sources, targets)]
    kept = ends[0] < ends[1] if both_ways else slice(None)
    return DrawableGraph(
        blocks,
        ends[0][kept],
        ends[1][kept],
        np.concatenate(weights)[kept],
        of_units,
        edge,
        edges_between or {},
    )


def rows_with(arrays: Arrays, name: str, ids: Ids) -> Ids:
    """Return the rows that contain any of these ids, those with most of them first.

    Ties go to the shortest row.
    """
    indptr, indices = csr(arrays, name)
    places = np.flatnonzero(np.isin(indices, ids))
    owners = np.searchsorted(indptr, places.astype(np.uint64), "right") - 1
    found, counts = np.unique(owners, return_counts=True)
    return found[np.lexsort((found, lengths(indptr)[found], -counts))]


KINDS, RELATIONS = ("passage", "name", "subject"), ("names", "about", "mentions")


def link_graph_tables(stages: Mapping[str, Arrays]) -> GraphTables:
    """Return units, names and subjects, without keywords, which would link almost every pair of units."""
    units, arrays = stages["units"], stages["links"]
    counts = [
        len(units["unit_tokens"]),
        len(arrays["names_offsets"]) - 1,
        len(arrays["subjects_offsets"]) - 1,
    ]
    names, subjects = np.cumsum(counts[:2]).tolist()
    about = arrays["unit_subject"]
    is_about = np.flatnonzero(about < counts[2])
    ends = [
        (owners(arrays["unit_names_indptr"]), arrays["unit_names_indices"] + np.uint32(names)),
        (is_about.astype(np.uint32), about[is_about] + np.uint32(subjects)),
        (owners(arrays["unit_mentions_indptr"]), arrays["unit_mentions_indices"] + np.uint32(subjects)),
    ]

    def texts(rows: I64) -> list[str]:
        return texts_at(strings(units, "unit_texts"), rows)

    return GraphTables(
        kinds=KINDS,
        kind=np.repeat(np.arange(3, dtype=np.uint8), counts),
        nodes={
            "name": blocks_column(
                "text",
                "",
                [
                    (counts[0], shortened(texts)),
                    (counts[1], lambda rows: texts_at(strings(arrays, "names"), rows)),
                    (counts[2], lambda rows: texts_at(strings(arrays, "subjects"), rows)),
                ],
            ),
            "description": blocks_column("text", "", [(counts[0], texts), (counts[1] + counts[2], None)]),
            "units": blocks_column(
                "ids",
                [],
                [
                    (counts[0], lambda rows: [[row] for row in rows.tolist()]),
                    (counts[1], lambda rows: lists_at(csr(arrays, "name_units"), rows)),
                    (counts[2], lambda rows: lists_at(csr(arrays, "subject_units"), rows)),
                ],
            ),
        },
        relations=RELATIONS,
        relation=np.repeat(np.arange(3, dtype=np.uint8), [len(first) for first, _ in ends]),
        source=np.concatenate([first for first, _ in ends]),
        target=np.concatenate([last for _, last in ends]),
        edges={},
        directed=True,
    )
