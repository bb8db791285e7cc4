"""The skeleton as tables of nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping

from ketrag_fast.systems.shared.graph_columns import constant, ids_column, number_column, text_column
from ketrag_fast.systems.shared.rows import Arrays
from ketrag_fast.systems.spec.graph_tables import GraphTables


def skeleton(stages: Mapping[str, Arrays]) -> GraphTables:
    """Return the entities and their relations."""
    arrays = stages["skeleton"]
    return GraphTables(
        kinds=("entity",),
        kind=constant(len(arrays["entity_rank"])),
        nodes={
            "name": text_column(arrays, "entity_name"),
            "type": text_column(arrays, "entity_type"),
            "description": text_column(arrays, "entity_description"),
            "units": ids_column(arrays, "entity_units"),
        },
        relations=("related",),
        relation=constant(len(arrays["relation_source"])),
        source=arrays["relation_source"],
        target=arrays["relation_target"],
        edges={
            "description": text_column(arrays, "relation_description"),
            "weight": number_column(arrays["relation_weight"]),
            "units": ids_column(arrays, "relation_units"),
        },
        unique_names=True,
    )
