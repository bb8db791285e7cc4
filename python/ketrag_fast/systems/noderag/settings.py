"""Settings of NodeRAG: its graph, and the walk over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ketrag_fast.base.config.fields import setting


@dataclass(frozen=True, kw_only=True)
class NodeRagSettings:
    """Defaults of the paper; where the reference implementation differs, a choice gives its behaviour."""

    entity_core: Literal["kcore", "degree"] = setting(
        "kcore", "important entities: the k-core, or all with at least its degree (NodeRAG, Algorithm 1)"
    )
    entity_rounding: Literal["down", "nearest"] = setting(
        "down", "rounding of the core degree and the betweenness scale; reference implementation: nearest"
    )
    min_entity_weight: int = setting(
        2, "minimum mentions of an entity that gets an attribute", low=0, high=2**32 - 1
    )
    max_attributes: int | None = setting(
        None, "maximum number of entities with an attribute, by betweenness", low=0
    )
    relation_repeats: Literal["weigh", "text"] = setting(
        "weigh",
        "a repeated relation adds weight and links, or only keeps its text (reference implementation)",
    )
    link_relations: bool = setting(False, "link relations to their units (prose of the paper)")
    generated_texts: Literal["auto", "rules"] = setting(
        "auto",
        "attributes and high-level elements: by the LLM if there is one, or always assembled from units",
        topic="reading",
    )
    generated_tokens: int = setting(
        400, "maximum tokens of an attribute or a high-level element", low=16, high=4000, topic="reading"
    )
    semantic_match: Literal["auto", "always"] = setting(
        "auto",
        "link elements to the nodes of their cluster: if clusters have 39 nodes or more, or always",
    )
    semantic_neighbours: int = setting(
        25, "number of nearest nodes by vector that each node is linked to", low=0, high=1000
    )
    balanced_edges: bool = setting(
        True,
        "edge weight: 1 / larger degree of its ends (reference implementation), or its count (paper)",
    )
    node_hits: int = setting(
        10,
        "number of nodes nearest to the query that the walk starts from",
        concerns="query",
        low=0,
        high=10_000,
    )
    cross_nodes: int = setting(
        10,
        "number of units, attributes, elements and chunks that the walk adds",
        concerns="query",
        low=0,
        high=10_000,
    )
    cross_entities: int = setting(
        10,
        "number of entities that the walk adds, with their attributes",
        concerns="query",
        low=0,
        high=10_000,
    )
    cross_relations: int = setting(
        30, "number of relations that the walk adds", concerns="query", low=0, high=10_000
    )
    cross_titles: int = setting(
        10, "number of titles that the walk adds, with their elements", concerns="query", low=0, high=10_000
    )
    cross_each: bool = setting(
        False,
        "apply cross_nodes to each node type (paper), not to all together (reference implementation)",
        concerns="query",
    )
    node_fill: Literal["none", "chunks", "nodes"] = setting(
        "chunks",
        "fill the rest of the budget in the order of the walk: with nothing (paper), chunks, or all nodes",
        concerns="query",
    )
    node_walk: Literal["teleport", "lazy"] = setting(
        "teleport",
        "a step returns to the entry points (paper), or stays in place (reference implementation)",
        concerns="query",
    )
    node_steps: int = setting(2, "number of steps of the walk", concerns="query", low=0, high=100)
    node_teleport: float = setting(
        0.5, "probability of returning, or of staying, in each step", concerns="query", low=0.001, high=1.0
    )
