"""Variants of NodeRAG: `noderag`, the best scores, and `noderag:reference`, the reference implementation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal


@dataclass(frozen=True, kw_only=True)
class NodeRules:
    """Decisions in which the variants of NodeRAG differ, and numbers that both take from the paper.

    Attributes:
        entity_rounding: rounding of the core's degree and of the scale of betweenness.
        relation_repeats: whether a repeated relation adds weight and links, or only its text.
        node_walk: whether a step of the walk returns to the entry points, or stays in place.
        node_fill: what fills the rest of the budget, in the order of the walk.
        node_steps: number of steps of the walk.
        node_teleport: probability of returning, or of staying, in each step.
        node_hits: number of nodes nearest to the query that the walk starts from.
        cross_nodes: number of units, attributes, elements and chunks that the walk adds.
        cross_entities: number of entities that the walk adds, with their attributes.
        cross_titles: number of titles that the walk adds, with their elements.
        cross_relations: number of relations that the walk adds.
    """

    entity_rounding: Literal["down", "nearest"]
    relation_repeats: Literal["weigh", "text"]
    node_walk: Literal["teleport", "lazy"]
    node_fill: Literal["chunks", "none"]
    node_steps: int = 2
    node_teleport: float = 0.5
    node_hits: int = 10
    cross_nodes: int = 10
    cross_entities: int = 10
    cross_titles: int = 10
    cross_relations: int = 30


DEFAULT: Final = NodeRules(
    entity_rounding="down", relation_repeats="weigh", node_walk="teleport", node_fill="chunks"
)
REFERENCE: Final = NodeRules(
    entity_rounding="nearest", relation_repeats="text", node_walk="lazy", node_fill="none"
)

# All chunks are read, by rules unless a model is given, and no skeleton is built.
_SETTINGS: Mapping[str, Any] = {
    "cut": "windows",
    "chunk_tokens": 1048,
    "overlap": 0,
    "split_level": 0,
    "core_ratio": 1.0,
    "core_selection": "uniform",
    "llm": "heuristic",
    "mode": "noderag",
    "modes": "bm25,text,fused,walk,noderag",
}
PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "noderag": _SETTINGS,
    "noderag:reference": {
        **_SETTINGS,
        "language": "english",
        "oversize_policy": "drop",
        "vector_format": "f32",
    },
}
RULES: Final = {"noderag": DEFAULT, "noderag:reference": REFERENCE}
