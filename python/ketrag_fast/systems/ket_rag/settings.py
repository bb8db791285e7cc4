"""The settings of KET-RAG: its graphs, the selection of core chunks, and its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ketrag_fast.base.config.fields import setting
from ketrag_fast.errors import ConfigError

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings


@dataclass(frozen=True, kw_only=True)
class KetRagSettings:
    """Huang, Zhang, Xiao 2025, with options for what the reference implementation does differently."""

    knn_k: int = setting(2, "neighbours of a unit in the KNN graph", low=0, high=10_000)
    max_df_ratio: float | None = setting(
        None, "maximum share of units that contain a word, for it to count as shared", low=0.0, high=1.0
    )
    core_selection: str = setting("pagerank", "how core chunks are selected", choices=("pagerank", "uniform"))
    keyword_norm: Literal["none", "unit"] = setting("none", "whether keyword vectors are normalised")
    knn_ann_from: int = setting(
        500_000, "number of chunks from which auto uses hnswlib for the KNN graph", low=1, high=2**32 - 1
    )
    keyword_mean: Literal["sentences", "occurrences"] = setting(
        "sentences", "a keyword's vector is the mean over these; occurrences needs words = published"
    )
    core_rounding: Literal["up", "down"] = setting("up", "rounding of the number of core chunks")
    core_rank: Literal["converged", "networkx"] = setting(
        "converged", "when PageRank stops: at convergence, or as early as networkx"
    )
    knn_repeats: bool = setting(False, "a semantic neighbour may repeat a lexical one")
    knn_zero: bool = setting(False, "a lexical neighbour need not share a word")
    rewire: Literal["all", "mention"] = setting(
        "all",
        "an entity leads to all units of its chunks, or only to those that mention it, if any",
        topic="reading",
    )
    rollover: Literal["texts", "none", "graph"] = setting(
        "texts",
        "which part of ket or hybrid gets the other's unused budget: texts, without repeated sources; none, "
        "as in the paper; or graph, as in the reference implementation",
        concerns="query",
    )
    seed_entities: int = setting(
        10,
        "number of entities nearest to the query that start the tables",
        concerns="query",
        low=1,
        high=10_000,
    )
    tables: Literal["own", "published"] = setting(
        "own",
        "tables of the skeleton: fixed columns and each source once, or as in the reference implementation",
        concerns="query",
    )
    seed_keywords: int | None = setting(
        None,
        "maximum number of keywords that contribute units (1,000 in the reference implementation)",
        concerns="query",
        low=0,
    )


def check(settings: Settings) -> None:
    """Raise ConfigError if settings contradict each other."""
    occurrences = settings.of(KetRagSettings).keyword_mean == "occurrences"
    if occurrences and settings.words == "own" and "words" in settings.given:
        raise ConfigError(
            "keyword_mean = occurrences needs words = published",
            hint="set words = published, because words = own counts a word once for each sentence",
        )
