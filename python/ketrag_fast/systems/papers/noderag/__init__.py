"""NodeRAG (Xu and others 2025): seven types of nodes in one graph, searched by a short walk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from ketrag_fast.records import dataclass
from ketrag_fast.systems.shared import CHUNK_VECTORS, UNITS, VECTORS, WORDS, has_model
from ketrag_fast.systems.spec.arrays import ANY, Sizes, array, codes, graph, strings
from ketrag_fast.systems.spec.stage import DOCUMENTS, Stage
from ketrag_fast.systems.spec.system import Channel, GraphSource, Recipe, Share, System

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings


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

    entity_rounding: Literal["down", "nearest"] = "down"
    relation_repeats: Literal["weigh", "text"] = "weigh"
    node_walk: Literal["teleport", "lazy"] = "teleport"
    node_fill: Literal["chunks", "none"] = "chunks"
    node_steps: int = 2
    node_teleport: float = 0.5
    node_hits: int = 10
    cross_nodes: int = 10
    cross_entities: int = 10
    cross_titles: int = 10
    cross_relations: int = 30


DEFAULT: Final = NodeRules()
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
        "vector_format": "f32",
    },
}
RULES: Final = {"noderag": DEFAULT, "noderag:reference": REFERENCE}


_HERE = "ketrag_fast.systems.papers.noderag"

DECOMPOSITIONS = Stage(
    "decompositions",
    version=1,
    needs=(DOCUMENTS, "units", "core"),
    settings=(),
    run=f"{_HERE}.decompositions:run",
    unit="chunks",
    look=f"{_HERE}.decompositions:look",
    reads=True,
    arrays={
        "decomposed_chunk": array("u32", "decomposed_chunks", below="chunks", rising=True),
        "chunk_units": array("u64", "decomposed_chunks+1", rising=True),
        **strings("unit_text", "decomposed_units"),
        "unit_entities": array("u64", "decomposed_units+1", rising=True),
        **strings("unit_entity", "decomposed_entities"),
        "unit_relations": array("u64", "decomposed_units+1", rising=True),
        **strings("unit_source", "decomposed_relations"),
        **strings("unit_relation", "decomposed_relations"),
        **strings("unit_target", "decomposed_relations"),
        "failed": array("u32", "undecomposed_chunks", below="chunks"),
        "pending": array("u32", "chunks_to_decompose", below="chunks"),
        "dropped": array("u64", 1),
    },
)

GRAPH = Stage(
    "noderag_graph",
    version=1,
    needs=("units", "decompositions"),
    settings=("relation_repeats",),
    run=f"{_HERE}.graph:run",
    unit="chunks",
    reads=True,
    arrays={
        **strings("semantic_unit", "semantic_units"),
        "unit_weight": array("u32", "semantic_units"),
        **graph("unit_chunks", "semantic_units", "chunks"),
        **strings("node_entity", "node_entities"),
        "entity_weight": array("u32", "node_entities"),
        **graph("entity_chunks", "node_entities", "chunks"),
        **strings("node_relation", "node_relations"),
        "relation_weight": array("u32", "node_relations"),
        **graph("relation_chunks", "node_relations", "chunks"),
        "relation_ends": array("u32", "node_relations", 2, below="node_entities"),
        **graph("mentions", "told_nodes", "told_nodes"),
        "mention_count": array("u32", ANY),
    },
    counts={
        "semantic_units": "semantic_units",
        "node_entities": "node_entities",
        "node_relations": "node_relations",
    },
)

IMPORTANCE = Stage(
    "noderag_importance",
    version=1,
    needs=("noderag_graph",),
    settings=("entity_rounding", "seed"),
    run=f"{_HERE}.graph:important_entities",
    unit="nodes",
    reads=True,
    arrays={
        "important": array("u32", "important_entities", below="node_entities", rising=True),
        "core_number": array("u32", "told_nodes"),
        "betweenness": array("f64", "told_nodes"),
    },
)

ATTRIBUTES = Stage(
    "noderag_attributes",
    version=1,
    needs=("noderag_graph", "noderag_importance"),
    settings=("encoding",),
    run=f"{_HERE}.attributes:run",
    unit="entities",
    look=f"{_HERE}.attributes:look",
    reads=True,
    arrays={
        **strings("attribute", "attributes"),
        "attribute_entity": array("u32", "attributes", below="node_entities", rising=True),
        **graph("attribute_chunks", "attributes", "chunks"),
    },
    counts={"attributes": "attributes"},
)

COMMUNITIES = Stage(
    "noderag_communities",
    version=1,
    needs=("noderag_graph", "noderag_attributes"),
    settings=("seed",),
    run=f"{_HERE}.communities:run",
    unit="nodes",
    reads=True,
    arrays={"community": array("u32", ANY)},
)

ELEMENTS = Stage(
    "noderag_elements",
    version=1,
    needs=("noderag_graph", "noderag_attributes", "noderag_communities"),
    settings=("encoding",),
    run=f"{_HERE}.communities:elements",
    unit="communities",
    look=f"{_HERE}.communities:look",
    reads=True,
    arrays={
        **strings("element", "elements"),
        "element_communities_indptr": array("u64", "elements+1", rising=True),
        "element_communities_indices": array("u32", ANY),
        **strings("title", "titles"),
        **graph("title_elements", "titles", "elements"),
    },
    counts={"high_level_elements": "elements"},
)


def _vector_stages(settings: Settings) -> tuple[str, ...]:
    own = ("vectors", "noderag_graph", "noderag_attributes", "noderag_elements")
    split = ("chunk_vectors",) if settings.split_level else ()
    return (*own, *split) if has_model(settings) else (*own, *split, "words")


NODE_VECTORS = Stage(
    "noderag_vectors",
    version=1,
    needs=_vector_stages,
    settings=("embedder", "language"),
    run=f"{_HERE}.edges:embed_nodes",
    unit="nodes",
    reads=True,
    arrays={"vectors": array("f32", "searched_nodes", "dimension"), **codes("node", "searched_nodes")},
    embeds=(
        ("noderag_graph", "semantic_unit"),
        ("noderag_attributes", "attribute"),
        ("noderag_elements", "element"),
    ),
)

EDGES = Stage(
    "noderag_edges",
    version=1,
    needs=(
        *("units", "noderag_graph", "noderag_attributes", "noderag_communities"),
        *("noderag_elements", "noderag_vectors"),
    ),
    settings=("seed", "encoding"),
    run=f"{_HERE}.edges:run",
    unit="nodes",
    reads=True,
    arrays={
        **graph("edges", "nodes", "nodes"),
        "edge_count": array("u32", ANY),
        "edge_weight": array("f64", ANY),
        "semantic_unit_tokens": array("u32", "semantic_units"),
        "attribute_tokens": array("u32", "attributes"),
        "element_tokens": array("u32", "elements"),
        "node_relation_tokens": array("u32", "node_relations"),
        **strings("name", "node_names"),
        **graph("name_nodes", "node_names", "nodes"),
    },
    counts={"nodes": "nodes"},
    edges={"node": ("edges_indices", 2)},
)

CHANNELS = (
    Channel(
        "noderag",
        needs=(
            *("units", "vectors", "noderag_graph", "noderag_attributes", "noderag_communities"),
            *("noderag_elements", "noderag_vectors", "noderag_edges"),
        ),
        help="a walk of two steps from the nodes nearest to the query and the nodes that it names",
        vector="yes",
        cite=f"{_HERE}.inspection:node_sources",
    ),
)

RECIPES = {
    "noderag": Recipe(
        (Share("noderag"),),
        "the nodes nearest to the query or named in it, and nodes that a walk of two steps finds around "
        "them: high-level elements, attributes, semantic units, relations and chunks; then chunks in the "
        "order of the walk",
    ),
}


def describe(sizes: Sizes) -> Mapping[str, Any]:
    """Return the rows that `ketrag stats` prints about the decompositions."""
    names = ("decomposed_chunks", "undecomposed_chunks", "chunks_to_decompose", "important_entities")
    return {name: sizes.get(name, 0) for name in names} if "decomposed_chunks" in sizes else {}


SYSTEM = System(
    name="noderag",
    order=4,
    source="Xu and others 2025: NodeRAG, section 3; with the decisions of docs/internals/noderag.md",
    help="units, entities, relations, attributes and high-level elements in one graph, and a walk over it",
    graphs=(
        GraphSource(
            "noderag",
            (
                *("units", "noderag_graph", "noderag_attributes", "noderag_communities"),
                *("noderag_elements", "noderag_edges"),
            ),
            "the seven types of nodes of NodeRAG",
            add="ketrag index --llm heuristic --modes auto,noderag",
            read=f"{_HERE}.graph_tables:read_nodes",
            tables=f"{_HERE}.graph_tables:heterograph",
            order=3,
        ),
    ),
    stages=(
        UNITS,
        WORDS,
        VECTORS,
        CHUNK_VECTORS,
        DECOMPOSITIONS,
        GRAPH,
        IMPORTANCE,
        ATTRIBUTES,
        COMMUNITIES,
        ELEMENTS,
        NODE_VECTORS,
        EDGES,
    ),
    channels=CHANNELS,
    recipes=RECIPES,
    presets=PRESETS,
    rules=RULES,
    describe=describe,
    inspect=f"{_HERE}.inspection:NodeGraph",
)
