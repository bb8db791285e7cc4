"""Read NodeRAG's graph for pictures and exports."""

from __future__ import annotations

import numpy as np

from ketrag_fast.systems.shared.drawing import join_edges, name_block, passage_block
from ketrag_fast.systems.shared.name_lookup import Names
from ketrag_fast.systems.shared.rows import Arrays, csr, strings
from ketrag_fast.systems.spec.drawing import DrawableGraph, NodeBlock


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
