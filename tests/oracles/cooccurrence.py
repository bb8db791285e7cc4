"""Plain oracles: co-occurrence neighbours over all pairs, and the KNN graph from neighbour lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

NOBODY = 0xFFFF_FFFF


def cooccurrence_knn(
    texts: Sequence[Iterable[int]],
    k: int,
    *,
    max_df_ratio: float | None = None,
    allow_zero: bool = False,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """For each text the `k` others with the most words in common, by count and then by id.

    The all-pairs form of the published algorithm (KET-RAG, Alg. 3, lines 3 and 4; in the code
    `find_top_k_cooccurrence_pairs`): every intersection is made, every row sorted.
    Returns (ids, counts), each [texts, k], padded with 2^32 - 1 and 0.
    """
    sets = [frozenset(text) for text in texts]
    if max_df_ratio is not None:
        df = Counter(word for words in sets for word in words)
        most = max_df_ratio * len(sets)
        sets = [frozenset(word for word in words if df[word] <= most) for words in sets]
    ids = np.full((len(sets), k), NOBODY, dtype=np.uint32)
    counts = np.zeros((len(sets), k), dtype=np.uint32)
    for i, mine in enumerate(sets):
        found = [(-len(mine & other), j) for j, other in enumerate(sets) if j != i]
        kept = sorted(pair for pair in found if allow_zero or pair[0] < 0)[:k]
        for place, (negative, j) in enumerate(kept):
            ids[i, place], counts[i, place] = j, -negative
    return ids, counts


def knn_graph(lexical: NDArray[np.uint32], semantic: NDArray[np.uint32]) -> list[list[int]]:
    """For each node its neighbours, ascending: all pairs named by either list, once, without loops."""
    nodes: list[set[int]] = [set() for _ in range(len(lexical))]
    for lists in (lexical, semantic):
        for i, row in enumerate(lists.tolist()):
            for j in row:
                if j not in (NOBODY, i):
                    nodes[i].add(j)
                    nodes[j].add(i)
    return [sorted(node) for node in nodes]
