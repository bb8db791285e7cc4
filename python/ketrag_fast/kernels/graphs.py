"""Graphs as compressed rows: PageRank, core selection, transposes and the text-keyword graph.

A graph is `(indptr, indices)`: row `i` holds `indices[indptr[i]:indptr[i + 1]]`. Integer arrays of any
type are converted; arrays that do not fit together raise `InputError`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels import arrays
from ketrag_fast.kernels.arrays import F64, U32, U64, Report, callback, count, flag, number, real, text, whole

_U32_MOST = 2**32 - 1


class Rows(NamedTuple):
    """Compressed rows: row i is `indices[indptr[i]:indptr[i + 1]]`."""

    indptr: U64
    indices: U32


class Bipartite(NamedTuple):
    """The text-keyword graph in both directions; keyword `k` is word `kept[k]` of the input."""

    unit_keywords: Rows
    keyword_units: Rows
    kept: U32


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


def personalised_pagerank(
    indptr: ArrayLike,
    indices: ArrayLike,
    restart: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    teleport: float = 0.15,
    tolerance: float = 1e-9,
    steps: int | None = None,
    threads: int = 0,
    report: Report = None,
) -> F64:
    """Return the `pagerank` whose walker returns to `restart` [nodes] (>= 0, not all 0; scaled to sum 1).

    Source: Haveliwala 2002; NodeRAG's shallow PPR is `steps=2, teleport=0.5`.

    Examples:
        >>> personalised_pagerank([0, 1, 2, 2], [1, 2], [1, 0, 0], teleport=0.5).round(3).tolist()
        [0.571, 0.286, 0.143]
    """
    return pagerank(
        indptr,
        indices,
        weights,
        restart=restart,
        teleport=teleport,
        tolerance=tolerance,
        steps=steps,
        threads=threads,
        report=report,
    )


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


def transpose(
    indptr: ArrayLike, indices: ArrayLike, columns: int, *, threads: int = 0, report: Report = None
) -> Rows:
    """Transpose compressed rows. The ids of each row must strictly ascend, as they do in the result."""
    return Rows(
        *_core.transpose(
            whole(indptr, np.uint64, "indptr"),
            whole(indices, np.uint32, "indices"),
            count(columns, "columns"),
            threads=count(threads, "threads"),
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


def bipartite(
    indptr: ArrayLike,
    indices: ArrayLike,
    words: int,
    *,
    min_df: int = 1,
    max_df_ratio: float = 1.0,
    threads: int = 0,
    report: Report = None,
) -> Bipartite:
    """Return the text-keyword graph of units, given their distinct words (ids below `words`, ascending).

    Words in fewer than `min_df` units, or in more than the share `max_df_ratio` of them, are dropped.
    `renumber(.., kept)` applies the same choice to the words of sentences. Source: KET-RAG, Alg. 3 line 20.
    """
    a, b, c, d, kept = _core.bipartite(
        whole(indptr, np.uint64, "indptr"),
        whole(indices, np.uint32, "indices"),
        count(words, "words"),
        min_df=count(min_df, "min_df", _U32_MOST),
        max_df_ratio=number(max_df_ratio, "max_df_ratio"),
        threads=count(threads, "threads"),
        report=callback(report),
    )
    return Bipartite(Rows(a, b), Rows(c, d), kept)
