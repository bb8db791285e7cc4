"""The settings of G2ConS: selection of concepts, edges between them, and search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ketrag_fast.base.config.fields import setting
from ketrag_fast.errors import ConfigError

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings


@dataclass(frozen=True, kw_only=True)
class G2ConsSettings:
    """The paper's values, and its variants (G2ConS, sections 3 and 4)."""

    concepts_per_chunk: int = setting(
        50, "maximum number of concepts of a chunk, by TF-IDF", low=1, high=1_000_000
    )
    concept_idf: Literal["smooth", "ramos"] = setting(
        "smooth",
        "IDF formula: ln((n+1)/(df+1))+1, or ln(n/df), which drops terms that are in every chunk",
    )
    concept_min_df: int = setting(1, "minimum document frequency of a concept", low=1, high=2**32 - 1)
    concept_max_df: float = setting(1.0, "maximum share of chunks that contain a concept", low=0.0, high=1.0)
    concept_chars: int = setting(
        2, "minimum length of a concept, in scripts with spaces between words", low=1, high=1000
    )
    concept_chunks: Literal["contained", "origin"] = setting(
        "contained", "chunks of a concept: all that contain it, or only those that it was selected for"
    )
    concept_vectors: Literal["sentences", "chunks"] = setting(
        "sentences", "a concept's vector is the mean over its sentences, or over its chunks"
    )
    concept_level: Literal["chunk", "sentence"] = setting(
        "chunk", "scope of co-occurrence: a chunk, or a sentence (the paper's variant A)"
    )
    theta_co: int = setting(
        3, "minimum number of chunks that two linked concepts share", low=0, high=2**32 - 1
    )
    theta_sem: float = setting(
        0.65, "minimum cosine of two linked concepts; -1 links all that co-occur", low=-1.0, high=1.0
    )
    theta_quantile: float | None = setting(
        None,
        "sets theta_sem to this quantile of the cosines of co-occurring pairs",
        low=0.0,
        high=1.0,
    )
    concept_rank: Literal["pagerank", "degree"] = setting(
        "pagerank", "importance of a concept when core chunks are selected"
    )
    concept_weights: bool = setting(True, "use edge weights in PageRank")
    concept_score: Literal["sum", "max", "mean"] = setting(
        "sum", "importance of a chunk: sum, maximum or mean over its concepts"
    )
    seed_concepts: int = setting(
        60,
        "number of concepts nearest to the query that start a search",
        concerns="query",
        low=0,
        high=10_000,
    )
    bfs_depth: int = setting(
        2, "number of edges that a search follows from its first concepts", concerns="query", low=0, high=1000
    )
    max_expanded: int | None = setting(
        None, "maximum number of concepts that a search reaches by edges", concerns="query", low=0
    )
    concept_rerank: Literal["turns", "local", "naive"] = setting(
        "turns",
        "order of units: round robin over the first concepts; concept by concept (the paper's); or all by "
        "cosine (its ablation D)",
        concerns="query",
    )


def check(settings: Settings) -> None:
    """Raise ConfigError if settings contradict each other."""
    if settings.value("core_selection") == "concept" and settings.core_unit == "subchunk":
        raise ConfigError(
            "core_selection = concept selects whole chunks, but core_unit is subchunk",
            hint="set core_unit = chunk",
        )
