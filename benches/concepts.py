"""G2ConS: the graph of concepts and the choice of chunks against scipy, one question, and coverage.

python benches/concepts.py [--part graph,question,coverage] [--chunks 8000,100000] [--sets A,B] [--embedder E]
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from common import header, median, require_data, table
from ketrag_fast import Index, Settings, _core
from ketrag_fast.lab.eval import evaluate, load_dataset
from zipf import zipf_texts

DIMENSION = 384
MODES = ("bm25", "text", "keyword", "walk", "concepts")


def vectors(count: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Of unit length, around as many directions as there are topics: some pairs are close, most are not."""
    random = np.random.default_rng(7)
    heads = random.standard_normal((64, DIMENSION), np.float32)
    made = random.standard_normal((count, DIMENSION), np.float32) * np.float32(0.6)
    made += heads[random.integers(0, 64, count)]
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def _child(who: str, chunks: int, threads: int, answer: Any) -> None:
    indptr, indices, words = zipf_texts(chunks)
    if who == "scipy":
        from scipy.sparse import csr_array

        matrix = csr_array(
            (np.ones(len(indices), np.int32), indices, indptr), shape=(chunks, words)
        ).T.tocsr()
        cpu, started = time.process_time(), time.perf_counter()
        product = matrix @ matrix.T
        parts, size = {"product": time.perf_counter() - started}, product.nnz
    else:
        of_words = vectors(words)
        cpu, started = time.process_time(), time.perf_counter()
        edges, _, _, weights, _ = _core.concept_graph(indptr, indices, of_words, threads=threads)
        joined = time.perf_counter()
        ranks = _core.pagerank(*edges, weights, threads=threads)
        ranked = time.perf_counter()
        _core.select_by_concepts(indptr, indices, ranks, int(0.8 * chunks))
        ended = time.perf_counter()
        parts = {"graph": joined - started, "pagerank": ranked - joined, "selection": ended - ranked}
        size = len(edges[1]) // 2
    used = time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    answer.put((sum(parts.values()), used, parts, size, peak))


def measured(who: str, chunks: int, threads: int = 0) -> tuple[float, float, dict[str, float], int, float]:
    """Seconds, those of all cores, parts of the first, entries or edges, and GiB at the peak (vectors and texts with them)."""
    context = multiprocessing.get_context("spawn")
    answer = context.SimpleQueue()
    child = context.Process(target=_child, args=(who, chunks, threads, answer))
    child.start()
    child.join()
    if child.exitcode:
        raise SystemExit(f"{who} ended with {child.exitcode}")
    found: tuple[float, float, dict[str, float], int, float] = answer.get()
    return found


def graph(sizes: list[int]) -> None:
    """The graph, PageRank and the choice of 80 % of the chunks, compared with the bare product of scipy."""
    print("## Graph of concepts and selection\n")
    rows = []
    for chunks in sizes:
        peer = None
        for who, threads in (("scipy", 1), ("ketrag", 0), ("ketrag, one thread", 1)):
            total, used, parts, size, peak = measured(who.split(",")[0], chunks, threads)
            what = ", ".join(f"{name} {taken:.2f}" for name, taken in parts.items())
            ratio = "" if peer is None else f"{peer / total:.1f}"
            peer = peer or total
            sizes = [f"{size:,}", round(peak, 2)]
            rows.append([f"{chunks:,}", who, round(total, 2), ratio, round(used, 2), what, *sizes])
    columns = [
        "chunks",
        "who",
        "s",
        "scipy / this",
        "s of cores",
        "of which",
        "edges (scipy: entries)",
        "GiB",
    ]
    table(columns, rows)


def question(chunks: int, runs: int) -> None:
    """One question after its embedding, printing included, on passages of musique-dev: the least of `runs`."""
    dataset = load_dataset(require_data("musique-dev"))
    with tempfile.TemporaryDirectory() as temporary:
        settings = Settings(modes="concepts,text,keyword")
        with Index.build(require_data("musique-dev"), Path(temporary) / "index", settings=settings) as index:
            print(
                f"## One question, {index.stats()['counts']['chunks']:,} chunks (at least {chunks:,} wanted)\n"
            )
            rows = []
            questions = [each.text for each in dataset.questions][:200]
            for mode in ("concepts", "text", "keyword"):
                taken = []
                for text in questions:
                    found = [index.retrieve(text, mode=mode, budget=12_000) for _ in range(runs)]
                    taken.append(min(context.timings_ms["search"] for context in found))
                rows.append([mode, round(median(taken), 3), round(float(np.quantile(taken, 0.95)), 3)])
            table(["mode", "ms, median", "ms, 95 of 100"], rows)


def coverage(sets: list[str], embedder: str, budgets: list[int], thetas: list[str]) -> None:
    """Answers in the context, by thresholds: a cosine, or `qP` for a quantile."""
    for name in sets:
        folder = require_data(name)
        dataset = load_dataset(folder)
        rows = []
        with tempfile.TemporaryDirectory() as temporary:
            for place, theta in enumerate(thetas):
                value = float(theta.removeprefix("q"))
                close = {"theta_quantile" if theta[0] == "q" else "theta_sem": value}
                settings = Settings(modes="auto,concepts", embedder=embedder, **close)
                with Index.build(folder, Path(temporary) / "index", settings=settings) as index:
                    graph = index.inspect.arrays()["concept_graph"]
                    edges, applied = len(graph["edges_indices"]) // 2, float(graph["threshold"][0])
                    modes = ("concepts",) if place else MODES
                    scored = evaluate(index, dataset, modes, budgets)
                for mode in modes:
                    own = [row for row in scored if row.mode == mode]
                    about = f"{applied:.3f}, {edges:,} edges" if mode == "concepts" else ""
                    cells = [
                        " / ".join(f"{100 * (getattr(row, what) or 0):.1f}" for row in own)
                        for what in ("coverage", "recall")
                    ]
                    rows.append([mode, about, *cells])
        print(f"## {name}, {embedder}\n")
        shown = "/".join(map(str, budgets))
        table(["mode", "least cosine", f"coverage at {shown}", f"recall at {shown}"], rows, about=name)


def main() -> None:
    """Print the requested parts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", default="graph,question,coverage")
    parser.add_argument("--chunks", default="8000,100000")
    parser.add_argument("--sets", default="musique-dev")
    parser.add_argument("--embedder", default="builtin")
    parser.add_argument("--budgets", default="12000,6000,3000")
    parser.add_argument("--thetas", default="0.65,q0.9")
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    header(
        "Concepts",
        [
            "Texts of the first table are generated (benches/zipf.py), every word a concept; memory has the texts",
            "and 384 dimensions for each word in it. scipy makes the product of the same incidence matrix alone:",
            "no thresholds, no cosines, no PageRank, no selection.",
            "Coverage: % of questions with an answer in the context (token rule). The paper has 71.2 on its questions",
            "of MuSiQue, with a language model.",
        ],
    )
    parts = args.part.split(",")
    if "graph" in parts:
        graph([int(size) for size in args.chunks.split(",")])
    if "question" in parts:
        question(8000, args.runs)
    if "coverage" in parts:
        budgets = [int(budget) for budget in args.budgets.split(",")]
        coverage(args.sets.split(","), args.embedder, budgets, args.thetas.split(","))


if __name__ == "__main__":
    main()
