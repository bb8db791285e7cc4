"""The settings of NodeRAG: its graph, and its search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ketrag_fast.base.config.fields import setting


@dataclass(frozen=True, kw_only=True)
class NodeRagSettings:
    """The paper's values, with options for what the reference implementation does differently."""

    entity_core: Literal["kcore", "degree"] = setting(
        "kcore", "important entities: those of the k-core, or those of at least its degree (Algorithm 1)"
    )
    entity_rounding: Literal["down", "nearest"] = setting(
        "down", "rounding of the core's degree and of the betweenness scale; code: nearest"
    )
    min_entity_weight: int = setting(
        2, "minimum number of mentions of an entity with an attribute", low=0, high=2**32 - 1
    )
    max_attributes: int | None = setting(
        None, "maximum number of entities with an attribute, by betweenness", low=0
    )
    relation_repeats: Literal["weigh", "text"] = setting(
        "weigh",
        "a repeated relation gains weight and links its names to the unit; or (code) only its text is added",
    )
    link_relations: bool = setting(False, "link relations to their units (as in the paper's text)")
    generated_texts: Literal["auto", "rules"] = setting(
        "auto",
        "attributes and high-level elements: written by the model that reads, if any; or always assembled "
        "from the units",
        topic="reading",
    )
    generated_tokens: int = setting(
        400,
        "maximum length of an attribute or a high-level element in tokens",
        low=16,
        high=4000,
        topic="reading",
    )
    semantic_match: Literal["auto", "always"] = setting(
        "auto",
        "link elements to the nodes of their cluster if clusters have 39 nodes or more on average, else to "
        "their whole community; or always by clusters",
    )
    semantic_neighbours: int = setting(
        25, "number of nearest nodes by vector that each node is linked to", low=0, high=1000
    )
    balanced_edges: bool = setting(
        True,
        "weight of an edge: 1 / the larger degree of its ends, as in the code; or its count, as in the paper",
    )
    node_hits: int = setting(
        10, "number of nodes nearest to the query where the walk starts", concerns="query", low=0, high=10_000
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
        "cross_nodes counts for each type of node (paper), not for all together (code)",
        concerns="query",
    )
    node_walk: Literal["teleport", "lazy"] = setting(
        "teleport",
        "a step may return to the entry points (paper), or stay in place (code)",
        concerns="query",
    )
    node_steps: int = setting(2, "number of steps of the walk", concerns="query", low=0, high=100)
    node_teleport: float = setting(
        0.5, "probability of returning, or staying, in each step", concerns="query", low=0.001, high=1.0
    )
