"""How central the nodes of a graph are: core numbers.

A graph is `(indptr, indices)`: row `i` holds `indices[indptr[i]:indptr[i + 1]]`. Undirected ones hold each
edge both ways, the ids of each row ascending, and no edge from a node to itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import I64, Report, callback, whole


def core_numbers(indptr: ArrayLike, indices: ArrayLike, *, report: Report = None) -> I64:
    """The core number [nodes] of each node of an undirected simple graph.

    The k-core is what is left once nodes with fewer than `k` neighbours are taken away until there are
    none; the core number is the largest `k` whose core holds the node. Time is linear in the edges.
    Source: Batagelj and Zaversnik 2003.
    """
    return _core.core_numbers(
        whole(indptr, np.uint64, "indptr"), whole(indices, np.uint32, "indices"), report=callback(report)
    )
