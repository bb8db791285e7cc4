"""One table: what each named system sets. Everything it does not name keeps its default.

The rows are the solutions of the KET-RAG paper (specs 10, 1.6) in its two settings: low-cost (chunks of 1,200
tokens, in 8 pieces where chunks are split) and high-performance (`-150`: chunks of 150 tokens, whole). Those
with a skeleton have it where something reads the core chunks (`llm`); a language model is asked once more for
what it missed, as in the paper's experiments. `walk` is this project's own, and
`parity` is what the published code does where it departs from the paper (1.9).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LOW_COST = {"cut": "windows", "chunk_tokens": 1200, "overlap": 0, "knn_k": 2, "rollover": "none"}
_HIGH_PERFORMANCE = {**_LOW_COST, "chunk_tokens": 150}
_SPLIT = {"split_level": 3, "core_ratio": 0.8, "gleanings": 1}
_WHOLE = {"split_level": 0, "core_ratio": 1.0, "gleanings": 1}

_SOLUTIONS: Mapping[str, Mapping[str, Any]] = {
    "ket-rag-p": {**_SPLIT, "core_selection": "pagerank", "mode": "ket"},
    "ket-rag-u": {**_SPLIT, "core_selection": "uniform", "mode": "ket"},
    "skeleton-rag": {**_SPLIT, "core_selection": "pagerank", "mode": "skeleton"},
    "ms-graph-rag": {**_WHOLE, "mode": "ms-graph"},
    "hybrid-rag": {**_WHOLE, "mode": "hybrid", "kg_share": 0.5},
    "keyword-rag": {"split_level": 0, "core_ratio": 0.0, "mode": "keyword"},
    "text-rag": {"split_level": 0, "core_ratio": 0.0, "mode": "text"},
    "knng-rag": {"split_level": 0, "core_ratio": 0.0, "mode": "knng"},
    "hyde": {"split_level": 0, "core_ratio": 0.0, "mode": "hyde"},
}
"""What a solution sets beside the sizes of its chunks. In the `-150` setting nothing is split."""

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "walk": {"mode": "walk"},
    **{name: {**_LOW_COST, **own} for name, own in _SOLUTIONS.items()},
    **{f"{name}-150": {**_HIGH_PERFORMANCE, **own, "split_level": 0} for name, own in _SOLUTIONS.items()},
    "parity": {
        **_LOW_COST,
        **_SOLUTIONS["ket-rag-p"],
        "overlap": 100,
        "words": "published",
        "keyword_mean": "occurrences",
        "core_unit": "subchunk",
        "core_rounding": "down",
        "core_rank": "networkx",
        "knn_repeats": True,
        "knn_zero": True,
        "seed_keywords": 1000,
        "row_count": "whole",
        "rollover": "graph",
        "seed_entities": 20,
        "tables": "published",
        "oversize_policy": "drop",
    },
}

WITH_SKELETON = frozenset(name for name, row in PRESETS.items() if row.get("core_ratio", 0.0) > 0.0)
"""Systems that need the core chunks read: without it they lack their skeleton."""
HALVES = frozenset(name for name in WITH_SKELETON if name.startswith("ket-rag")) | {"parity"}
"""Those that are keywords alone without a skeleton."""


def note(system: str, *, skeleton: bool) -> str | None:
    """What a user should know about a system before trusting its name; `skeleton`: whether it has one."""
    if system not in WITH_SKELETON or skeleton:
        return None
    half = "the text-keyword half is built; " if system in HALVES else ""
    return (
        f"{system}: {half}the entity skeleton is not built: name what reads the core chunks with --llm "
        "(heuristic needs no model)"
    )
