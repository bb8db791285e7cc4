"""NodeRAG, plainly (spec 30): from decompositions to a graph, what is added to it, and a search.

`OURS` and `PUBLISHED` are the two settings of every difference (`switches`).
"""

from tests.oracles.noderag.augment import (
    HighLevel,
    add_attributes,
    add_high_level,
    add_semantic_edges,
    by_neighbourhood,
    centres,
    evidence,
    insert_texts,
    match,
    members,
)
from tests.oracles.noderag.graph import (
    Built,
    Graph,
    Key,
    Node,
    Unit,
    build,
    fold,
    key_of,
    relation_key,
)
from tests.oracles.noderag.importance import (
    betweenness,
    core_numbers,
    default_core,
    important,
    k_core,
    scale_of,
)
from tests.oracles.noderag.search import (
    Cross,
    contained,
    cross_nodes,
    fill,
    named,
    ranking,
    retrieved,
    sections,
)
from tests.oracles.noderag.switches import OURS, PUBLISHED, Switches
from tests.oracles.noderag.walk import effective_weights, entry_weights, transition, walk

__all__ = [
    "OURS",
    "PUBLISHED",
    "Built",
    "Cross",
    "Graph",
    "HighLevel",
    "Key",
    "Node",
    "Switches",
    "Unit",
    "add_attributes",
    "add_high_level",
    "add_semantic_edges",
    "betweenness",
    "build",
    "by_neighbourhood",
    "centres",
    "contained",
    "core_numbers",
    "cross_nodes",
    "default_core",
    "effective_weights",
    "entry_weights",
    "evidence",
    "fill",
    "fold",
    "important",
    "insert_texts",
    "k_core",
    "key_of",
    "match",
    "members",
    "named",
    "ranking",
    "relation_key",
    "retrieved",
    "scale_of",
    "sections",
    "transition",
    "walk",
]
