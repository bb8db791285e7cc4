"""The concept graph as a graph that can be drawn."""

from __future__ import annotations

import numpy as np

from ketrag_fast.systems.shared.drawing import join_edges, rows_with
from ketrag_fast.systems.shared.name_lookup import Names
from ketrag_fast.systems.shared.rows import Arrays, csr, strings
from ketrag_fast.systems.spec.drawing import DrawableGraph, NodeBlock


def read_concepts(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return concepts, and edges with their Dice weights."""
    concepts, graph = stages["concepts"], stages["concept_graph"]
    words = Names(*strings(stages["words"], "vocabulary"), case=str.lower)
    number = concepts["concept_word"]  # ascending

    def find(name: str) -> list[int]:
        word = words.find(name)
        if word is None:
            return []
        at = int(np.searchsorted(number, np.uint32(word)))
        return [at] if at < len(number) and int(number[at]) == word else []

    def near(name: str) -> list[str]:
        return [word for word in words.near(name) if find(word)]

    block = NodeBlock(
        "concept",
        len(number),
        lambda concept: words[int(number[concept])],
        find,
        near,
        inspects="concept",
    )
    return join_edges(
        (block,),
        [(0, 0, csr(graph, "edges"), graph["edge_weight"])],
        of_units=lambda units: rows_with(concepts, "concept_units", units),
        edge="shares chunks",
        both_ways=True,
    )
