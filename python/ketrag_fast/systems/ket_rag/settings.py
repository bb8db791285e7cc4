"""Settings of KET-RAG: its graphs, core selection and entity tables."""

from __future__ import annotations

from dataclasses import dataclass

from ketrag_fast.base.config.fields import setting


@dataclass(frozen=True, kw_only=True)
class KetRagSettings:
    """Defaults of Huang, Zhang, Xiao (2025)."""

    knn_k: int = setting(2, "neighbours of a unit in the KNN graph", low=0, high=10_000)
    max_df_ratio: float | None = setting(
        None, "ignore shared words that occur in more than this share of units", low=0.0, high=1.0
    )
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
