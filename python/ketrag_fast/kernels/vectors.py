"""Exact vector search, cosine neighbours, keyword means, the built-in embedder, and fusion of rankings.

Vectors are float32 matrices, one row each. Scores are exact dot products, summed in float64 in index
order. Results are ordered by score descending, then id ascending, and are equal to the byte for any
number of threads and on every machine. Wrong shapes, NaN, and ids that are out of range or out of order
raise `ketrag_fast.errors.InputError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

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
    flag,
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

Kernel = Literal["auto", "avx512", "avx2", "neon", "portable"]


class CooccurrenceNeighbours(NamedTuple):
    """`ids` and `counts`, uint32 [texts, k]; unused entries hold `NOBODY` and 0.

    Examples:
        >>> cooccurrence_knn([0, 1, 2], [0, 0], columns=1, k=1).counts.tolist()
        [[1], [1]]
    """

    ids: U32
    counts: U32


def cooccurrence_knn(
    indptr: ArrayLike,
    indices: ArrayLike,
    columns: int,
    k: int,
    *,
    max_df_ratio: float | None = None,
    allow_zero: bool = False,
    rows: tuple[int, int] | None = None,
    threads: int = 0,
    kernel: Kernel = "auto",
    report: Report = None,
) -> CooccurrenceNeighbours:
    """Return for each text the `k` other texts with the most distinct words in common (KET-RAG, Alg. 3).

    Args:
        indptr, indices: compressed rows: the distinct word ids of each text, strictly ascending and
            below `columns`.
        max_df_ratio: ignores words that occur in more than this share of the texts, which makes large
            corpora much cheaper and the result approximate.
        allow_zero: also returns neighbours without a common word.
        rows: computes neighbours for texts `rows[0]` to `rows[1] - 1` only.
        kernel: the instruction set (see `cooccurrence_kernels`); it does not change the result.
        report: called with (done, total) some twenty times a second; False stops the work.

    Returns:
        Exact neighbours, count descending, then id ascending.

    Raises:
        InputError: for invalid rows, a ratio outside 0 to 1, rows out of range, or a kernel that this
            machine lacks.
        Cancelled: when stopped.

    Examples:
        >>> near = cooccurrence_knn([0, 2, 4, 5], [0, 1, 0, 1, 1], columns=2, k=1)
        >>> near.ids.tolist(), near.counts.tolist()
        ([[1], [0], [0]], [[2], [2], [1]])
    """
    return CooccurrenceNeighbours(
        *_core.cooccurrence_knn(
            whole(indptr, np.uint64, "indptr"),
            whole(indices, np.uint32, "indices"),
            count(columns, "columns"),
            count(k, "k"),
            max_df_ratio=None if max_df_ratio is None else number(max_df_ratio, "max_df_ratio"),
            allow_zero=flag(allow_zero, "allow_zero"),
            rows=None if rows is None else _range(rows),
            threads=count(threads, "threads"),
            kernel=text(kernel, "kernel"),
            report=callback(report),
        )
    )


def cooccurrence_kernels() -> list[str]:
    """Return the values of `kernel` that this machine can run, the widest first."""
    return _core.cooccurrence_kernels()


def _range(rows: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(rows, tuple | list) or len(rows) != 2:
        raise InputError("rows must be (first, last + 1)")
    return count(rows[0], "rows (first)"), count(rows[1], "rows (last + 1)")
