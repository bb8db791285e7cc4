"""Centrality of the nodes of a graph: core numbers, betweenness, and a short walk from a few nodes.

A graph is `(indptr, indices)`: row `i` holds `indices[indptr[i]:indptr[i + 1]]`. Undirected graphs hold each
edge both ways, the ids of each row ascending, and no loops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import F64, I64, Report, callback, count, flag, number, real, whole

_U32_MOST = 2**32 - 1


class Reached(NamedTuple):
    """The nodes with a score above 0: score descending, then id ascending."""

    ids: I64
    scores: F64


def core_numbers(indptr: ArrayLike, indices: ArrayLike, *, report: Report = None) -> I64:
    """Return the core number [nodes] of each node of an undirected simple graph.

    The k-core is what remains after repeatedly removing nodes with fewer than `k` neighbours; the core
    number is the largest `k` whose core contains the node. Time is linear in the edges.
    Source: Batagelj and Zaversnik 2003.
    """
    return _core.core_numbers(
        whole(indptr, np.uint64, "indptr"), whole(indices, np.uint32, "indices"), report=callback(report)
    )


def betweenness(
    indptr: ArrayLike, indices: ArrayLike, pivots: ArrayLike, *, threads: int = 0, report: Report = None
) -> F64:
    """Return for each node [nodes] the share of shortest paths from `pivots` that pass through it.

    The plain sum over the pivots (ids; repeated ones count again) of Brandes' dependencies, in an
    undirected unweighted simple graph: not scaled, and end points do not count. With all nodes as pivots
    it is twice the exact betweenness of an undirected graph. Source: Brandes 2001.
    """
    return _core.betweenness(
        whole(indptr, np.uint64, "indptr"),
        whole(indices, np.uint32, "indices"),
        whole(pivots, np.uint32, "pivots"),
        threads=count(threads, "threads"),
        report=callback(report),
    )


def spread(
    indptr: ArrayLike,
    indices: ArrayLike,
    weights: ArrayLike | None,
    entries: ArrayLike,
    entry_weights: ArrayLike | None = None,
    *,
    teleport: float = 0.5,
    steps: int = 2,
    lazy: bool = False,
    report: Report = None,
) -> Reached:
    """Run exactly `steps` steps of personalised PageRank from a few nodes; touches only reached nodes.

    With `p` as the entries' distribution (`entry_weights`, by default equal, scaled to sum 1; weights of
    a repeated id are added) and the transition matrix `P[i, j] = w[i, j] / sum of row i`, each step computes
    `x = teleport * p + (1 - teleport) * P'x`, starting with `x = p`. `lazy` computes `x = teleport * x +
    (1 - teleport) * P'x`, as in `pagerank` (alpha in NodeRAG's code is `1 - teleport` there). A node without
    edges, or with zero weights only, keeps its mass. Weights are checked in the rows that are reached.
    Without entries the result is empty. Source: NodeRAG's shallow PageRank.
    """
    ids = whole(entries, np.uint32, "entries")
    return Reached(
        *_core.spread(
            whole(indptr, np.uint64, "indptr"),
            whole(indices, np.uint32, "indices"),
            None if weights is None else real(weights, "weights"),
            ids,
            np.ones(len(ids)) if entry_weights is None else real(entry_weights, "entry_weights"),
            teleport=number(teleport, "teleport"),
            steps=count(steps, "steps", _U32_MOST),
            lazy=flag(lazy, "lazy"),
            report=callback(report),
        )
    )
