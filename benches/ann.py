"""Nearest vectors: the core's exact scans, NumPy, and hnswlib; the exact KNN graph by instruction set."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from common import arguments, median, publish, seconds, target
from common import result_table as table
from ketrag_fast import _core
from ketrag_fast.kernels import vectors as kernels
from ketrag_fast.models.ann.stored import BUILD_WIDTH, LINKS

DIMENSION, BEST, QUERIES = 384, 10, 100


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
    """Return the rows of hnswlib: alone at this package's search width, and with exact scores; empty without it."""
    if importlib.util.find_spec("hnswlib") is None:
        return []
    from ketrag_fast.models.ann.hnsw import HnswIndex

    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        path = Path(folder) / "bench.hnsw"
        index = HnswIndex.build(vectors, path, links=LINKS, build_width=BUILD_WIDTH)
        built, size = time.perf_counter() - started, path.stat().st_size / 1e6
        width = index.meta.search_width
        ways: list[tuple[str, Callable[[Any], Any]]] = [
            (f"hnswlib, search width {width}", lambda q: index._index.knn_query(q, k=BEST, num_threads=1)[0]),
            ("this package on hnswlib, exact scores", lambda q: index.search(q, BEST, None, 1)[0]),
        ]
        rows: list[list[Any]] = []
        for name, work in ways:
            shared = [
                len(np.intersect1d(wanted[at], work(queries[at : at + 1])[0])) for at in range(len(queries))
            ]
            times = [median(seconds(lambda q=q, w=work: w(q[None]), 3)) for q in queries[:20]]
            rows.append([name, 100 * float(np.mean(shared)) / BEST, 1000 * median(times), built, size])
    return rows


def main() -> None:
    """Measure searches and the KNN graph."""
    args = arguments(__doc__).parse_args()
    count = 2_000 if args.smoke else 50_000
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


if __name__ == "__main__":
    main()
