"""Settings of G2ConS: concepts, their links, and retrieval by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ketrag_fast.base.config.fields import setting


@dataclass(frozen=True, kw_only=True)
class G2ConsSettings:
    """Defaults of the paper, and its variants."""

    concepts_per_chunk: int = setting(
        50, "words of a chunk that become concepts, by TF-IDF", low=1, high=1_000_000
    )
    concept_idf: Literal["smooth", "ramos"] = setting(
        "smooth",
        "IDF formula: ln((n+1)/(df+1))+1, or ln(n/df), which drops words that occur in all chunks",
    )
    concept_min_df: int = setting(1, "minimum document frequency of a concept", low=1, high=2**32 - 1)
    concept_max_df: float = setting(
        1.0, "maximum share of chunks that a concept may occur in", low=0.0, high=1.0
    )
    concept_chars: int = setting(
        2, "minimum length of a concept in letters, for scripts with spaces between words", low=1, high=1000
    )
    concept_chunks: Literal["contained", "origin"] = setting(
        "contained", "chunks of a concept: all that contain it, or those it was extracted from"
    )
    concept_vectors: Literal["sentences", "chunks"] = setting(
        "sentences", "concept vector: mean over its sentences or over its chunks"
    )
    concept_level: Literal["chunk", "sentence"] = setting(
        "chunk", "scope of co-occurrence: a chunk, or a sentence (variant A of the paper)"
    )
    theta_co: int = setting(
        3, "minimum number of chunks that two linked concepts share", low=0, high=2**32 - 1
    )
    theta_sem: float = setting(
        0.65, "minimum cosine of two linked concepts; -1 links all that co-occur", low=-1.0, high=1.0
    )
    theta_quantile: float | None = setting(
        None,
        "quantile of the cosines of co-occurring concepts, used instead of theta_sem",
        low=0.0,
        high=1.0,
    )
    concept_rank: Literal["pagerank", "degree"] = setting(
        "pagerank", "importance of a concept in core selection"
    )
    concept_weights: bool = setting(True, "use edge weights in the PageRank of concepts")
    concept_score: Literal["sum", "max", "mean"] = setting(
        "sum", "importance of a chunk: sum, maximum or mean over its concepts"
    )
    seed_concepts: int = setting(
        60,
        "number of concepts nearest to the query that a search starts from",
        concerns="query",
        low=0,
        high=10_000,
    )
    bfs_depth: int = setting(
        2, "number of edges that a search follows from its first concepts", concerns="query", low=0, high=1000
    )
    max_expanded: int | None = setting(
        None,
        "maximum number of concepts that a search reaches by edges; none: no limit",
        concerns="query",
        low=0,
    )
    concept_rerank: Literal["turns", "local", "naive"] = setting(
        "turns",
        "order of units: in turns over the concepts, concept by concept (paper), or by cosine alone"
        " (ablation D of the paper)",
        concerns="query",
    )
