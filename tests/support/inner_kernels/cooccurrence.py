"""Neighbour lists as a graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import U32, U64, whole


class KnnGraph(NamedTuple):
    """Neighbours of node i: `indices[indptr[i]:indptr[i + 1]]`, ascending. uint64 [n + 1], uint32."""

    indptr: U64
    indices: U32


def knn_graph(lexical: ArrayLike, semantic: ArrayLike) -> KnnGraph:
    """Return the simple undirected graph of all pairs {i, j} with j in a neighbour list of i.

    `lexical` and `semantic` are uint32 matrices of n rows (any number of columns); unused entries hold
    `NOBODY`. Rows of the graph ascend, without repeats or loops; a degree may exceed the length of the
    lists (KET-RAG, Alg. 3). Raises `InputError` for unequal rows or an id that is not below n.
    """
    return KnnGraph(
        *_core.knn_graph(
            whole(lexical, np.uint32, "lexical", 2),
            whole(semantic, np.uint32, "semantic", 2),
        )
    )
