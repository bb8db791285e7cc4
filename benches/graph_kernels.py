"""Core numbers, betweenness and short walks, compared with networkx and igraph: `python benches/graph_kernels.py`.

Caveats first. One machine, medians of the repetitions shown, peers in the same run. The graph is random: one
end of each edge by a power law (there are hubs of some thousand neighbours), the other evenly drawn. Making
the peers' own graph objects is not counted, and ours checks its arrays in every call, which theirs need not.
igraph counts betweenness from chosen sources (its `sources`), networkx the same of a subset, one core each.
The short walk of the reference implementation is two products of a sparse matrix with a dense vector (scipy); networkx
and igraph have no walk of two steps, so their personalised PageRank to its end stands beside it.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from common import header, median, seconds, steady, table
from ketrag_fast.kernels.centrality import betweenness, core_numbers, spread

_COLUMNS = ["", "by", "ms, median", "least", "times ours"]
PIVOTS, ENTRIES = 10, 20


def undirected(nodes: int, edges: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(indptr, indices, pairs) of a random graph with hubs."""
    random = np.random.default_rng(1)
    ends = np.stack([nodes * random.random(2 * edges) ** 2.5, random.integers(0, nodes, 2 * edges)], axis=1)
    pairs = np.sort(ends.astype(np.int64), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    pairs = pairs[np.sort(random.permutation(len(pairs))[:edges])]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(both[:, 0], minlength=nodes))])
    return indptr.astype(np.uint64), both[:, 1].astype(np.uint32), pairs


def peers(nodes: int, pairs: np.ndarray) -> tuple[Any, Any]:
    """The graph as networkx and igraph hold it; None for one that is not installed."""
    made: list[Any] = []
    for name in ("networkx", "igraph"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            print(f"{name} is not installed: its rows are left out", file=sys.stderr)
            made.append(None)
            continue
        if name == "igraph":
            made.append(module.Graph(nodes, pairs.tolist()))
        else:
            graph = module.Graph()
            graph.add_nodes_from(range(nodes))
            graph.add_edges_from(map(tuple, pairs.tolist()))
            made.append(graph)
    return made[0], made[1]


def measure(
    what: str, ours: Callable[[], Any], others: dict[str, Callable[[], Any]], repeat: int
) -> list[list[Any]]:
    """The rows of one kernel and its peers."""
    base = steady(ours, repeat)
    rows: list[list[Any]] = [[what, "ketrag_fast", 1e3 * median(base), 1e3 * min(base), ""]]
    for name, work in others.items():
        found = seconds(work, 1 if name.startswith("networkx") else max(3, repeat // 3), warmup=0)
        ratio = f"{median(found) / median(base):.1f}"
        rows.append([what, name, 1e3 * median(found), 1e3 * min(found), ratio])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=600_000)
    parser.add_argument("--repeat", type=int, default=9)
    chosen = parser.parse_args()
    header("Kernels of typed graphs", [" ".join((__doc__ or "").split("\n\n")[1].split())])
    indptr, indices, pairs = undirected(chosen.nodes, chosen.edges)
    nx_graph, ig_graph = peers(chosen.nodes, pairs)
    random = np.random.default_rng(2)
    pivots = random.choice(chosen.nodes, PIVOTS, replace=False)
    entries = random.choice(chosen.nodes, ENTRIES, replace=False)

    cores, between, walks = {}, {}, {}
    if nx_graph is not None:
        networkx = importlib.import_module("networkx")
        cores["networkx"] = lambda: networkx.core_number(nx_graph)
        between["networkx"] = lambda: networkx.betweenness_centrality_subset(
            nx_graph, pivots.tolist(), nx_graph.nodes
        )
        restart = dict.fromkeys(entries.tolist(), 1.0)
        walks["networkx, to its end"] = lambda: networkx.pagerank(nx_graph, 0.5, personalization=restart)
    if ig_graph is not None:
        cores["igraph"] = ig_graph.coreness
        between["igraph"] = lambda: ig_graph.betweenness(sources=pivots.tolist())
        walks["igraph, to its end"] = lambda: ig_graph.personalized_pagerank(
            damping=0.5, reset_vertices=entries.tolist()
        )
    sparse = importlib.import_module("scipy.sparse")
    shape = (chosen.nodes, chosen.nodes)
    matrix = sparse.csr_matrix(
        (np.ones(len(indices)), indices.astype(np.int32), indptr.astype(np.int32)), shape
    )
    out = np.asarray(matrix.sum(axis=1)).ravel()
    step = (sparse.diags(np.divide(1.0, out, out=np.zeros_like(out), where=out > 0)) @ matrix).T.tocsr()

    def dense() -> np.ndarray:
        p = np.bincount(entries, minlength=chosen.nodes) / ENTRIES
        x = p
        for _ in range(2):
            x = 0.5 * p + 0.5 * (step @ x)
        return np.argsort(-x, kind="stable")

    walks["scipy, two products"] = dense
    rows = measure("core numbers", lambda: core_numbers(indptr, indices), cores, chosen.repeat)
    rows += measure(
        f"betweenness, {PIVOTS} pivots",
        lambda: betweenness(indptr, indices, pivots),
        between,
        max(3, chosen.repeat // 3),
    )
    rows += measure(
        f"two steps from {ENTRIES} nodes",
        lambda: spread(indptr, indices, None, entries),
        walks,
        chosen.repeat,
    )
    print(f"{chosen.nodes:,} nodes, {len(pairs):,} edges; networkx ran once:\n")
    table(_COLUMNS, rows)


if __name__ == "__main__":
    main()
