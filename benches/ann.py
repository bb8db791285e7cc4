"""hnswlib against exact scans, of the core and of NumPy: recall before and after loading, time of a question.

OPENBLAS_NUM_THREADS=1 python benches/ann.py [--count N] [--dimension D] [--knn]
With --knn also the two ways to the KNN graph, at a quarter, a half and the whole of N.
With --products the exact KNN graph alone, by each set of instructions that this machine has.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common import header, median, seconds, table
from ketrag_fast import _core
from ketrag_fast.kernels import vectors as kernels
from ketrag_fast.models.ann.hnsw import HnswIndex
from ketrag_fast.models.ann.neighbours import nearest_rows
from ketrag_fast.models.ann.stored import BUILD_WIDTH, LINKS


def clustered(count: int, dimension: int, seed: int) -> np.ndarray:
    """Return unit vectors around 1,000 centres, like texts about 1,000 subjects."""
    draw = np.random.Generator(np.random.PCG64(7))
    centres = draw.standard_normal((1000, dimension)).astype(np.float32)
    draw = np.random.Generator(np.random.PCG64(seed))
    rows = centres[draw.integers(0, 1000, count)]
    rows += 0.9 * draw.standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--links", type=int, default=LINKS)
    parser.add_argument("--build-width", type=int, default=BUILD_WIDTH)
    parser.add_argument("--knn", action="store_true")
    parser.add_argument("--products", action="store_true")
    args = parser.parse_args(argv)
    if args.products:
        _products(clustered(args.count, args.dimension, 1))
        return
    vectors = clustered(args.count, args.dimension, 1)
    queries = clustered(200, args.dimension, 2)
    wanted, _ = kernels.top_k(vectors, queries, 10)
    codes = kernels.quantise(vectors)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.hnsw"
        started, busy = time.perf_counter(), time.process_time()
        index = HnswIndex.build(vectors, path, links=args.links, build_width=args.build_width)
        built, busy = time.perf_counter() - started, time.process_time() - busy
        size = path.stat().st_size / 1e6
        again = HnswIndex.open(path, index.meta, vectors)
        found = [each.search(queries, 10, None, 1)[0] for each in (index, again)]
        equal = np.array_equal(*found)
        hits = [
            np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(wanted, ids, strict=True)])
            for ids in found
        ]
        width = index.meta.search_width
        ways: list[tuple[str, float, Callable[[np.ndarray], Any]]] = [
            ("NumPy, f32 (one product, argpartition)", 1.0, lambda q: _numpy(vectors, q)),
            (
                f"hnswlib, search width {width}",
                hits[0],
                lambda q: index._index.knn_query(q, k=20, num_threads=1),
            ),
            (f"hnswlib and exact re-scoring, width {width}", hits[0], lambda q: index.search(q, 20, None, 1)),
            ("the same after save and load", hits[1], lambda q: again.search(q, 20, None, 1)),
        ]
        times = [
            median([median(seconds(lambda q=q, w=work: w(q), 5)) for q in _rows(queries)])
            for *_, work in ways
        ]
        scans = [("core, f32", None), ("core, int8 with exact re-scoring", codes)]
        ways = [(name, 1.0, lambda q: None) for name, _ in scans] + ways
        times = [_core_scan(vectors, queries, kept) for _, kept in scans] + times
    header(
        f"Nearest 20 of {args.count:,} vectors of {args.dimension} dimensions",
        [
            f"hnswlib: M {args.links}, ef_construction {args.build_width}, built on one thread in {built:.0f} s "
            f"({busy:.0f} s of processor), {size:.0f} MB; recall@10 measured at build time {index.meta.recall} "
            f"on {index.meta.sample} vectors turned by 45 degrees; found the same after loading: {equal}.",
            "Made-up vectors in 1,000 clusters; 200 questions from the same clusters for recall.",
            "One question at a time on one core; medians over 20 questions of 5 runs each.",
        ],
    )
    rows = [
        [name, f"{recall:.4f}", 1000 * taken, times[2] / taken]
        for (name, recall, _), taken in zip(ways, times, strict=True)
    ]
    table(["search", "recall@10", "ms a question", "times as fast as NumPy"], rows)
    if args.knn:
        _knn(vectors)


def _rows(queries: np.ndarray) -> list[np.ndarray]:
    return [query[None] for query in queries[:20]]


def _numpy(vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    scores = vectors @ query[0]
    best = np.argpartition(scores, -20)[-20:]
    return best[np.argsort(-scores[best])]


def _core_scan(vectors: np.ndarray, queries: np.ndarray, codes: Any) -> float:
    """Seconds of one question on one thread, less what a call takes for checking all vectors, which an
    opened index does once: 21 questions less one, by 20."""

    def work(count: int) -> float:
        return median(seconds(lambda: kernels.top_k(vectors, queries[:count], 20, codes=codes, threads=1), 5))

    return (work(21) - work(1)) / 20


def _products(vectors: np.ndarray) -> None:
    """Seconds of the exact KNN graph by each set of instructions, and whether all give the same bytes."""
    header(
        f"Exact KNN graph of {len(vectors):,} vectors of {vectors.shape[1]} dimensions",
        [
            "The two nearest of every row, on all cores; made-up vectors in 1,000 clusters.",
            "Processor seconds are those of all cores together.",
        ],
    )
    rows, first = [], None
    for level in reversed(_core.simd_levels()):
        if level == "portable":
            continue
        started, busy = time.perf_counter(), time.process_time()
        found = kernels.cosine_knn(vectors, 2, simd=level)
        taken, busy = time.perf_counter() - started, time.process_time() - busy
        first = found if first is None else first
        same = all(np.array_equal(a, b) for a, b in zip(first, found, strict=True))
        rows.append([f"{len(vectors):,}", level, taken, busy, "yes" if same else "**no**"])
    table(["rows", "instructions", "exact s", "processor s", "equal to the first"], rows)


def _knn(vectors: np.ndarray) -> None:
    rows = []
    for count in (len(vectors) // 4, len(vectors) // 2, len(vectors)):
        some = np.ascontiguousarray(vectors[:count])
        started = time.perf_counter()
        exact, _ = kernels.cosine_knn(some, 2)
        product = time.perf_counter() - started
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found, _ = nearest_rows(some, 2, None, Path(folder), 42)
        graph = time.perf_counter() - started
        rows.append([f"{count:,}", product, graph, f"{np.mean(exact == found):.4f}"])
    print("Two nearest of every row: the exact blocked product on all cores, and hnswlib (built on one).\n")
    table(["rows", "exact s", "hnswlib s", "same neighbours"], rows)


if __name__ == "__main__":
    main()
