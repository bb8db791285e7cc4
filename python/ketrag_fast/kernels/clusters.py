"""Vectors in clusters."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import F64, I64, Report, callback, count, text, vectors

_U32_MOST = 2**32 - 1


class Clusters(NamedTuple):
    """The centre nearest to each vector [n], and the centres [k, d]."""

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
    """The rows of `values` [n, d] in `centres` clusters, or in n where there are fewer rows.

    Begins with k-means++ (ChaCha8 of `seed`) and moves the centres at most `iterations` times to the means of
    their rows (Lloyd). Sums run in float64 in the order of the rows, equally near centres go by their number,
    and a centre without rows goes to the row that lies farthest from its own (the first of these): the same
    bits on every machine. The labels are those of the centres that are returned. `simd` as in `top_k`.
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
