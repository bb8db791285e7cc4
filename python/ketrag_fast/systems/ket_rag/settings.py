"""Settings of KET-RAG: its graphs, core selection and entity tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ketrag_fast.base.config.fields import setting
from ketrag_fast.errors import ConfigError

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings


@dataclass(frozen=True, kw_only=True)
class KetRagSettings:
    """Defaults of Huang, Zhang, Xiao (2025), and the variants of their reference implementation."""

    knn_k: int = setting(2, "neighbours of a unit in the KNN graph", low=0, high=10_000)
    max_df_ratio: float | None = setting(
        None, "ignore shared words that occur in more than this share of units", low=0.0, high=1.0
    )
    core_selection: str = setting(
        "pagerank",
        "selection of core chunks: by PageRank, or uniformly at random",
        choices=("pagerank", "uniform"),
    )
    keyword_norm: Literal["none", "unit"] = setting("none", "normalisation of keyword vectors")
    knn_ann_from: int = setting(
        500_000,
        "number of chunks from which ann = auto builds the KNN graph with hnswlib",
        low=1,
        high=2**32 - 1,
    )
    keyword_mean: Literal["sentences", "occurrences"] = setting(
        "sentences",
        "keyword vector: mean over its sentences or over its occurrences (needs words = published)",
    )
    core_rounding: Literal["up", "down"] = setting("up", "rounding of the number of core chunks")
    core_rank: Literal["converged", "networkx"] = setting(
        "converged", "end of PageRank: at convergence, or as early as networkx"
    )
    knn_repeats: bool = setting(False, "allow a semantic neighbour that is also a lexical one")
    knn_zero: bool = setting(False, "allow lexical neighbours that share no word")
    rewire: Literal["all", "mention"] = setting(
        "all",
        "units linked to an entity: all of its chunks, or those that mention it (all if none does)",
        topic="reading",
    )
    rollover: Literal["texts", "none", "graph"] = setting(
        "texts",
        "budget left over in modes ket and hybrid goes to: the texts, nothing (paper), or the graph"
        " (reference implementation)",
        concerns="query",
    )
    kg_share: float = setting(
        0.4,
        "share of the budget for the entity graph in modes ket and hybrid; texts get the rest",
        concerns="query",
        low=0.0,
        high=1.0,
    )
    seed_entities: int = setting(
        10,
        "number of entities nearest to the query that the tables start from",
        concerns="query",
        low=1,
        high=10_000,
    )
    tables: Literal["own", "published"] = setting(
        "own",
        "format of the entity tables: fixed columns, or as the reference implementation prints them",
        concerns="query",
    )
    seed_keywords: int | None = setting(
        None,
        "maximum number of keywords that bring in units (reference implementation: 1000)",
        concerns="query",
        low=0,
    )


def check(settings: Settings) -> None:
    """Raise ConfigError if settings contradict each other."""
    occurrences = settings.of(KetRagSettings).keyword_mean == "occurrences"
    if occurrences and settings.words == "own" and "words" in settings.given:
        raise ConfigError(
            "keyword_mean = occurrences needs words = published",
            hint="words = own counts a word once per sentence; give -o words=published",
        )
