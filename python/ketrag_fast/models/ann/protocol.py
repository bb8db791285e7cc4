"""The interface of nearest-neighbour search, its input checks and its order of results."""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import InputError

Floats = NDArray[np.float32]
Ids = NDArray[np.uint32]
Mask = NDArray[np.bool_]

NOBODY: Final = np.uint32(0xFFFF_FFFF)
"""The id that fills rows with too few results; its score is minus infinity."""


class Nearest(Protocol):
    """Search by inner product, in descending order, ties by ascending id.

    `recall` was measured against the exact scan (1.0 for the scan itself).
    """

    kind: str
    count: int
    dimension: int
    recall: float

    def search(
        self, queries: Floats, k: int, allowed: Mask | None = None, threads: int = 0
    ) -> tuple[Ids, Floats]:
        """Return (ids, scores), both [queries, min(k, count)]; scores are exact.

        Only vectors in `allowed` (bool[count]) are returned; short rows are filled up with `NOBODY`.
        """

    def facts(self) -> dict[str, Any]:
        """Return the facts for `stats`."""


def check_queries(queries: Floats, dimension: int) -> Floats:
    """Return queries as contiguous f32[q, d]. Raises InputError unless they are finite."""
    if queries.ndim != 2 or queries.shape[1] != dimension:
        raise InputError(f"queries must have the shape [q, {dimension}], got {queries.shape}")
    if not np.isfinite(queries).all():
        raise InputError("queries contain NaN or infinity")
    return np.ascontiguousarray(queries, np.float32)


def check_vectors(vectors: Floats) -> Floats:
    """Return the vectors uncopied. Raises InputError unless they are finite f32[n, d]."""
    if vectors.ndim != 2 or vectors.dtype != np.float32 or not vectors.shape[1]:
        raise InputError(f"vectors must be float32 [n, d], got {vectors.dtype} {vectors.shape}")
    for start in range(0, len(vectors), 16_384):
        if not np.isfinite(vectors[start : start + 16_384]).all():
            raise InputError(f"vectors contain NaN or infinity near row {start}")
    return vectors


def check_mask(allowed: Mask | None, count: int) -> Mask | None:
    """Return the mask. Raises InputError unless it is bool[count] or None."""
    if allowed is not None and (allowed.dtype != np.bool_ or allowed.shape != (count,)):
        raise InputError(f"allowed must be bool [{count}], got {allowed.dtype} {allowed.shape}")
    return allowed


def check_k(k: int, count: int) -> int:
    """Return the number of results, min(k, count)."""
    if k < 0:
        raise InputError(f"k must be at least 0, got {k}")
    return min(k, count)


def exact_scores(vectors: Floats, ids: NDArray[Any], query: Floats) -> NDArray[np.float64]:
    """Return the reference similarities: f64 products summed in the order of the dimensions."""
    products = vectors[ids].astype(np.float64) * query.astype(np.float64)
    return np.cumsum(products, axis=1)[:, -1] if len(ids) else np.zeros(0)


def sort_by_score(
    ids: NDArray[Any], scores: NDArray[np.float64], k: int
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the first k by (score descending, id ascending)."""
    order = np.lexsort((ids, -scores))[:k]
    return ids[order], scores[order]
