"""One table: what each named system sets. Everything it does not name keeps its default.

The rows are the solutions of the KET-RAG paper (specs 10, 1.6). Those with a skeleton have it where
something reads the core chunks (`llm`), and are their keyword half without.
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

WITH_SKELETON = frozenset({"ket-rag-p", "ket-rag-p-150", "ket-rag-u", "ket-rag-u-150"})
"""Systems of two halves: without anything that reads the core chunks they are keywords alone."""


def note(system: str, *, skeleton: bool) -> str | None:
    """What a user should know about a system before trusting its name."""
    if system in WITH_SKELETON and not skeleton:
        return (
            f"{system}: the text-keyword half is built; the entity skeleton is not: "
            "name what reads the core chunks with --llm (heuristic needs no model)"
        )
    return None
