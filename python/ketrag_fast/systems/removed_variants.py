"""Presets and settings of earlier versions, so that an index built with them gets a clear error.

Such an index cannot be queried, because the code of its stages has been removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ketrag_fast.errors import IndexIncompatible

_PRESETS: Final = {
    **dict.fromkeys(("keyword-rag", "text-rag", "knn-rag", "hyde", "walk"), "default"),
    **dict.fromkeys(("ket-rag-p", "ket-rag-u", "skeleton-rag", "ms-graph-rag", "hybrid-rag"), "ket-rag"),
    "parity": "ket-rag:reference",
    "noderag-parity": "noderag:reference",
    "cg-rag-mean": "cg-rag",
    "cg-rag-trained": "cg-rag",
}
"""The closest current preset for each removed one.

Those of KET-RAG, G2ConS and NodeRAG also ended in `-150`.
"""
_SETTINGS: Final[Mapping[str, Any]] = {
    "words": "own",
    "core_unit": "chunk",
    "core_rounding": "up",
    "core_rank": "converged",
    "keyword_norm": "none",
    "keyword_mean": "sentences",
    "knn_repeats": False,
    "knn_zero": False,
    "rewire": "all",
    "concept_idf": "smooth",
    "concept_min_df": 1,
    "concept_max_df": 1.0,
    "concept_chars": 2,
    "concept_chunks": "contained",
    "concept_vectors": "sentences",
    "concept_level": "chunk",
    "concept_rank": "pagerank",
    "concept_weights": True,
    "concept_score": "sum",
    "theta_quantile": None,
    "entity_core": "kcore",
    "entity_rounding": "down",
    "min_entity_weight": 2,
    "relation_repeats": "weigh",
    "link_relations": False,
    "generated_tokens": 400,
    "semantic_match": "auto",
    "semantic_neighbours": 25,
    "balanced_edges": True,
    "inter_top_n": 4,
    "max_in_degree": None,
}
"""The value that every index of a `default` variant has now, by removed setting."""


def require_known_variant(stored: Mapping[str, Any]) -> None:
    """Raise IndexIncompatible if the settings of an index name a preset or a value that no longer exists."""
    system = str(stored.get("system", "default"))
    instead = _PRESETS.get(system.removesuffix("-150"))
    if instead is None and system.endswith("-150"):
        instead = system.removesuffix("-150")
    if instead is not None:
        raise IndexIncompatible(
            f"the index was built with the preset {system}, which no longer exists",
            hint=f"build it again: `ketrag index --rebuild --system {instead}`",
        )
    for name, value in _SETTINGS.items():
        if stored.get(name, value) != value:
            raise IndexIncompatible(
                f"the index was built with {name} = {stored[name]}, which no longer exists",
                hint="build it again: `ketrag index --rebuild`; --system ket-rag:reference, for example, "
                "follows the reference implementation",
            )
