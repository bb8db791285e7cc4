"""Co-occurrence neighbours of texts, and neighbour lists as a graph."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.arrays import U32, Report, callback, count, flag, number, text, whole

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
