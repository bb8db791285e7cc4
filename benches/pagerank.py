"""PageRank and the keyword graph's transpose, compared with networkx, igraph and scipy: `python benches/pagerank.py`.

Caveats first. One machine, medians of the repetitions shown, peers in the same run. The graphs are random
(each node with `degree / 2` random partners, as KNN graphs have no hubs either; postings by a Zipf law). The
peers stop earlier or later than ours by their own rules, so the number of steps is shown if it is known:
ours does 132, enough for 1e-9 on any graph; scipy's power iteration is given the same 132; networkx stops at
an L1 change below n * 1e-6; igraph (PRPACK) solves to its own tolerance by Gauss-Seidel. Making the peers'
own graph objects is not counted. scipy's csr -> csc checks nothing and uses one thread; ours checks that the
ids of each row ascend.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from common import header, median, steady, table
from ketrag_fast.kernels import graphs

_COLUMNS = ["", "seconds, median", "least", "most", "times ours"]


def timed(work: Callable[[], Any], repeat: int) -> tuple[list[float], Any]:
    """(seconds of each run, last result); a row that other work disturbed is repeated."""
    results: list[Any] = [None]

    def keep() -> None:
        results[0] = work()

    return steady(keep, repeat), results[0]


def shown(name: str, seconds: list[float], ours: list[float]) -> list[Any]:
    """The first cells of a row: medians are compared, and least and most say how far to believe them."""
    return [name, median(seconds), min(seconds), max(seconds), f"{median(seconds) / median(ours):.1f}"]


def power_iteration(matrix: Any, steps: int) -> np.ndarray:
    """PageRank with scipy's product."""
    n = matrix.shape[0]
    out = np.asarray(matrix.sum(axis=1)).ravel()
    scale = np.divide(1.0, out, out=np.zeros(n), where=out > 0)
    pull = matrix.T.tocsr()
    x = np.full(n, 1 / n)
    for _ in range(steps):
        x = 0.15 / n + 0.85 * (pull @ (x * scale) + x[out == 0].sum() / n)
    return x


def ranks(n: int, degree: int, repeat: int) -> None:
    import igraph
    import networkx
    import scipy.sparse as sp

    random = np.random.default_rng(1)
    pairs = random.integers(0, n, (n * degree // 2, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    matrix = sp.csr_matrix((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(n, n))
    matrix.sort_indices()
    indptr, indices = matrix.indptr.astype(np.uint64), matrix.indices.astype(np.uint32)
    base, ours = timed(lambda: graphs.pagerank(indptr, indices), repeat)
    one, single = timed(lambda: graphs.pagerank(indptr, indices, threads=1), repeat)
    assert ours.tobytes() == single.tobytes()
    graph = igraph.Graph(n, pairs.tolist())
    nx_graph = networkx.Graph()
    nx_graph.add_nodes_from(range(n))
    nx_graph.add_edges_from(map(tuple, pairs.tolist()))
    peers: list[tuple[str, Callable[[], Any]]] = [
        ("scipy, 132 steps", lambda: power_iteration(matrix, 132)),
        ("igraph PRPACK", lambda: graph.pagerank(damping=0.85)),
        ("networkx", lambda: list(networkx.pagerank(nx_graph, alpha=0.85).values())),
    ]
    print(f"PageRank, {n:,} nodes, {len(both):,} directed edges (at least {repeat} runs):\n")
    rows: list[list[Any]] = [
        [*shown("ketrag_fast, all threads", base, base), "0"],
        [*shown("ketrag_fast, 1 thread", one, base), "0"],
    ]
    for name, work in peers:
        seconds, result = timed(work, max(3, repeat // 2))
        distance = np.abs(np.asarray(result) - ours).sum()
        rows.append([*shown(name, seconds, base), f"{distance:.1e}"])
    table([*_COLUMNS, "L1 distance to ours"], rows)


def turned(units: int, per_unit: int, words: int, repeat: int) -> None:
    import scipy.sparse as sp

    random = np.random.default_rng(2)
    draws = (words ** random.random((units, per_unit)) - 1).astype(np.uint32)
    draws.sort(axis=1)
    keep = np.concatenate([np.ones((units, 1), bool), draws[:, 1:] != draws[:, :-1]], axis=1)
    indices = draws[keep]
    indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))]).astype(np.uint64)
    base, got = timed(lambda: graphs.transpose(indptr, indices, words), repeat)
    one, _ = timed(lambda: graphs.transpose(indptr, indices, words, threads=1), repeat)
    shape = (units, words)
    matrix = sp.csr_matrix(
        (np.ones(len(indices), np.int8), indices.astype(np.int32), indptr.astype(np.int32)), shape
    )
    peer, want = timed(matrix.tocsc, repeat)
    assert np.array_equal(want.indices.astype(np.uint32), got.indices)
    print(
        f"Transpose, {units:,} units, {len(indices):,} postings, {words:,} words (at least {repeat} runs):\n"
    )
    found = (("ketrag_fast, all threads", base), ("ketrag_fast, 1 thread", one), ("scipy csr->csc", peer))
    table(_COLUMNS, [shown(name, seconds, base) for name, seconds in found])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="*", default=[8_000, 100_000, 1_000_000])
    parser.add_argument("--degree", type=int, default=4)
    parser.add_argument("--units", type=int, default=300_000)
    parser.add_argument("--words-per-unit", type=int, default=100)
    parser.add_argument("--words", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=5)
    chosen = parser.parse_args()
    header("PageRank and the transpose", [" ".join((__doc__ or "").split("\n\n")[1].split())])
    for n in chosen.nodes:
        ranks(n, chosen.degree, chosen.repeat)
    turned(chosen.units, chosen.words_per_unit, chosen.words, chosen.repeat)


if __name__ == "__main__":
    main()
