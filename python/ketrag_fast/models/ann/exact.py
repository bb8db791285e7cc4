"""The exact scan in NumPy: every vector is compared."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ketrag_fast.models.ann.protocol import (
    NOBODY,
    Floats,
    Ids,
    Mask,
    check_k,
    check_mask,
    check_queries,
    check_vectors,
    exact_scores,
    sort_by_score,
)

_BLOCK_FLOATS: Final = 16_000_000
_MARGIN: Final = 32
_CLOSE: Final = 1e-4


class ExactScan:
    """Exact nearest-neighbour search. Vectors are not copied; a memory map stays mapped."""

    kind = "exact"
    recall = 1.0

    def __init__(self, vectors: Floats) -> None:
        self._vectors = check_vectors(vectors)
        self.count, self.dimension = (int(size) for size in vectors.shape)

    def search(
        self, queries: Floats, k: int, allowed: Mask | None = None, threads: int = 0
    ) -> tuple[Ids, Floats]:
        """See `Nearest.search`."""
        asked = check_queries(queries, self.dimension)
        mask = check_mask(allowed, self.count)
        width = check_k(k, self.count)
        ids = np.full((len(asked), width), NOBODY, np.uint32)
        scores = np.full((len(asked), width), -np.inf, np.float32)
        if not width:
            return ids, scores
        rows = None if mask is None else np.flatnonzero(mask)
        pool = self._vectors if rows is None else self._vectors[rows]
        if not len(pool):
            return ids, scores
        block = max(1, _BLOCK_FLOATS // len(pool))
        for start in range(0, len(asked), block):
            rough = asked[start : start + block] @ pool.T
            for place, row in enumerate(rough, start):
                chosen = _candidates(row, width)
                real = chosen if rows is None else rows[chosen]
                found, exact = sort_by_score(real, exact_scores(self._vectors, real, asked[place]), width)
                ids[place, : len(found)] = found
                scores[place, : len(found)] = exact
        return ids, scores

    def facts(self) -> dict[str, Any]:
        """Return the facts for `stats`."""
        return {"kind": self.kind, "count": self.count, "dimension": self.dimension, "recall": self.recall}


def _candidates(row: Floats, k: int) -> Any:
    """Return all rows that may be among the exact top k: the k + 32 best and those close to the k-th."""
    if k + _MARGIN >= len(row):
        return np.arange(len(row))
    top = np.argpartition(row, -(k + _MARGIN))[-(k + _MARGIN) :]
    kth = np.partition(row[top], -k)[-k]
    near = np.flatnonzero(row >= kth - _CLOSE * max(1.0, abs(float(kth))))
    return np.union1d(top, near)
