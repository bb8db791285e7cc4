"""Exact vector search, cosine neighbours, keyword means, the built-in embedder, and fusion of rankings.

Vectors are float32 matrices, one row each. Scores are exact dot products, summed in float64 in index
order. Results are ordered by score descending, then id ascending, and are equal to the byte for any
number of threads and on every machine. Wrong shapes, NaN, and ids that are out of range or out of order
raise `ketrag_fast.errors.InputError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import (
    F32,
    F64,
    I64,
    U32,
    Csr,
    Report,
    callback,
    count,
    number,
    text,
    vectors,
    whole,
)


class Codes(NamedTuple):
    """Vectors as byte codes: row i is `scale[i] * codes[i]`, to within a distance of `residual[i]`."""

    codes: NDArray[np.int8]
    scale: F32
    residual: F32


def quantise(vectors: ArrayLike, *, threads: int = 0, report: Report = None) -> Codes:
    """Return byte codes of vectors float32[n, d], which speed up `top_k` and `keyword_pool`."""
    parts = _core.quantise_vectors(
        arrays.vectors(vectors, "vectors"), threads=count(threads, "threads"), report=callback(report)
    )
    return Codes(*parts)


def top_k(
    vectors: ArrayLike,
    queries: ArrayLike,
    k: int,
    *,
    codes: Codes | None = None,
    ids: ArrayLike | None = None,
    simd: str = "auto",
    threads: int = 0,
    report: Report = None,
) -> tuple[U32, F64]:
    """Return the best min(k, n) of n vectors for each query float32[q, d]: ids and scores, [q, min(k, n)].

    Args:
        codes: byte codes of the same vectors; they speed up the search and do not change the result.
        ids: strictly ascending rows to which the search is restricted.
        simd: auto, portable, neon, avx2, avx2-vnni, avx512 or avx512-vnni.

    Examples:
        >>> ids, scores = top_k([[1, 0], [0.5, 0.5], [0, 1]], [[1, 0]], 2)
        >>> ids.tolist(), scores.tolist()
        ([[0, 1]], [[1.0, 0.5]])
    """
    return _core.vector_top_k(
        arrays.vectors(vectors, "vectors"),
        arrays.vectors(queries, "queries"),
        count(k, "k"),
        codes=None if codes is None else arrays.codes(codes),
        ids=None if ids is None else whole(ids, np.uint32, "ids"),
        simd=text(simd, "simd"),
        threads=count(threads, "threads"),
        report=callback(report),
    )


def cosine_knn(
    vectors: ArrayLike,
    k: int,
    *,
    exclude: Csr | None = None,
    simd: str = "auto",
    threads: int = 0,
    report: Report = None,
) -> tuple[U32, F64]:
    """Return the min(k, n - 1) nearest other rows of every row: ids and scores.

    Row i of `exclude` lists rows that must not be neighbours of i. If too few rows remain, ids are padded
    with 2**32 - 1 and scores with 0. For normalised vectors the score is the cosine. Source: KET-RAG, Alg.
    3.

    Examples:
        >>> ids, scores = cosine_knn([[1, 0], [0.5, 0.5], [0, 0.5]], 1)
        >>> ids.tolist(), scores.tolist()
        ([[1], [0], [1]], [[0.5], [0.5], [0.25]])
    """
    return _core.cosine_knn(
        arrays.vectors(vectors, "vectors"),
        count(k, "k"),
        exclude=None if exclude is None else arrays.rows(exclude, "exclude"),
        simd=text(simd, "simd"),
        threads=count(threads, "threads"),
        report=callback(report),
    )


def fuse_ranks(lists: Sequence[ArrayLike], *, constant: float = 60.0) -> tuple[U32, F64]:
    """Fuse ranked id lists by reciprocal rank (Cormack, Clarke and Buettcher 2009): ids and scores.

    Examples:
        >>> ids, scores = fuse_ranks([[3, 1], [1, 2]])
        >>> ids.tolist()
        [1, 3, 2]
    """
    if not isinstance(lists, list | tuple):
        raise InputError(f"lists must be a list of ranked lists, not a {type(lists).__name__}")
    ranked = [whole(ids, np.uint32, f"list {i} of lists") for i, ids in enumerate(lists)]
    return _core.fuse_ranks(ranked, constant=number(constant, "constant"))


_U32_MOST = 2**32 - 1


class Clusters(NamedTuple):
    """The index of the centre nearest to each vector [n], and the centres [k, d].

    Examples:
        >>> kmeans([[0.0], [1.0]], 2).centres.shape
        (2, 1)
    """

    labels: I64
    centres: F64


def kmeans(
    values: ArrayLike,
    centres: int,
    *,
    seed: int = 42,
    iterations: int = 25,
    simd: str = "auto",
    threads: int = 0,
    report: Report = None,
) -> Clusters:
    """Cluster the rows of `values` [n, d] around min(n, `centres`) centres.

    Starts with k-means++ (ChaCha8 with `seed`) and moves the centres at most `iterations` times to the means
    of their rows (Lloyd). Sums run in float64 in row order, ties go to the lower centre, and a centre
    without rows moves to the row farthest from its own centre (the first of these), so the result is the
    same to the bit on every machine. The labels refer to the returned centres. `simd` is as in `top_k`.

    Examples:
        >>> found = kmeans([[0], [1], [9], [10]], 2)
        >>> found.labels.tolist(), found.centres.tolist()
        ([0, 0, 1, 1], [[0.5], [9.5]])
    """
    return Clusters(
        *_core.kmeans(
            vectors(values, "values"),
            count(centres, "centres"),
            seed=count(seed, "seed", 2**64 - 1),
            iterations=count(iterations, "iterations", _U32_MOST),
            simd=text(simd, "simd"),
            threads=count(threads, "threads"),
            report=callback(report),
        )
    )


NOBODY = 0xFFFF_FFFF
"""Id that fills unused entries of a neighbour list."""
