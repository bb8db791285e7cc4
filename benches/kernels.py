"""Kernels next to public libraries that compute the same.

python benches/kernels.py graphs     # graphs and texts: scipy, igraph, networkx
python benches/kernels.py vectors    # nearest vectors: the core's exact scans, NumPy, hnswlib; the exact KNN graph by instruction set
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from common import arguments, median, publish, seconds, target
from common import result_table as table
from generated import zipf_texts
from ketrag_fast import _core
from ketrag_fast.kernels import graphs
from ketrag_fast.kernels import vectors as kernels
from ketrag_fast.models.ann import BUILD_WIDTH, LINKS
from ketrag_fast.systems.papers.kernels import cooccurrence_knn

PIVOTS, STEPS = 10, 132
"""The last is how many power iterations PageRank does here."""
DIMENSION, BEST, QUERIES = 384, 10, 100


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


def measure_graphs(smoke: bool) -> None:
    """Measure kernels on graphs and texts."""
    nodes, runs = (500, 1) if smoke else (100_000, 5)
    indptr, indices, pairs = random_graph(nodes, 3 * nodes)
    igraph, networkx, sparse = library("igraph"), library("networkx"), library("scipy.sparse")
    random = np.random.default_rng(2)
    pivots = np.sort(random.choice(nodes, PIVOTS, replace=False)).astype(np.uint32)
    edges = indptr.astype(np.uint64), indices.astype(np.uint32)
    texts = zipf_texts(200 if smoke else 8_000)
    ranks: dict[str, Callable[[], Any]] = {"ketrag_fast": lambda: graphs.pagerank(indptr, indices)}
    cores: dict[str, Callable[[], Any]] = {"ketrag_fast": lambda: _core.core_numbers(*edges)}
    between: dict[str, Callable[[], Any]] = {"ketrag_fast": lambda: _core.betweenness(*edges, pivots)}
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
    if networkx is not None:
        other = networkx.Graph()
        other.add_nodes_from(range(nodes))
        other.add_edges_from(map(tuple, pairs.tolist()))
        ranks["networkx"] = lambda: networkx.pagerank(other, alpha=0.85)
        cores["networkx"] = lambda: networkx.core_number(other)
    rows = rows_of("PageRank", ranks, runs)
    rows += rows_of("core numbers", cores, runs)
    rows += rows_of(f"betweenness from {PIVOTS} nodes", between, runs)
    rows += rows_of(f"text with most common words, {len(texts[0]) - 1:,} texts", words, runs)
    publish(
        [table("", ["kernel", "by", "ms, median", "times ours", "target"], rows)],
        f"A random graph of {nodes:,} nodes and {len(pairs):,} edges.",
        [
            "Making the libraries' own graph objects is not counted. All kernels give the same bytes on any number of threads."
        ],
    )


def clustered(count: int, seed: int) -> np.ndarray[Any, Any]:
    """Return unit vectors around 1,000 centres, like texts about 1,000 subjects."""
    draw = np.random.Generator(np.random.PCG64(7))
    centres = draw.standard_normal((1000, DIMENSION)).astype(np.float32)
    draw = np.random.Generator(np.random.PCG64(seed))
    rows = centres[draw.integers(0, 1000, count)]
    rows += 0.9 * draw.standard_normal((count, DIMENSION)).astype(np.float32)
    unit: np.ndarray[Any, Any] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def by_numpy(vectors: np.ndarray[Any, Any], query: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the nearest rows by one product and a partition."""
    scores = vectors @ query
    best = np.argpartition(scores, -BEST)[-BEST:]
    return best[np.argsort(-scores[best])]


def scan(vectors: np.ndarray[Any, Any], queries: np.ndarray[Any, Any], codes: Any) -> float:
    """Return the seconds of one question in the core, without the check of all vectors, which an open index does once."""

    def work(count: int) -> float:
        return median(
            seconds(lambda: kernels.top_k(vectors, queries[:count], BEST, codes=codes, threads=1), 3)
        )

    return (work(21) - work(1)) / 20


def hnswlib_rows(
    vectors: np.ndarray[Any, Any], queries: np.ndarray[Any, Any], wanted: Any
) -> list[list[Any]]:
    """Return the row of hnswlib at this package's search width; none without it."""
    if importlib.util.find_spec("hnswlib") is None:
        return []
    from ketrag_fast.models.ann import HnswGraph

    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        path = Path(folder) / "bench.hnsw"
        graph = HnswGraph.build(vectors, path, 42)
        built, size = time.perf_counter() - started, path.stat().st_size / 1e6

        def work(query: Any) -> Any:
            return graph._index.knn_query(query[None], k=BEST, num_threads=1)[0]

        shared = [len(np.intersect1d(best, work(q)[0])) for best, q in zip(wanted, queries, strict=True)]
        times = [median(seconds(lambda q=q: work(q), 3)) for q in queries[:20]]
        recall = 100 * float(np.mean(shared)) / BEST
        return [
            [f"hnswlib, search width {graph.meta.search_width}", recall, 1000 * median(times), built, size]
        ]


def measure_vectors(smoke: bool) -> None:
    """Measure searches and the KNN graph."""
    count = 2_000 if smoke else 50_000
    vectors, queries = clustered(count, 1), clustered(QUERIES, 2)
    wanted, _ = kernels.top_k(vectors, queries, BEST)
    codes = kernels.quantise(vectors)
    base = median([median(seconds(lambda q=q: by_numpy(vectors, q), 3)) for q in queries[:20]])
    rows: list[list[Any]] = [
        ["NumPy, f32", 100.0, 1000 * base, None, vectors.nbytes / 1e6],
        ["exact scan, f32", 100.0, 1000 * scan(vectors, queries, None), None, vectors.nbytes / 1e6],
        [
            "exact scan, int8 and exact scores",
            100.0,
            1000 * scan(vectors, queries, codes),
            None,
            1.25 * vectors.nbytes / 1e6,
        ],
        *hnswlib_rows(vectors, queries, wanted),
    ]
    graph: list[list[Any]] = []
    first = None
    for level in reversed(_core.simd_levels()):
        if level == "portable":
            continue
        started = time.perf_counter()
        found = kernels.cosine_knn(vectors, 2, simd=level)
        took = time.perf_counter() - started
        first = found if first is None else first
        same = all(np.array_equal(a, b) for a, b in zip(first, found, strict=True))
        graph.append([level, took, same, target(took, most=5 if "vnni" in level or level == "amx" else 15)])
    columns = ["search", f"recall@{BEST}, %", "ms a question", "build, s", "MB"]
    publish(
        [
            table(f"Nearest {BEST} of {count:,}", columns, rows),
            table(
                "Exact KNN graph: the two nearest of every vector, all cores",
                ["instructions", "s", "equal", "target"],
                graph,
            ),
        ],
        f"{count:,} vectors, {QUERIES} questions.",
        [f"hnswlib: M {LINKS}, ef_construction {BUILD_WIDTH}, built on one thread."],
    )


def main() -> None:
    """Measure one kind of kernels."""
    parser = arguments(__doc__)
    parser.add_argument("kind", choices=("graphs", "vectors"))
    args = parser.parse_args()
    (measure_graphs if args.kind == "graphs" else measure_vectors)(args.smoke)


if __name__ == "__main__":
    main()
