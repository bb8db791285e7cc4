"""KET-RAG (Huang, Zhang, Xiao 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from ketrag_fast.base.config.fields import setting
from ketrag_fast.base.config.shared import ExtractionSettings
from ketrag_fast.records import dataclass
from ketrag_fast.systems.shared import (
    CHUNK_VECTORS,
    LINKS,
    SENTENCE_VECTORS,
    TITLE_VECTORS,
    UNITS,
    VECTORS,
    WORDS,
    has_model,
    search_over,
)
from ketrag_fast.systems.spec.arrays import ANY, Sizes, array, codes, graph, strings
from ketrag_fast.systems.spec.stage import DOCUMENTS, EntityGraph, Stage
from ketrag_fast.systems.spec.system import REST, Channel, GraphSource, Recipe, Share, System

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings


@dataclass(frozen=True, kw_only=True)
class KetRules:
    """Decisions in which the variants of KET-RAG differ.

    Attributes:
        words: words and sentences as built in, or those of NLTK, with a keyword's vector as the mean over its
            occurrences instead of over its sentences.
        core_unit: what the KNN graph links and the core is selected from; a chunk with a selected unit is
            core.
        core_rounding: rounding of the number of core nodes.
        core_rank: whether PageRank ends at convergence, or as early as that of networkx.
        knn_repeats: whether a semantic neighbour may also be a lexical one.
        knn_zero: whether a lexical neighbour may share no word.
        seed_entities: number of entities nearest to the query that tables begin with.
        seed_keywords: maximum number of keywords that bring in units.
        ket_rollover: which of the tables and the texts gets the budget that the other leaves.
        tables: form and token counts of tables: fixed columns and sums over parts, or whole rows.
    """

    words: Literal["own", "published"] = "own"
    core_unit: Literal["chunk", "subchunk"] = "chunk"
    core_rounding: Literal["up", "down"] = "up"
    core_rank: Literal["converged", "networkx"] = "converged"
    knn_repeats: bool = False
    knn_zero: bool = False
    seed_entities: int = 10
    seed_keywords: int | None = None
    ket_rollover: Literal["texts", "graph"] = "texts"
    tables: Literal["own", "published"] = "own"


DEFAULT: Final = KetRules()
REFERENCE: Final = KetRules(
    words="published",
    core_unit="subchunk",
    core_rounding="down",
    core_rank="networkx",
    knn_repeats=True,
    knn_zero=True,
    seed_entities=20,
    seed_keywords=1000,
    ket_rollover="graph",
    tables="published",
)

# Chunks of 1,200 tokens, split into 8. One gleaning: the LLM is called a second time for missed entities.
_SETTINGS: Mapping[str, Any] = {
    "cut": "windows",
    "chunk_tokens": 1200,
    "overlap": 0,
    "split_level": 3,
    "knn_k": 2,
    "core_ratio": 0.8,
    "core_selection": "pagerank",
    "gleanings": 1,
    "mode": "ket",
    "modes": "auto,keyword",
}
PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "ket-rag": _SETTINGS,
    "ket-rag:reference": {
        **_SETTINGS,
        "language": "english",
        "overlap": 100,
        "vector_format": "f32",
    },
}
RULES: Final = {"ket-rag": DEFAULT, "ket-rag:reference": REFERENCE}


@dataclass(frozen=True, kw_only=True)
class KetRagSettings(ExtractionSettings):
    """Defaults of Huang, Zhang, Xiao (2025). G2ConS and NodeRAG use those of extraction, too."""

    knn_k: int = setting(2, "neighbours of a unit in the KNN graph", low=0, high=10_000)
    core_selection: str = setting(
        "pagerank",
        "selection of core chunks: by PageRank, or uniformly at random",
        choices=("pagerank", "uniform"),
    )
    kg_share: float = setting(
        0.4,
        "share of the budget for the entity graph in modes ket and g2cons; texts get the rest",
        concerns="query",
        low=0.0,
        high=1.0,
    )


_HERE = "ketrag_fast.systems.papers.ket_rag"


def _keyword_stages(settings: Settings) -> tuple[str, ...]:
    """Return the stages that keywords need; sentence vectors are stored only if a model computes them."""
    if settings.of(KetRules).words == "published":
        sentences = ("reference_sentences",) if has_model(settings) else ()
        return ("words", "vectors", "reference_words", *sentences)
    if has_model(settings):  # "units": to find unchanged rows
        return ("units", "words", "vectors", "sentence_vectors", "title_vectors")
    return ("words", "vectors")


def _knn_stages(settings: Settings) -> tuple[str, ...]:
    """Return the stages that the KNN graph needs.

    Chunk vectors only if chunks are split and are its nodes.
    """
    rules = settings.of(KetRules)
    apart = ("chunk_vectors",) if settings.split_level and rules.core_unit == "chunk" else ()
    own = ("reference_words",) if rules.words == "published" else ()
    return ("units", "words", "vectors", *apart, *own)


REFERENCE_WORDS = Stage(
    "reference_words",
    version=1,
    needs=("units", "words"),
    settings=("language",),
    run=f"{_HERE}.reference_words:run",
    unit="units",
    look=f"{_HERE}.reference_words:look",
    arrays={
        "cooc_indptr": array("u64", "units+1", rising=True),
        "cooc_indices": array("u32", ANY),  # below `cooc_count`
        "cooc_count": array("u64", 1),
        **strings("keyword_vocabulary", "published_keywords"),
        **graph("keyword_units", "published_keywords", "units"),
        **graph("keyword_sentences", "published_keywords", "published_sentences"),
        "keyword_counts": array("u32", ANY),
        **strings("keyword_texts", "published_sentences"),
        **graph("keyword_text_words", "published_sentences", "vocabulary"),
    },
)

REFERENCE_SENTENCES = Stage(
    "reference_sentences",
    version=1,
    needs=("reference_words",),
    settings=("embedder",),
    run=f"{_HERE}.reference_words:sentences",
    unit="sentences",
    arrays={"keyword_text_vectors": array("f32", "published_sentences", "dimension")},
)

KEYWORDS = Stage(
    "keywords",
    version=1,
    needs=_keyword_stages,
    settings=("words",),
    run=f"{_HERE}.keywords:run",
    unit="keywords",
    arrays={"vectors": array("f32", "keyword_nodes", "dimension"), **codes("keyword", "keyword_nodes")},
    seconds=lambda size: 5e-5 * size.get("units", 0),
)

KNN = Stage(
    "knn",
    version=1,
    needs=_knn_stages,
    settings=(
        *("knn_k", "core_unit", "words", "knn_repeats", "knn_zero"),
        *("ann", "seed"),
    ),
    run=f"{_HERE}.knn:run",
    unit="chunks",
    variant=f"{_HERE}.knn:kind_of_graph",
    arrays={
        "lexical": array("u32", "knn_nodes", ANY),
        "lexical_counts": array("u32", "knn_nodes", ANY),
        "semantic": array("u32", "knn_nodes", ANY),
        "semantic_scores": array("f64", "knn_nodes", ANY),
        **graph("graph", "knn_nodes", "knn_nodes", optional=True),
        **graph("unit_graph", "knn_nodes", "knn_nodes", optional=True),
    },
    edges={"knn": ("graph_indices", 2)},
    large=("chunks", "knn_nodes"),
    seconds=lambda size: 3e-11 * size.get("chunks", 0) ** 2 * size.get("dimension", 256),
    growth=1.7,
)

_CORE = ("core_ratio", "core_selection", "core_unit", "core_rounding", "core_rank", "seed")
_CORE_ARRAYS = {
    "core": array("u32", "core_chunks", below="chunks"),
    "core_units": array("u32", "core_units", below="units", optional=True),
}

CORE = Stage(
    "core",
    version=1,
    needs=("units", "knn"),
    settings=_CORE,
    run=f"{_HERE}.knn:select_by_rank",
    unit="steps",
    provides="core",
    chosen_by=("core_selection", "pagerank"),
    arrays={**_CORE_ARRAYS, "pagerank": array("f64", "knn_nodes")},
    counts={"core_chunks": "core_chunks"},
)

CORE_UNIFORM = Stage(
    "core_uniform",
    version=1,
    needs=("units",),
    settings=_CORE,
    run=f"{_HERE}.knn:select_at_random",
    unit="chunks",
    provides="core",
    chosen_by=("core_selection", "uniform"),
    arrays=_CORE_ARRAYS,
    counts={"core_chunks": "core_chunks"},
)

REPLIES = Stage(
    "replies",
    version=1,
    needs=(DOCUMENTS, "units", "core"),
    settings=(),
    run=f"{_HERE}.replies:run",
    unit="chunks",
    look=f"{_HERE}.replies:look",
    reads=True,
    arrays={
        "reply_chunk": array("u32", "read_chunks", below="chunks", rising=True),
        "reply_entities_indptr": array("u64", "read_chunks+1", rising=True),
        "reply_relations_indptr": array("u64", "read_chunks+1", rising=True),
        **strings("entity_name", "entity_records"),
        **strings("entity_type", "entity_records"),
        **strings("entity_description", "entity_records"),
        **strings("relation_source", "relation_records"),
        **strings("relation_target", "relation_records"),
        **strings("relation_description", "relation_records"),
        "relation_strength": array("f64", "relation_records"),
        "reply_failed": array("u32", "failed_chunks", below="chunks"),
        "reply_pending": array("u32", "pending_chunks", below="chunks"),
        "reply_dropped": array("u64", 1),
    },
)

SKELETON = Stage(
    "skeleton",
    version=2,
    needs=("units", "replies"),
    settings=("encoding", "summaries"),
    run=f"{_HERE}.skeleton:run",
    unit="chunks",
    look=f"{_HERE}.skeleton:look",
    reads=True,
    arrays={
        **strings("entity_name", "entities"),
        **strings("entity_type", "entities"),
        **strings("entity_description", "entities"),
        "entity_rank": array("u32", "entities"),
        "entity_row_tokens": array("u32", "entities"),
        **graph("entity_chunks", "entities", "chunks"),
        **graph("entity_units", "entities", "units"),
        "relation_source": array("u32", "relations", below="entities"),
        "relation_target": array("u32", "relations", below="entities"),
        **strings("relation_description", "relations"),
        "relation_weight": array("f64", "relations"),
        "relation_rank": array("u32", "relations"),
        "relation_row_tokens": array("u32", "relations"),
        **graph("relation_chunks", "relations", "chunks"),
        **graph("relation_units", "relations", "units"),
        "mention_entity": array("u32", "mentions", below="entities"),
        "mention_unit": array("u32", "mentions", below="units"),
        "mention_start": array("u32", "mentions"),
        "mention_end": array("u32", "mentions"),
        "fold_dropped": array("u64", ANY),
        "summaries": array("u64", 2, optional=True),
    },
    counts={"entities": "entities", "relations": "relations"},
    edges={
        "relation": ("relation_source", 1),
        "entity_unit": ("entity_units_indices", 1),
        "relation_unit": ("relation_units_indices", 1),
        "entity_mention": ("mention_entity", 1),
    },
    entity_graph=EntityGraph(
        "entity_name",
        "relation_source",
        "relation_target",
        ("entity_type", "entity_description"),
        ("relation_description", "relation_weight"),
    ),
)


def _entity_stages(settings: Settings) -> tuple[str, ...]:
    return ("vectors", "skeleton") if has_model(settings) else ("words", "vectors", "skeleton")


ENTITIES = Stage(
    "entities",
    version=2,
    needs=_entity_stages,
    settings=("embedder", "language"),
    run=f"{_HERE}.skeleton:embed_entities",
    unit="entities",
    reads=True,
    arrays={"entity_vectors": array("f32", "entities", "dimension"), **codes("entity", "entities")},
    embeds=(("skeleton", "entity_name"), ("skeleton", "entity_description")),
)


def _channel_stages(settings: Settings) -> tuple[str, ...]:
    return ("knn", *_knn_stages(settings))


KEYWORD_SEARCH = search_over("keywords", "keywords", "vectors", "keyword_search", size="keyword_nodes")
ENTITY_SEARCH = search_over("entities", "entities", "entity_vectors", "entity_search", reads=True)

CHANNELS = (
    Channel(
        "knn",
        needs=_channel_stages,
        help="the nearest chunks, each followed by its neighbours in the KNN graph",
        vector="yes",
    ),
    Channel(
        "keyword",
        needs=("units", "words", "vectors", "unit_search", "keywords", "keyword_search"),
        help="units of the nearest keywords, up to twice the budget; of these the nearest by vector",
        vector="yes",
        searches=("keywords",),
        seeds="seed_entities",
    ),
    Channel(
        "skeleton",
        needs=("units", "vectors", "skeleton", "entities", "entity_search"),
        help="tables of the entities nearest to the query and of their relations, then their units",
        vector="yes",
        searches=("entities",),
        seeds="seed_entities",
    ),
)

RECIPES = {
    "knn": Recipe((Share("knn"),), "the nearest chunks, each followed by its neighbours in the KNN graph"),
    "keyword": Recipe(
        (Share("keyword"),),
        "units of the nearest keywords, up to twice the budget; of these the nearest by vector are printed",
        usual=True,
    ),
    "skeleton": Recipe(
        (Share("skeleton"),),
        "tables of the entities nearest to the query and of their relations, then their units",
        rollover="ket_rollover",
        usual=True,
    ),
    "ket": Recipe(
        (Share("skeleton", of="kg_share"), Share("keyword", of=REST)),
        "`skeleton` within its share of the budget, then `keyword` with the rest",
        rollover="ket_rollover",
        usual=True,
    ),
}


def describe(sizes: Sizes) -> Mapping[str, Any]:
    """Return rows of `ketrag stats` about the chunks read for the skeleton."""
    if "read_chunks" not in sizes:
        return {}
    names = ("read_chunks", "failed_chunks", "pending_chunks", "entity_records", "relation_records")
    return {name: sizes.get(name, 0) for name in names}


SYSTEM = System(
    name="ket-rag",
    order=2,
    source="Huang, Zhang, Xiao 2025: KET-RAG, sections 4 and 5",
    help="a skeleton of entities from the core chunks, and a keyword graph over all chunks",
    graphs=(
        GraphSource(
            "skeleton",
            ("units", "skeleton"),
            "entities and relations that an LLM or rules extracted",
            add="ketrag index --llm heuristic",
            read=f"{_HERE}.inspection:read_skeleton",
            tables=f"{_HERE}.inspection:skeleton_tables",
            order=1,
        ),
        GraphSource(
            "keyword",
            ("units", "words"),
            "keywords and the passages that contain them",
            add="ketrag index --modes auto,keyword",
            read=f"{_HERE}.inspection:read_keywords",
            order=6,
        ),
        GraphSource(
            "knn",
            ("units", "knn"),
            "chunks and their nearest neighbours by words and by vectors",
            add="ketrag index --modes auto,knn",
            read=f"{_HERE}.inspection:read_knn",
            order=7,
        ),
    ),
    settings=KetRagSettings,
    stages=(
        *(UNITS, WORDS, LINKS, VECTORS, CHUNK_VECTORS, SENTENCE_VECTORS, TITLE_VECTORS),
        *(REFERENCE_WORDS, REFERENCE_SENTENCES, KEYWORDS, KEYWORD_SEARCH, KNN, CORE, CORE_UNIFORM),
        *(REPLIES, SKELETON, ENTITIES, ENTITY_SEARCH),
    ),
    channels=CHANNELS,
    recipes=RECIPES,
    presets=PRESETS,
    rules=RULES,
    describe=describe,
    inspect=f"{_HERE}.inspection:Skeleton",
)
