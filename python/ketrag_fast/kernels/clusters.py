"""Clusters of vectors."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import F64, I64, Report, callback, count, text, vectors

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
