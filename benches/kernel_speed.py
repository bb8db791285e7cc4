"""Kernels on graphs and texts next to the same by public libraries: scipy, igraph, networkx, scikit-learn."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from common import arguments, median, publish, seconds, target
from common import result_table as table
from ketrag_fast import _core
from ketrag_fast.kernels import graphs
from ketrag_fast.kernels.cooccurrence import cooccurrence_knn
from zipf import zipf_texts

PIVOTS, ENTRIES, STEPS = 10, 20, 132
"""The last is how many power iterations PageRank does here."""


def library(name: str) -> ModuleType | None:
    """Return a package, or None if it is not installed."""
    return importlib.import_module(name) if importlib.util.find_spec(name.partition(".")[0]) else None


def random_graph(nodes: int, edges: int) -> tuple[Any, Any, Any]:
    """Return (indptr, indices, pairs) of a random graph with hubs of some thousand neighbours."""
    random = np.random.default_rng(1)
    ends = np.stack([nodes * random.random(2 * edges) ** 2.5, random.integers(0, nodes, 2 * edges)], axis=1)
    pairs = np.sort(ends.astype(np.int64), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    pairs = pairs[np.sort(random.permutation(len(pairs))[:edges])]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(both[:, 0], minlength=nodes))])
    return indptr.astype(np.uint64), both[:, 1].astype(np.uint32), pairs


def power_iteration(matrix: Any) -> Any:
    """Return PageRank by scipy's product, with as many steps as here."""
    n = matrix.shape[0]
    out = np.asarray(matrix.sum(axis=1)).ravel()
    scale = np.divide(1.0, out, out=np.zeros(n), where=out > 0)
    pull = matrix.T.tocsr()
    x = np.full(n, 1 / n)
    for _ in range(STEPS):
        x = 0.15 / n + 0.85 * (pull @ (x * scale) + x[out == 0].sum() / n)
    return x


def neighbours(texts: tuple[Any, Any, int]) -> Any:
    """Return the text that shares most words with each text, by scipy's sparse product."""
    sparse = importlib.import_module("scipy.sparse")
    indptr, indices, columns = texts
    shape = (len(indptr) - 1, columns)
    matrix = sparse.csr_array((np.ones(len(indices), np.int32), indices, indptr), shape=shape)
    common = matrix @ matrix.T
    common.setdiag(0)
    return common.argmax(axis=1)


def rows_of(what: str, work: dict[str, Callable[[], Any]], runs: int) -> list[list[Any]]:
    """Return a row for each way; the first is this package's."""
    times = {
        name: median(seconds(call, runs if at == 0 else max(1, runs // 3), warmup=int(at == 0)))
        for at, (name, call) in enumerate(work.items())
    }
    ours = next(iter(times.values()))
    return [
        [what, name, 1000 * took, took / ours, "" if at == 0 else target(took / ours, least=1)]
        for at, (name, took) in enumerate(times.items())
    ]


def main() -> None:
    """Measure all kernels."""
    args = arguments(__doc__).parse_args()
    nodes, runs = (500, 1) if args.smoke else (100_000, 5)
    indptr, indices, pairs = random_graph(nodes, 3 * nodes)
    igraph, networkx, sparse = library("igraph"), library("networkx"), library("scipy.sparse")
    random = np.random.default_rng(2)
    pivots = np.sort(random.choice(nodes, PIVOTS, replace=False)).astype(np.uint32)
    entries = np.sort(random.choice(nodes, ENTRIES, replace=False)).astype(np.uint32)
    edges = indptr.astype(np.uint64), indices.astype(np.uint32)
    texts = zipf_texts(200 if args.smoke else 8_000)
    ranks: dict[str, Callable[[], Any]] = {"ketrag_fast": lambda: graphs.pagerank(indptr, indices)}
    cores: dict[str, Callable[[], Any]] = {"ketrag_fast": lambda: _core.core_numbers(*edges)}
    between: dict[str, Callable[[], Any]] = {"ketrag_fast": lambda: _core.betweenness(*edges, pivots)}
    walks: dict[str, Callable[[], Any]] = {
        "ketrag_fast": lambda: _core.spread(*edges, None, entries, np.full(ENTRIES, 1 / ENTRIES))
    }
    words: dict[str, Callable[[], Any]] = {"ketrag_fast": lambda: cooccurrence_knn(*texts, 1)}
    if sparse is not None:
        matrix = sparse.csr_matrix(
            (np.ones(len(indices)), indices.astype(np.int32), indptr.astype(np.int32)), (nodes, nodes)
        )
        ranks[f"scipy, {STEPS} products"] = lambda: power_iteration(matrix)
        words["scipy, X @ X.T"] = lambda: neighbours(texts)
    if igraph is not None:
        graph = igraph.Graph(nodes, pairs.tolist())
        ranks["igraph, PRPACK"] = lambda: graph.pagerank(damping=0.85)
        cores["igraph"] = graph.coreness
        between["igraph"] = lambda: graph.betweenness(sources=pivots.tolist())
        walks["igraph, personalised PageRank"] = lambda: graph.personalized_pagerank(
            damping=0.5, reset_vertices=entries.tolist()
        )
    if networkx is not None:
        other = networkx.Graph()
        other.add_nodes_from(range(nodes))
        other.add_edges_from(map(tuple, pairs.tolist()))
        ranks["networkx"] = lambda: networkx.pagerank(other, alpha=0.85)
        cores["networkx"] = lambda: networkx.core_number(other)
    rows = rows_of("PageRank", ranks, runs)
    rows += rows_of("core numbers", cores, runs)
    rows += rows_of(f"betweenness from {PIVOTS} nodes", between, runs)
    rows += rows_of(f"two steps from {ENTRIES} nodes", walks, runs)
    rows += rows_of(f"text with most common words, {len(texts[0]) - 1:,} texts", words, runs)
    publish(
        [table("", ["kernel", "by", "ms, median", "times ours", "target"], rows)],
        f"A random graph of {nodes:,} nodes and {len(pairs):,} edges.",
        [
            "Making the libraries' own graph objects is not counted. igraph has no walk of two steps: its personalised PageRank runs"
            " to its end. All kernels give the same bytes on any number of threads."
        ],
    )


if __name__ == "__main__":
    main()
