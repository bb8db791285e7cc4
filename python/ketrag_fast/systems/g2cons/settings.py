"""The settings of G2ConS: what a concept is, which concepts are joined, and how a question uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ketrag_fast.base.config.fields import setting
from ketrag_fast.errors import ConfigError

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings


@dataclass(frozen=True, kw_only=True)
class G2ConsSettings:
    """The paper's values, and its variants (specs 20, 2.2 to 2.5)."""

    concepts_per_chunk: int = setting(
        50, "words of a chunk that become concepts, by TF-IDF", low=1, high=1_000_000
    )
    concept_idf: Literal["smooth", "ramos"] = setting(
        "smooth",
        "what a rare word is worth: ln((n+1)/(df+1))+1, or ln(n/df), which drops words of all chunks",
    )
    concept_min_df: int = setting(1, "concepts are in so many chunks, at least", low=1, high=2**32 - 1)
    concept_max_df: float = setting(
        1.0, "words in more than this share of the chunks are no concepts", low=0.0, high=1.0
    )
    concept_chars: int = setting(
        2, "letters of a concept, at least, in scripts with spaces between words", low=1, high=1000
    )
    concept_chunks: Literal["contained", "origin"] = setting(
        "contained", "the chunks of a concept: all that contain it, or those that it was taken from"
    )
    concept_vectors: Literal["sentences", "chunks"] = setting(
        "sentences", "a concept's vector is the mean of its sentences' vectors, or of its chunks'"
    )
    concept_level: Literal["chunk", "sentence"] = setting(
        "chunk", "where two concepts meet: in a chunk, or in a sentence (the paper's variant A)"
    )
    theta_co: int = setting(
        3, "chunks that two concepts share, at least, to be joined", low=0, high=2**32 - 1
    )
    theta_sem: float = setting(
        0.65, "the least cosine of two concepts that are joined; -1 joins all that meet", low=-1.0, high=1.0
    )
    theta_quantile: float | None = setting(
        None,
        "instead of theta_sem: the cosine that this share of the pairs that meet does not exceed",
        low=0.0,
        high=1.0,
    )
    concept_rank: Literal["pagerank", "degree"] = setting(
        "pagerank", "the importance of a concept, by which it chooses core chunks"
    )
    concept_weights: bool = setting(True, "PageRank goes by the weights of the edges")
    concept_score: Literal["sum", "max", "mean"] = setting(
        "sum", "the importance of a chunk: of its concepts together, of the best ones, or on average"
    )
    seed_concepts: int = setting(
        60, "concepts nearest to the question that a search begins with", concerns="query", low=0, high=10_000
    )
    bfs_depth: int = setting(
        2, "how many edges a search follows from its first concepts", concerns="query", low=0, high=1000
    )
    max_expanded: int | None = setting(
        None, "concepts that a search reaches by edges, at most; none is all", concerns="query", low=0
    )
    concept_rerank: Literal["turns", "local", "naive"] = setting(
        "turns",
        "units come in by turns, each first concept's nearest, then each one's next; or concept by concept "
        "(the paper's); or all in one list by their cosine (its ablation D)",
        concerns="query",
    )


def check(settings: Settings) -> None:
    """ConfigError where settings do not go together."""
    if settings.value("core_selection") == "concept" and settings.core_unit == "subchunk":
        raise ConfigError(
            "core_selection = concept chooses chunks, and core_unit is subchunk",
            hint="leave core_unit at chunk",
        )
