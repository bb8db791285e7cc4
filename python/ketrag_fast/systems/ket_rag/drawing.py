"""Read the skeleton, the keyword graph and the KNN graph for pictures and exports."""

from __future__ import annotations

import numpy as np

from ketrag_fast.systems.shared.drawing import join_edges, name_block, passage_block, rows_with
from ketrag_fast.systems.shared.row_text import text_of
from ketrag_fast.systems.shared.rows import Arrays, csr, lengths
from ketrag_fast.systems.shared.word_forms import WordForms
from ketrag_fast.systems.spec.drawing import DrawableGraph, NodeBlock


def read_skeleton(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return entities, with their types as kinds, and relations, with their weights."""
    skeleton = stages["skeleton"]

    def kind(number: int) -> str:
        return text_of(skeleton, "entity_type", number).lower() or "entity"

    return DrawableGraph(
        (name_block(kind, skeleton, "entity_name", str.upper, inspects="entity"),),
        skeleton["relation_source"],
        skeleton["relation_target"],
        np.maximum(skeleton["relation_weight"], 1e-6),
        lambda units: rows_with(skeleton, "entity_units", units),
        "relation",
    )


def read_keywords(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return keywords linked to the passages that contain them; rare keywords have greater weight."""
    units, words = stages["units"], stages["words"]
    passages, forms = passage_block(units), WordForms(units, words)
    rows = csr(words, "unit_words")
    count = lengths(csr(words, "word_units")[0])
    rarity = np.log1p(passages.count / np.maximum(count, 1))
    return join_edges(
        (passages, NodeBlock("keyword", len(forms), forms.__getitem__, forms.find, forms.near)),
        [(0, passages.count, rows, rarity)],
        of_units=lambda found: found,
        edge="contains",
    )


def read_knn(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return chunks and their nearest neighbours; a chunk stands for its first unit."""
    units, knn = stages["units"], stages["knn"]
    name = "graph" if "graph_indptr" in knn else "unit_graph"
    indptr, indices = csr(knn, name)
    nodes, first = len(indptr) - 1, units["chunk_units"].astype(np.int64)
    of_chunks = nodes == len(first) - 1
    rows = first[:-1] if of_chunks else np.arange(nodes)
    owner = units["unit_chunk"].astype(np.int64) if of_chunks else np.arange(nodes)
    return join_edges(
        (passage_block(units, rows),),
        [(0, 0, (indptr, indices), 1.0)],
        of_units=lambda found: np.unique(owner[found]),
        edge="near",
        both_ways=True,
    )
