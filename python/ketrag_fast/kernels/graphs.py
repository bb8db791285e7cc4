"""PageRank on a graph of compressed rows.

A graph is `(indptr, indices)`: row `i` holds `indices[indptr[i]:indptr[i + 1]]`. Integer arrays of any
type are converted; arrays that do not fit together raise `InputError`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import (
    F64,
    U32,
    U64,
    Report,
    callback,
    count,
    flag,
    number,
    real,
    text,
    whole,
)

_U32_MOST = 2**32 - 1


class Rows(NamedTuple):
    """Compressed rows: row i is `indices[indptr[i]:indptr[i + 1]]`."""

    indptr: U64
    indices: U32


def pagerank(
    indptr: ArrayLike,
    indices: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    restart: ArrayLike | None = None,
    teleport: float = 0.15,
    tolerance: float = 1e-9,
    steps: int | None = None,
    lazy: bool = False,
    until: str | None = None,
    threads: int = 0,
    report: Report = None,
) -> F64:
    """Return the PageRank of every node of a directed graph (an undirected one holds each edge both ways).

    Args:
        indptr, indices: row `i` holds the targets of node `i`.
        weights: [edges], parallel to `indices`; default all 1.
        restart: [nodes], scaled to sum 1; makes it personalised.
        teleport: probability of returning to the restart distribution in a step. Nodes without
            out-edges give it their mass.
        tolerance: the L1 error at which it stops, unless `steps` is given (exactly that number of
            steps).
        until: "networkx" stops when a step changes less than `n * 1e-6` (parity).
        lazy: stays in place instead of returning (parity with NodeRAG's code; needs `steps`).

    Returns:
        float64 [nodes], summing to 1, equal to the last bit on any number of threads. Source: KET-RAG,
        Eq. (1); NodeRAG's shallow PPR is `steps=2, teleport=0.5`.

    Examples:
        >>> pagerank([0, 1, 2, 2], [2, 2]).round(3).tolist()
        [0.213, 0.213, 0.574]
    """
    kind = ("tolerance" if steps is None else "steps") if until is None else text(until, "until")
    return _core.pagerank(
        whole(indptr, np.uint64, "indptr"),
        whole(indices, np.uint32, "indices"),
        None if weights is None else real(weights, "weights"),
        None if restart is None else real(restart, "restart"),
        teleport=number(teleport, "teleport"),
        until=kind,
        tolerance=number(tolerance, "tolerance"),
        steps=0 if steps is None else count(steps, "steps", _U32_MOST),
        lazy=flag(lazy, "lazy"),
        threads=count(threads, "threads"),
        report=callback(report),
    )
