"""Variants of KET-RAG: `ket-rag`, the best scores, and `ket-rag:reference`, the reference implementation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal


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

    words: Literal["own", "published"]
    core_unit: Literal["chunk", "subchunk"]
    core_rounding: Literal["up", "down"]
    core_rank: Literal["converged", "networkx"]
    knn_repeats: bool
    knn_zero: bool
    seed_entities: int
    seed_keywords: int | None
    ket_rollover: Literal["texts", "graph"]
    tables: Literal["own", "published"]


DEFAULT: Final = KetRules(
    words="own",
    core_unit="chunk",
    core_rounding="up",
    core_rank="converged",
    knn_repeats=False,
    knn_zero=False,
    seed_entities=10,
    seed_keywords=None,
    ket_rollover="texts",
    tables="own",
)
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
        "oversize_policy": "drop",
        "vector_format": "f32",
    },
}
RULES: Final = {"ket-rag": DEFAULT, "ket-rag:reference": REFERENCE}
