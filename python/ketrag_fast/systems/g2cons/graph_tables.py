"""The concept graph as tables of nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ketrag_fast.systems.shared.graph_columns import constant, ids_column, number_column, once
from ketrag_fast.systems.shared.rows import Arrays, csr
from ketrag_fast.systems.shared.word_forms import WordForms
from ketrag_fast.systems.spec.graph_tables import Column, GraphTables


def concepts(stages: Mapping[str, Arrays]) -> GraphTables:
    """Return the concepts and the pairs that share chunks and meaning."""
    graph, kept = stages["concept_graph"], stages["concepts"]
    words = kept["concept_word"].astype(np.int64)
    forms = WordForms(stages["units"], stages["words"])
    indptr, indices = csr(graph, "edges")
    places, first = once(indptr, indices)
    nodes = {
        "name": Column("text", lambda rows: forms.spell(words[rows].tolist())),
        "units": ids_column(kept, "concept_units"),
    }
    if "core_concept" in stages:
        nodes["rank"] = number_column(stages["core_concept"]["concept_rank"])
    return GraphTables(
        kinds=("concept",),
        kind=constant(len(words)),
        nodes=nodes,
        relations=("together",),
        relation=constant(len(places)),
        source=first,
        target=indices[places],
        edges={
            "weight": number_column(graph["edge_weight"][places]),
            "shared_chunks": number_column(graph["edge_shared"][places]),
            "cosine": number_column(graph["edge_cosine"][places]),
        },
        unique_names=not forms.has_stems,
    )
