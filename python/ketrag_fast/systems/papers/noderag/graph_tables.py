"""NodeRAG's graph for pictures and exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.systems.papers.noderag.communities import NONE
from ketrag_fast.systems.papers.noderag.edges import Blocks
from ketrag_fast.systems.shared.drawing import join_edges, name_block, passage_block
from ketrag_fast.systems.shared.graph_columns import (
    I64,
    blocks_column,
    constant,
    lists_at,
    number_column,
    once,
    shortened,
    texts_at,
)
from ketrag_fast.systems.shared.name_lookup import Names
from ketrag_fast.systems.shared.rows import Arrays, csr, strings
from ketrag_fast.systems.spec.drawing import Column, DrawableGraph, GraphTables, NodeBlock

KINDS = ("chunk", "unit", "attribute", "element", "entity", "title", "relation")
"""Kinds of nodes, in the order of their numbers."""


def heterograph(stages: Mapping[str, Arrays]) -> GraphTables:
    """Return the nodes of all seven types and their edges."""
    units, graph = stages["units"], stages["noderag_graph"]
    at = Blocks(stages)  # type: ignore[arg-type]  # it only looks up arrays
    counts = np.diff(at.ends)
    kind = np.repeat(np.arange(len(KINDS), dtype=np.uint8), counts)
    places, first = once(*csr(stages["noderag_edges"], "edges"))
    weights = {"entity": graph["entity_weight"], "relation": graph["relation_weight"]}
    weights["unit"] = graph["unit_weight"]
    blocks = list(zip(KINDS, counts.tolist(), strict=True))
    texts = _texts(stages)
    long = {"chunk", "unit", "attribute", "element", "relation"}
    names = [(n, shortened(texts[name].read) if name in long else texts[name].read) for name, n in blocks]
    return GraphTables(
        kinds=KINDS,
        kind=kind,
        nodes={
            "name": blocks_column("text", "", names),
            "description": blocks_column(
                "text", "", [(n, texts[name].read if name in long else None) for name, n in blocks]
            ),
            "weight": blocks_column(
                "int", 1, [(n, number_column(weights[k]).read if k in weights else None) for k, n in blocks]
            ),
            "units": _units(stages, blocks, units),
        },
        relations=("linked",),
        relation=constant(len(places)),
        source=first,
        target=csr(stages["noderag_edges"], "edges")[1][places],
        edges={"weight": number_column(stages["noderag_edges"]["edge_count"][places])},
        communities=_communities(stages, at),
    )


def _texts(stages: Mapping[str, Arrays]) -> dict[str, Column]:
    """Return the text of the nodes of each kind."""
    graph, units = stages["noderag_graph"], stages["units"]
    held = {
        "unit": strings(graph, "semantic_unit"),
        "attribute": strings(stages["noderag_attributes"], "attribute"),
        "element": strings(stages["noderag_elements"], "element"),
        "entity": strings(graph, "node_entity"),
        "title": strings(stages["noderag_elements"], "title"),
        "relation": strings(graph, "node_relation"),
    }
    columns = {name: Column("text", partial(texts_at, packed)) for name, packed in held.items()}

    def chunk_texts(rows: I64) -> list[str]:
        parts = units["chunk_units"]
        spans = zip(parts[rows].tolist(), parts[rows + 1].tolist(), strict=True)
        return [
            "".join(texts_at(strings(units, "unit_texts"), np.arange(first, last))) for first, last in spans
        ]

    return {**columns, "chunk": Column("text", chunk_texts)}


def _units(stages: Mapping[str, Arrays], blocks: list[tuple[str, int]], units: Arrays) -> Column:
    """Return the units of the chunks that each node is from; elements and titles have none."""
    ends = units["chunk_units"].astype(np.int64)
    graph = stages["noderag_graph"]
    listed = {
        "unit": csr(graph, "unit_chunks"),
        "attribute": csr(stages["noderag_attributes"], "attribute_chunks"),
        "entity": csr(graph, "entity_chunks"),
        "relation": csr(graph, "relation_chunks"),
    }

    def of_chunks(chunks: list[int]) -> list[int]:
        return [unit for chunk in chunks for unit in range(ends[chunk], ends[chunk + 1])]

    def reader(name: str) -> Callable[[I64], list[list[int]]] | None:
        if name == "chunk":
            return lambda rows: [of_chunks([row]) for row in rows.tolist()]
        if name in listed:
            return lambda rows: [of_chunks(chunks) for chunks in lists_at(listed[name], rows)]
        return None

    return blocks_column("ids", [], [(count, reader(name)) for name, count in blocks])


def _communities(stages: Mapping[str, Arrays], at: Blocks) -> NDArray[np.uint32]:
    """Return the community of each node, from its number among units, entities, relations and attributes."""
    stored = stages["noderag_communities"]["community"]
    out: NDArray[np.uint32] = np.full(at.nodes, NONE, np.uint32)
    starts = (at.unit, at.entity, at.relation, at.attribute)
    counts = (at.attribute - at.unit, at.title - at.entity, at.nodes - at.relation, at.element - at.attribute)
    place = 0
    for start, count in zip(starts, counts, strict=True):
        out[start : start + count] = stored[place : place + count]
        place += count
    return out


def read_nodes(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return the nodes of all seven types; edges have the weights of the walk."""
    units, graph, elements = stages["units"], stages["noderag_graph"], stages["noderag_elements"]
    attributes, edges = stages["noderag_attributes"], stages["noderag_edges"]
    first = units["chunk_units"].astype(np.int64)
    entities = Names(*strings(graph, "node_entity"))
    owner = attributes["attribute_entity"]
    attribute = NodeBlock(
        "attribute",
        len(owner),
        lambda number: entities[int(owner[number])],
        lambda name: [],
        lambda name: [],
    )
    blocks = (
        passage_block(units, first[:-1]),
        name_block("unit", graph, "semantic_unit"),
        attribute,
        name_block("element", elements, "element"),
        name_block("entity", graph, "node_entity", str.upper, inspects="node"),
        name_block("title", elements, "title"),
        name_block("relation", graph, "node_relation"),
    )
    owners = units["unit_chunk"].astype(np.int64)
    return join_edges(
        blocks,
        [(0, 0, csr(edges, "edges"), edges["edge_weight"])],
        of_units=lambda found: np.unique(owners[found]),
        edge="linked",
        both_ways=True,
    )
