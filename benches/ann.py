"""hnswlib against the exact scan in NumPy: recall before and after loading, time of a question.

python benches/ann.py [--count N] [--dimension D]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common import header, median, seconds, table
from ketrag_fast.backends.ann.exact import ExactScan
from ketrag_fast.backends.ann.hnsw import HnswIndex


def clustered(count: int, dimension: int, seed: int) -> np.ndarray:
    """Unit vectors around 1,000 centres, as texts about so many subjects are."""
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
    parser.add_argument("--build-threads", type=int, default=0)
    args = parser.parse_args(argv)
    vectors = clustered(args.count, args.dimension, 1)
    queries = clustered(200, args.dimension, 2)
    exact = ExactScan(vectors)
    wanted, _ = exact.search(queries, 10)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.hnsw"
        started = time.perf_counter()
        index = HnswIndex.build(vectors, path, threads=args.build_threads)
        built = time.perf_counter() - started
        again = HnswIndex.open(path, index.meta, vectors)
        rows = []
        for name, search in (("exact, NumPy", exact), ("hnswlib, built", index), ("hnswlib, loaded", again)):
            found, _ = search.search(queries, 10)
            hits = np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(wanted, found, strict=True)])
            one = [
                median(seconds(lambda q=q, s=search: s.search(q[None], 20, None, 1), 3)) for q in queries[:20]
            ]
            rows.append([name, f"{hits:.4f}", 1000 * median(one)])
    header(
        f"Nearest of {args.count:,} vectors of {args.dimension} dimensions",
        [
            f"Built in {built:.0f} s; search width {index.meta.search_width} for a measured recall@10 of "
            f"{index.meta.recall} on {index.meta.sample} vectors turned by 45 degrees.",
            "Made-up vectors in 1,000 clusters; questions come from the same clusters.",
            "One question at a time on one thread, the first 20; medians.",
        ],
    )
    table(["search", "recall@10", "ms a question"], rows)


if __name__ == "__main__":
    main()
