"""Centrality of the nodes of a graph: core numbers and betweenness.

A graph is `(indptr, indices)`: row `i` holds `indices[indptr[i]:indptr[i + 1]]`. Undirected graphs hold each
edge both ways, the ids of each row ascending, and no loops.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import F64, I64, Report, callback, count, whole


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
