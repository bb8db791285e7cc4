"""Nearest chunks for the KNN graph when there are too many chunks to compare all pairs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.kernels.vectors import top_k
from ketrag_fast.models.ann.hnsw import Report
from ketrag_fast.models.ann.protocol import NOBODY, Floats, exact_scores, sort_by_score
from ketrag_fast.models.ann.stored import build

_MARGIN = 32
_ROWS = 1_000
Rows = tuple[NDArray[np.uint64], NDArray[np.uint32]]


def nearest_rows(
    vectors: Floats,
    k: int,
    exclude: Rows | None,
    scratch: Path | None,
    seed: int,
    threads: int = 0,
    report: Report | None = None,
) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """Return the k nearest rows of each row, like `kernels.vectors.cosine_knn`, with hnswlib candidates.

    Scores are exact and ties go to the smaller id. A row with too few candidates, after `exclude` or because
    the graph is disconnected, is compared with all others.
    """
    count = len(vectors)
    wanted = max(min(k, count - 1), 0)
    ids = np.full((count, wanted), NOBODY, np.uint32)
    scores = np.zeros((count, wanted), np.float64)
    if not wanted:
        return ids, scores
    none = np.zeros(count + 1, np.uint64), np.zeros(0, np.uint32)
    indptr, indices = none if exclude is None else exclude
    most = int(np.diff(indptr.astype(np.int64)).max(initial=0))
    asked = min(count, wanted + 1 + most + _MARGIN)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        graph = build(vectors, Path(folder) / "knn", seed, report)
        for start in range(0, count, _ROWS):
            block = np.ascontiguousarray(vectors[start : start + _ROWS])
            found = graph.candidates(block, asked, threads)
            for place, query in enumerate(block):
                row = start + place
                others = [row, *indices[int(indptr[row]) : int(indptr[row + 1])].tolist()]
                zero = not query.any()  # a zero vector has no neighbours
                pool = None if found is None else np.setdiff1d(found[place], others)
                if pool is None or len(pool) < wanted or zero:
                    pool = np.setdiff1d(np.arange(count, dtype=np.uint32), others)
                if zero:
                    chosen, exact = pool[:wanted], np.zeros(min(wanted, len(pool)))
                elif len(pool) > asked:
                    best, sums = top_k(vectors, query[None], wanted, ids=pool, threads=threads)
                    chosen, exact = best[0], sums[0]
                else:
                    chosen, exact = sort_by_score(pool, exact_scores(vectors, pool, query), wanted)
                ids[row, : len(chosen)] = chosen
                scores[row, : len(exact)] = exact
    return ids, scores
