"""Co-occurrence neighbours: against the published loop and scipy on real passages, and their growth."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import header, median, require_data, table
from ketrag_fast.kernels.cooccurrence import cooccurrence_kernels, cooccurrence_knn
from zipf import zipf_texts

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.oracles.cooccurrence import published_pairs

SETS = ("musique-train100", "2wiki-101")
Texts = tuple[NDArray[np.uint64], NDArray[np.uint32], int]


def passages() -> list[list[int]]:
    """Distinct alphabetic words, lower case, without stop words, of all passages of both sets."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    vocabulary: dict[str, int] = {}
    texts = []
    for name in SETS:
        with (require_data(name) / "corpus.jsonl").open(encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                words = set(re.findall(r"[^\W\d_]+", f"{record['title']} {record['text']}".lower()))
                kept = words - ENGLISH_STOP_WORDS
                texts.append(sorted(vocabulary.setdefault(word, len(vocabulary)) for word in sorted(kept)))
    return texts


def packed(texts: list[list[int]]) -> Texts:
    indptr = np.cumsum([0, *map(len, texts)]).astype(np.uint64)
    indices = np.fromiter((word for text in texts for word in text), dtype=np.uint32)
    return indptr, indices, int(indices.max()) + 1


def scipy_neighbours(texts: Texts) -> Any:
    """The same by a sparse product; the best of each row (ties to the smaller id)."""
    from scipy.sparse import csr_array

    indptr, indices, columns = texts
    matrix = csr_array((np.ones(len(indices), np.int32), indices, indptr), shape=(len(indptr) - 1, columns))
    common = matrix @ matrix.T
    common.setdiag(0)
    return common.argmax(axis=1)


def _child(work: Callable[[], Any], answer: Any) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    answer.send((wall, cpu, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024))


def measured(work: Callable[[], Any]) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and MB of memory on top of what was there, in a fresh process."""
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    process = context.Process(target=_child, args=(work, theirs))
    process.start()
    theirs.close()
    result: tuple[float, float, float] = mine.recv()
    process.join()
    return result


def best(work: Callable[[], Any], runs: int) -> tuple[float, float, float, float]:
    """Of `runs` measurements: shortest and median wall, least processor time, most memory."""
    found = [measured(work) for _ in range(runs)]
    walls = [wall for wall, _, _ in found]
    return min(walls), median(walls), min(cpu for _, cpu, _ in found), max(mb for _, _, mb in found)


def real(args: argparse.Namespace) -> None:
    texts = passages()
    rows = packed(texts)
    n = len(texts)
    part = texts[:: max(n // args.published, 1)] if args.published else texts
    scale = (n / len(part)) ** 2
    wall, cpu, memory = measured(lambda: published_pairs(part, 1))
    note = "" if len(part) == n else f" (from {len(part)}, times {scale:.1f})"
    theirs = (wall * scale, cpu * scale, memory * scale)
    lines: list[list[Any]] = [[f"published loop{note}", 1, theirs[0], *theirs, "", ""]]

    def add(name: str, threads: int, work: Callable[[], Any], runs: int) -> None:
        least, middle, cpu, memory = best(work, runs)
        ratios = f"{theirs[0] / least:.0f}", f"{theirs[1] / cpu:.0f}"
        lines.append([name, threads, least, middle, cpu, memory, *ratios])

    add("scipy X @ X.T, argmax", 1, lambda: scipy_neighbours(rows), 2)
    for kernel in cooccurrence_kernels():
        for threads in sorted({1, args.threads}):
            for k in (1, 10):
                add(
                    f"cooccurrence_knn k={k} {kernel}",
                    threads,
                    lambda kernel=kernel, threads=threads, k=k: cooccurrence_knn(
                        *rows, k, threads=threads, kernel=kernel
                    ),
                    args.runs,
                )
    print(f"{' + '.join(SETS)}: {n} passages, {len(rows[1]) / n:.0f} distinct words each\n")
    table(["", "threads", "s, best", "s, median", "cpu s", "MB", "times faster, wall", "by cpu"], lines)


def growth(args: argparse.Namespace) -> None:
    lines = []
    last: tuple[int, float] | None = None
    for n in args.sizes:
        rows = zipf_texts(n)
        for ratio in (None, args.max_df_ratio) if args.max_df_ratio else (None,):
            asked = None if not args.sample or args.sample >= n else (0, args.sample)

            def work(
                rows: Texts = rows, ratio: float | None = ratio, asked: tuple[int, int] | None = asked
            ) -> None:
                cooccurrence_knn(*rows, 1, threads=args.threads, rows=asked, max_df_ratio=ratio)

            least, middle, cpu, memory = best(work, args.runs if n <= 100_000 else 1)
            if asked:
                # What does not depend on the number of texts asked for is done once.
                base = best(lambda rows=rows, ratio=ratio: _nothing(rows, ratio, args.threads), 1)
                grow = n / args.sample
                least, middle, cpu = (
                    fixed + (x - fixed) * grow
                    for x, fixed in zip((least, middle, cpu), (base[0], base[1], base[2]), strict=True)
                )
            recall = "" if ratio is None else f"{_recall(rows, ratio, args.threads):.3f}"
            exponent = ""
            if ratio is None:
                if last:
                    exponent = f"{np.log(cpu / last[1]) / np.log(n / last[0]):.2f}"
                last = n, cpu
            name = f"{n}" + (f", from {args.sample} texts" if asked else "")
            lines.append([name, ratio or "exact", least, middle, cpu, memory, exponent, recall])
    print(f"Generated Zipf texts (seed 42), 88 distinct words each, k=1, {args.threads} threads\n")
    table(["texts", "max_df_ratio", "s, best", "s, median", "cpu s", "MB", "exponent", "recall"], lines)


def _nothing(rows: Texts, ratio: float | None, threads: int) -> None:
    cooccurrence_knn(*rows, 1, threads=threads, rows=(0, 1), max_df_ratio=ratio)


def _recall(rows: Texts, ratio: float, threads: int) -> float:
    """The share of the first 2,000 texts whose neighbour is the exact one."""
    asked = (0, min(2000, len(rows[0]) - 1))
    exact = cooccurrence_knn(*rows, 1, threads=threads, rows=asked)
    found = cooccurrence_knn(*rows, 1, threads=threads, rows=asked, max_df_ratio=ratio)
    return float(np.mean(exact.ids == found.ids))


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 30_000, 100_000, 300_000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sample", type=int, default=0, help="answer for so many texts only, and scale")
    parser.add_argument("--published", type=int, default=2000, help="passages for the published loop; 0: all")
    parser.add_argument("--max-df-ratio", type=float, default=0.0, help="also measure this and its recall")
    parser.add_argument("--skip-real", action="store_true")
    args = parser.parse_args()
    header(
        "Co-occurrence neighbours",
        [
            "Each run in a fresh process; MB: resident memory added at its peak, results included.",
            f"Best and median of {args.runs} runs up to 100,000 texts, one run above; cpu: of all threads.",
            "'times faster': the published loop's wall by our best wall, and processor times likewise.",
            "The published loop is scaled from a part of the passages unless --published 0.",
        ],
    )
    if not args.skip_real:
        real(args)
    if args.sizes:
        growth(args)


if __name__ == "__main__":
    main()
