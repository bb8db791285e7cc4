"""The settings of KET-RAG: its graphs, its choice of core chunks, and how its tables are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ketrag_fast.base.config.fields import setting
from ketrag_fast.errors import ConfigError

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings


@dataclass(frozen=True, kw_only=True)
class KetRagSettings:
    """Huang, Zhang, Xiao 2025, and where the published code departs from the paper (specs 10, 1.9)."""

    knn_k: int = setting(2, "neighbours of a unit in the KNN graph", low=0, high=10_000)
    max_df_ratio: float | None = setting(
        None, "words in more than this share of units are not counted as shared", low=0.0, high=1.0
    )
    core_selection: str = setting("pagerank", "how core chunks are picked", choices=("pagerank", "uniform"))
    keyword_norm: Literal["none", "unit"] = setting("none", "whether keyword vectors are normalised")
    knn_ann_from: int = setting(
        500_000, "chunks from which auto makes the KNN graph with hnswlib", low=1, high=2**32 - 1
    )
    keyword_mean: Literal["sentences", "occurrences"] = setting(
        "sentences", "what a keyword's vector is the mean of; occurrences needs words = published"
    )
    core_rounding: Literal["up", "down"] = setting("up", "how the number of core chunks is made whole")
    core_rank: Literal["converged", "networkx"] = setting(
        "converged", "when PageRank stops: at its limit, or as early as networkx"
    )
    knn_repeats: bool = setting(False, "a semantic neighbour may repeat a lexical one")
    knn_zero: bool = setting(False, "a lexical neighbour need not share a word")
    rewire: Literal["all", "mention"] = setting(
        "all",
        "an entity leads to all units of its chunks, or to those that name it where one does",
        topic="reading",
    )
    rollover: Literal["texts", "none", "graph"] = setting(
        "texts",
        "who gets what the other half of ket or hybrid leaves of the budget: the texts, which then repeat no"
        " source; nobody, as in the paper; or the graph, as in the published code",
        concerns="query",
    )
    seed_entities: int = setting(
        10,
        "entities nearest to the question that the tables begin with",
        concerns="query",
        low=1,
        high=10_000,
    )
    tables: Literal["own", "published"] = setting(
        "own",
        "the skeleton's tables: fixed columns and each source once, or as the published code prints them",
        concerns="query",
    )
    seed_keywords: int | None = setting(
        None,
        "keywords that may bring in units, at most (the published code asks for 1,000)",
        concerns="query",
        low=0,
    )


def check(settings: Settings) -> None:
    """ConfigError where settings do not go together."""
    occurrences = settings.of(KetRagSettings).keyword_mean == "occurrences"
    if occurrences and settings.words == "own" and "words" in settings.given:
        raise ConfigError(
            "keyword_mean = occurrences needs words = published",
            hint="our own words are known once for each sentence",
        )
