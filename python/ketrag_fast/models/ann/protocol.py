"""What both ways to find the nearest vectors have in common: the call, the checks, the order of results."""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import InputError

Floats = NDArray[np.float32]
Ids = NDArray[np.uint32]
Mask = NDArray[np.bool_]

NOBODY: Final = np.uint32(0xFFFF_FFFF)
"""The id in places for which there was nothing left to find; its score is minus infinity."""


class Nearest(Protocol):
    """Inner products with stored vectors, the largest first; equal ones by ascending id.

    `recall` is what was measured against the exact scan (1.0 for the scan itself).
    """

    kind: str
    count: int
    dimension: int
    recall: float

    def search(
        self, queries: Floats, k: int, allowed: Mask | None = None, threads: int = 0
    ) -> tuple[Ids, Floats]:
        """(ids, scores), both [queries, min(k, count)]; scores are re-computed exactly (specs 0.2).

        With `allowed` (bool[count]) others are never found; rows are then filled up with `NOBODY`.
        """

    def facts(self) -> dict[str, Any]:
        """For `stats`."""


def check_queries(queries: Floats, dimension: int) -> Floats:
    """f32[q, d], contiguous and finite, or an InputError."""
    if queries.ndim != 2 or queries.shape[1] != dimension:
        raise InputError(f"queries have the shape {queries.shape}; [q, {dimension}] is due")
    if not np.isfinite(queries).all():
        raise InputError("queries hold NaN or infinity")
    return np.ascontiguousarray(queries, np.float32)


def check_vectors(vectors: Floats) -> Floats:
    """f32[n, d], finite, or an InputError; a map of a file stays one."""
    if vectors.ndim != 2 or vectors.dtype != np.float32 or not vectors.shape[1]:
        raise InputError(f"vectors are {vectors.dtype} {vectors.shape}; float32 [n, d] is due")
    for start in range(0, len(vectors), 16_384):
        if not np.isfinite(vectors[start : start + 16_384]).all():
            raise InputError(f"vectors hold NaN or infinity near row {start}")
    return vectors


def check_mask(allowed: Mask | None, count: int) -> Mask | None:
    """bool[count] or None, or an InputError."""
    if allowed is not None and (allowed.dtype != np.bool_ or allowed.shape != (count,)):
        raise InputError(f"allowed is {allowed.dtype} {allowed.shape}; bool [{count}] is due")
    return allowed


def check_k(k: int, count: int) -> int:
    """How many can be found."""
    if k < 0:
        raise InputError(f"k must be at least 0, not {k}")
    return min(k, count)


def exact_scores(vectors: Floats, ids: NDArray[Any], query: Floats) -> NDArray[np.float64]:
    """The reference similarity: products exact in f64, summed in f64 in the order of the dimensions."""
    products = vectors[ids].astype(np.float64) * query.astype(np.float64)
    return np.cumsum(products, axis=1)[:, -1] if len(ids) else np.zeros(0)


def sort_by_score(
    ids: NDArray[Any], scores: NDArray[np.float64], k: int
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The first k by (score descending, id ascending)."""
    order = np.lexsort((ids, -scores))[:k]
    return ids[order], scores[order]
