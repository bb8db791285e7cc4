"""Core selection, and transposed and renumbered rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import U32, Report, callback, count, number, real, text, whole
from ketrag_fast.kernels.graphs import Rows


def core_count(n: int, core_ratio: float) -> int:
    """Return `min(n, ceil(core_ratio * n - 1e-9))`, the number of core chunks of `n` chunks."""
    return _core.core_count(count(n, "n"), number(core_ratio, "core_ratio"))


def select_ranked(scores: ArrayLike, count: int) -> U32:
    """Return the first `count` ids by (score rounded to 1e-12 descending, id ascending): KET-RAG-P."""
    return _core.select_ranked(real(scores, "scores"), arrays.count(count, "count"))


def select_uniform(n: int, count: int, *, seed: int = 42, stage: str = "core") -> U32:
    """Return the first `count` ids of a shuffle determined by `seed` and `stage`: KET-RAG-U."""
    return _core.select_uniform(
        arrays.count(n, "n"),
        arrays.count(count, "count"),
        arrays.count(seed, "seed", 2**64 - 1),
        text(stage, "stage"),
    )


def transpose(indptr: ArrayLike, indices: ArrayLike, columns: int, *, report: Report = None) -> Rows:
    """Transpose compressed rows. The ids of each row must strictly ascend, as they do in the result."""
    return Rows(
        *_core.transpose(
            whole(indptr, np.uint64, "indptr"),
            whole(indices, np.uint32, "indices"),
            count(columns, "columns"),
            report=callback(report),
        )
    )


def renumber(indptr: ArrayLike, indices: ArrayLike, columns: int, kept: ArrayLike) -> Rows:
    """Restrict rows to the columns `kept` (ascending old ids), renumbered by position in `kept`."""
    return Rows(
        *_core.renumber(
            whole(indptr, np.uint64, "indptr"),
            whole(indices, np.uint32, "indices"),
            count(columns, "columns"),
            whole(kept, np.uint32, "kept"),
        )
    )
