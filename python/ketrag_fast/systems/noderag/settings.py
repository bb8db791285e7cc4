"""The settings of NodeRAG: how its graph is made, and how a question walks over it (specs 30)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ketrag_fast.base.config.fields import setting


@dataclass(frozen=True, kw_only=True)
class NodeRagSettings:
    """The paper's values; where the published code has others, one of the choices is the code's."""

    entity_core: Literal["kcore", "degree"] = setting(
        "kcore", "important entities: those of the k-core, or those of at least its degree (Algorithm 1)"
    )
    entity_rounding: Literal["down", "nearest"] = setting(
        "down", "how the degree of the core and the scale of the betweenness are made whole; code: nearest"
    )
    min_entity_weight: int = setting(
        2, "mentions of an entity, at least, to be given an attribute", low=0, high=2**32 - 1
    )
    max_attributes: int | None = setting(
        None, "entities that are given an attribute, at most: those of the largest betweenness", low=0
    )
    relation_repeats: Literal["weigh", "text"] = setting(
        "weigh",
        "a relation that is told again weighs more and joins the names to its unit, or (code) only its words "
        "are kept",
    )
    link_relations: bool = setting(False, "relations are joined to their units (the paper's prose)")
    generated_texts: Literal["auto", "rules"] = setting(
        "auto",
        "attributes and high-level elements: by the language model that reads where there is one, or always "
        "put together from the units",
        topic="reading",
    )
    generated_tokens: int = setting(
        400, "tokens of an attribute or a high-level element, at most", low=16, high=4000, topic="reading"
    )
    semantic_match: Literal["auto", "always"] = setting(
        "auto",
        "elements are joined to the nodes of their cluster where a cluster would have 39 nodes or more, else "
        "to their whole community; or always by clusters",
    )
    semantic_neighbours: int = setting(
        25, "nearest nodes by vector that each node with a vector is joined to", low=0, high=1000
    )
    balanced_edges: bool = setting(
        True,
        "an edge weighs 1 / the larger degree of its ends, as in the code; else its count, as in the paper",
    )
    node_hits: int = setting(
        10, "nodes nearest to the question that the walk starts from", concerns="query", low=0, high=10_000
    )
    cross_nodes: int = setting(
        10,
        "units, attributes, elements and chunks that the walk adds",
        concerns="query",
        low=0,
        high=10_000,
    )
    cross_entities: int = setting(
        10,
        "entities that the walk adds; their attributes come with them",
        concerns="query",
        low=0,
        high=10_000,
    )
    cross_relations: int = setting(30, "relations that the walk adds", concerns="query", low=0, high=10_000)
    cross_titles: int = setting(
        10, "titles that the walk adds; their elements come with them", concerns="query", low=0, high=10_000
    )
    cross_each: bool = setting(
        False,
        "cross_nodes counts for each type of node (paper), not for all together (code)",
        concerns="query",
    )
    node_walk: Literal["teleport", "lazy"] = setting(
        "teleport",
        "a step returns to the entry points (paper), or stays where it is (code)",
        concerns="query",
    )
    node_steps: int = setting(2, "steps of the walk", concerns="query", low=0, high=100)
    node_teleport: float = setting(
        0.5, "the share that returns, or stays, in each step", concerns="query", low=0.001, high=1.0
    )
