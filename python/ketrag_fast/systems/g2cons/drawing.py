"""Read the concept graph for pictures and exports."""

from __future__ import annotations

import numpy as np

from ketrag_fast.systems.shared.drawing import join_edges, rows_with
from ketrag_fast.systems.shared.rows import Arrays, csr
from ketrag_fast.systems.shared.word_forms import WordForms
from ketrag_fast.systems.spec.drawing import DrawableGraph, NodeBlock


def read_concepts(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return concepts, and edges with their Dice weights."""
    concepts, graph = stages["concepts"], stages["concept_graph"]
    words = WordForms(stages["units"], stages["words"])
    number = concepts["concept_word"]  # ascending

    def find(name: str) -> list[int]:
        known = np.array(words.find(name), np.uint32)
        return np.flatnonzero(np.isin(number, known)).tolist() if len(known) else []

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
