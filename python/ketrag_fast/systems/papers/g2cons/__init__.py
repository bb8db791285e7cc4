"""G2ConS: concepts choose the core chunks and lead to units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.config.fields import setting
from ketrag_fast.records import dataclass
from ketrag_fast.systems.shared import (
    SENTENCE_VECTORS,
    TITLE_VECTORS,
    UNIT_SEARCH,
    UNITS,
    VECTORS,
    WORDS,
    has_model,
)
from ketrag_fast.systems.spec.arrays import ANY, array, codes, graph
from ketrag_fast.systems.spec.stage import Stage
from ketrag_fast.systems.spec.system import REST, Channel, GraphSource, Recipe, Share, System

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings


@dataclass(frozen=True, kw_only=True)
class G2ConsSettings:
    """Defaults of the paper."""

    theta_co: int = setting(
        3, "minimum number of chunks that two linked concepts share", low=0, high=2**32 - 1
    )
    theta_sem: float = setting(
        0.65, "minimum cosine of two linked concepts; -1 links all that co-occur", low=-1.0, high=1.0
    )


_SETTINGS: Mapping[str, Any] = {
    "cut": "windows",
    "chunk_tokens": 1200,
    "overlap": 0,
    "split_level": 0,
    "core_ratio": 0.8,
    "core_selection": "concept",
    "gleanings": 1,
    "kg_share": 0.6,
    "mode": "g2cons",
}

_HERE = "ketrag_fast.systems.papers.g2cons"


def _concept_stages(settings: Settings) -> tuple[str, ...]:
    """Return the stages that concepts need; sentence vectors are stored only if a model computes them."""
    more = ("sentence_vectors", "title_vectors") if has_model(settings) else ()
    return ("units", "words", "vectors", *more)


CONCEPTS = Stage(
    "concepts",
    version=1,
    needs=_concept_stages,
    settings=(),
    run=f"{_HERE}.concepts:run",
    unit="concepts",
    arrays={
        "concept_word": array("u32", "concepts", below="vocabulary", rising=True),
        **graph("chunk_concepts", "chunks", "concepts"),
        **graph("concept_units", "concepts", "units"),
        "vectors": array("f32", "concepts", "dimension"),
        **codes("concept", "concepts"),
    },
    counts={"concepts": "concepts"},
    seconds=lambda size: 6e-5 * size.get("units", 0),
)

CONCEPT_GRAPH = Stage(
    "concept_graph",
    version=1,
    needs=("concepts",),
    settings=("theta_co", "theta_sem"),
    run=f"{_HERE}.concepts:link_concepts",
    unit="concepts",
    arrays={
        **graph("edges", "concepts", "concepts"),
        "edge_shared": array("u32", ANY),
        "edge_cosine": array("f32", ANY),
        "edge_weight": array("f64", ANY),
        "threshold": array("f64", 1),
    },
    edges={"concept": ("edges_indices", 2)},
    seconds=lambda size: 1e-4 * size.get("units", 0),
)

CONCEPT_CORE = Stage(
    "core_concept",
    version=1,
    needs=("units", "concepts", "concept_graph"),
    settings=("core_ratio", "core_selection"),
    run=f"{_HERE}.concepts:select_core",
    unit="concepts",
    provides="core",
    chosen_by=("core_selection", "concept"),
    arrays={
        "core": array("u32", "core_chunks", below="chunks"),
        "concept_rank": array("f64", "concepts"),
    },
    counts={"core_chunks": "core_chunks"},
)


def _core_graph_stages(settings: Settings) -> tuple[str, ...]:
    """Return the stages that `core-graph` needs.

    Without a reader there is no skeleton, and only concepts rank.
    """
    read = ("skeleton", "entities", "entity_search") if settings.llm != "none" else ()
    return ("units", "vectors", *read)


CHANNELS = (
    Channel(
        "concepts",
        needs=("units", "vectors", "unit_search", "concepts", "concept_graph"),
        help="units of the concepts nearest to the query, then of concepts linked to these",
        vector="yes",
    ),
    Channel(
        "core-graph",
        needs=_core_graph_stages,
        help="the skeleton of the core chunks, if there is a reader",
        vector="yes",
        searches=("entities",),
        seeds="seed_entities",
    ),
)

RECIPES = {
    "g2cons": Recipe(
        (Share("core-graph", of="kg_share"), Share("concepts", of=REST)),
        "tables of the core chunks' skeleton, if there is one, then units of the concepts nearest to the "
        "query and of concepts that share chunks and meaning with these; units that both would print come "
        "first",
        join="vote",
    ),
}

SYSTEM = System(
    name="g2cons",
    order=3,
    source="G2ConS, sections 3 and 4; with the decisions of docs/reference/modes.md",
    help="a graph of concepts (important terms) chooses the core chunks and leads to units",
    graphs=(
        GraphSource(
            "concepts",
            ("units", "words", "concepts", "concept_graph"),
            "important terms that share chunks and meaning",
            add="ketrag index --modes auto,g2cons",
            read=f"{_HERE}.inspection:read_concepts",
            tables=f"{_HERE}.inspection:concept_tables",
            order=2,
        ),
    ),
    settings=G2ConsSettings,
    stages=(
        UNITS,
        WORDS,
        VECTORS,
        SENTENCE_VECTORS,
        TITLE_VECTORS,
        UNIT_SEARCH,
        CONCEPTS,
        CONCEPT_GRAPH,
        CONCEPT_CORE,
    ),
    channels=CHANNELS,
    recipes=RECIPES,
    presets={"g2cons": _SETTINGS},
    choices={"core_selection": ("concept",)},
    inspect=f"{_HERE}.inspection:ConceptInspector",
)
