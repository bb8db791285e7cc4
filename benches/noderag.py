"""NodeRAG: what a build takes stage by stage, one question, and its scores compared with other systems.

    python benches/noderag.py [--part build,question,scored] [--embedder native:FOLDER] [--work FOLDER]

The build is of musique-dev by rules, cut to chunks of 150 tokens (about 11,000). The reference implementation on a graph of
the same size as ours: benches/noderag_published.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from common import header, median, require_data, table
from concepts_scored import Part, report, scored
from ketrag_fast import Index, Settings
from ketrag_fast.lab.comparison.configurations import Configuration
from ketrag_fast.lab.eval import load_dataset

BUDGETS = [12_000, 6_000, 3_000, 1_500]
PAPER = "25 minutes, 250 MB, 4.05 s a question and 5,960 tokens of context for 1.84M tokens, with an API (the paper's Table 4)"


def build(folder: Path) -> Path:
    """Stage by stage."""
    path = folder / "index"
    settings = Settings(system="noderag-150")
    began, used = time.perf_counter(), time.process_time()
    with Index.build(require_data("musique-dev"), path, settings=settings) as index:
        took, used = time.perf_counter() - began, time.process_time() - used
        stats = index.stats()
        assert index.report is not None
        stages = [[s.name, round(s.seconds, 2), round(s.bytes / 1e6, 1)] for s in index.report.stages]
    tokens = sum(Index.open(path)._opened.generation.stages["units"]["chunk_tokens"].tolist())
    counts = stats["counts"]
    own = sum(
        seconds for name, seconds, _ in stages if name == "decompositions" or name.startswith("noderag")
    )
    print("## NodeRAG: a build by rules\n")
    print(
        f"{counts['chunks']:,} chunks, {tokens:,} tokens; {counts['nodes']:,} nodes, "
        f"{stats['edges']['node'] // 2:,} edges, {counts['attributes']:,} attributes, "
        f"{counts['high_level_elements']:,} elements; {stats['bytes'] / 1e6:.0f} MB. The paper: {PAPER}.\n"
    )
    table(["stage", "seconds", "MB"], stages)
    rows: list[list[Any]] = [
        ["graph and augmentation, decompositions by rules with them", round(own, 1)],
        ["whole build", round(took, 1)],
        ["whole build, of all cores", round(used, 1)],
    ]
    table(["what", "seconds"], rows)
    return path


def question(path: Path) -> None:
    """After its embedding, printing included."""
    texts = [each.text for each in load_dataset(require_data("musique-dev")).questions][:300]
    rows = []
    with Index.open(path) as index:
        nodes = index.stats()["counts"]["nodes"]
        for mode in ("noderag", "walk", "text"):
            taken, tokens = [], []
            for text in texts:
                found = [index.retrieve(text, mode=mode, budget=12_000) for _ in range(3)]
                taken.append(min(context.timings_ms["search"] for context in found))
                tokens.append(found[0].tokens)
            high = round(float(np.quantile(taken, 0.95)), 2)
            rows.append([mode, round(median(taken), 2), high, round(median(tokens))])
    print(f"## NodeRAG: one question, {nodes:,} nodes\n")
    table(["mode", "ms, median", "ms, 95 of 100", "tokens of a context"], rows)


def parts(llm: str | None) -> Part:
    """Return NodeRAG as published (chunks of 1,048 and of 150 tokens), with more of its graph, and other
    systems.
    """
    read = {"llm": llm} if llm else {}
    more = {"node_hits": 40, "cross_nodes": 100}
    rows = [
        Configuration("noderag", {"system": "noderag", **read}),
        Configuration("noderag-150", {"system": "noderag-150", **read}),
        Configuration(
            "noderag-150, walk of the code", {"system": "noderag-150", "node_walk": "lazy", **read}
        ),
        Configuration("noderag-150, 40 hits and 100 nodes", {"system": "noderag-150", **more, **read}),
        Configuration("concepts (G2ConS)", {"mode": "concepts", "modes": "concepts"}),
        Configuration("ket (KET-RAG)", {"mode": "ket", "modes": "ket", "llm": llm or "heuristic"}),
        Configuration("bm25", {"mode": "bm25", "modes": "bm25"}),
        Configuration("text", {"mode": "text", "modes": "text"}),
        Configuration("walk", {"mode": "walk", "modes": "walk"}),
    ]
    pairs = [("noderag-150", "noderag-150, walk of the code", True), ("noderag-150", "noderag", False)]
    pairs += [
        ("noderag-150, 40 hits and 100 nodes", other, False) for other in ("text", "ket (KET-RAG)", "walk")
    ]
    return Part("NodeRAG", rows, pairs)


def main() -> None:
    """Print the sections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", default="build,question")
    parser.add_argument("--sets", default="musique-train100,2wiki-dev", help="for scored")
    parser.add_argument("--llm", help="for scored: who reads, such as replay:FILE; else rules")
    parser.add_argument("--embedder", help="for scored: a model, beside the built-in vectors")
    parser.add_argument("--work", help="folder of the indexes, kept; else a temporary one")
    args = parser.parse_args()
    wanted = args.part.split(",")
    reader = "from a recording" if args.llm else "by rules"
    header("NodeRAG", [f"Decompositions {reader}, attributes and elements by rules; no language model."])
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(args.work or temporary)
        if {"build", "question"} & set(wanted):
            path = build(work)
            if "question" in wanted:
                question(path)
        if "scored" in wanted:
            embedders = {"no model": "builtin", **({"MiniLM": args.embedder} if args.embedder else {})}
            told = [
                scored(
                    f"{name}, {label}",
                    parts(args.llm),
                    load_dataset(require_data(name)),
                    spec,
                    work / name,
                    BUDGETS,
                )
                for name in args.sets.split(",")
                for label, spec in embedders.items()
            ]
            report(told, BUDGETS)


if __name__ == "__main__":
    sys.exit(main())
