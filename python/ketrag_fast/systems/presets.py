"""One table: what each named system sets. Everything it does not name keeps its default.

The rows are the solutions of the KET-RAG paper (specs 10, 1.6) that run with no language model,
and the keyword half, with the core selection, of those that also have a skeleton.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LOW_COST = {"cut": "windows", "chunk_tokens": 1200, "overlap": 0, "knn_k": 2}
_HIGH_PERFORMANCE = {"cut": "windows", "chunk_tokens": 150, "overlap": 0, "knn_k": 2, "split_level": 0}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "ket-rag-p": {**_LOW_COST, "split_level": 3, "core_ratio": 0.8, "core_selection": "pagerank"},
    "ket-rag-p-150": {**_HIGH_PERFORMANCE, "core_ratio": 0.8, "core_selection": "pagerank"},
    "ket-rag-u": {**_LOW_COST, "split_level": 3, "core_ratio": 0.8, "core_selection": "uniform"},
    "ket-rag-u-150": {**_HIGH_PERFORMANCE, "core_ratio": 0.8, "core_selection": "uniform"},
    "keyword-rag": {**_LOW_COST, "split_level": 0, "core_ratio": 0.0, "mode": "keyword"},
    "keyword-rag-150": {**_HIGH_PERFORMANCE, "core_ratio": 0.0, "mode": "keyword"},
    "text-rag": {**_LOW_COST, "split_level": 0, "core_ratio": 0.0, "mode": "text"},
    "text-rag-150": {**_HIGH_PERFORMANCE, "core_ratio": 0.0, "mode": "text"},
    "knng-rag": {**_LOW_COST, "split_level": 0, "core_ratio": 0.0, "mode": "knng"},
    "knng-rag-150": {**_HIGH_PERFORMANCE, "core_ratio": 0.0, "mode": "knng"},
}

KEYWORD_HALF_ONLY = frozenset({"ket-rag-p", "ket-rag-p-150", "ket-rag-u", "ket-rag-u-150"})
"""Systems whose skeleton needs a language model: built here are chunks, graphs and keywords."""


def note(system: str) -> str | None:
    """What a user should know about a system before trusting its name."""
    if system in KEYWORD_HALF_ONLY:
        return (
            f"{system}: the text-keyword half is built; "
            "the entity skeleton needs a language model, which this version does not drive"
        )
    return None
