"""A build with a model: how much of it is not embedding, and what a second one costs.

python benches/rebuild.py [--dataset 2wiki-101] [--embedder SPEC]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import header, require_data, table
from ketrag_fast import Index, Settings


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", default="2wiki-101")
    parser.add_argument("--embedder", default="sentence-transformers:all-MiniLM-L6-v2")
    args = parser.parse_args(argv)
    corpus = require_data(args.dataset) / "corpus.jsonl"
    header(
        f"Builds of {args.dataset} with {args.embedder}",
        [
            "In one process, so the model's library is loaded once; the first build loads the model.",
            "Embedding is the stage vectors, whose arrays and byte codes are a few per mille of it.",
        ],
    )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        changes: list[tuple[str, dict[str, object]]] = [
            ("first", {}),
            ("nothing changed", {}),
            ("knn_k 2 -> 4", {"knn_k": 4}),
            ("keyword_norm none -> unit", {"knn_k": 4, "keyword_norm": "unit"}),
            ("core_ratio 0.8 -> 0.5", {"knn_k": 4, "keyword_norm": "unit", "core_ratio": 0.5}),
        ]
        for name, change in changes:
            started = time.perf_counter()
            index = Index.build(
                corpus,
                Path(folder) / "i",
                settings=Settings(embedder=args.embedder, modes="auto,knng", **change),
            )
            taken = time.perf_counter() - started
            report = index.report
            assert report is not None and report.usage is not None
            ran = {stage.name: stage.seconds for stage in report.stages if stage.how == "ran"}
            embedding = ran.get("vectors", 0.0)
            share = f"{100 * (report.seconds - embedding) / report.seconds:.1f} %" if embedding else "all"
            texts = report.usage.embedding_texts
            rows.append(
                [name, report.seconds, taken, embedding, share, f"{texts:,}", ", ".join(ran) or "none"]
            )
            index.close()
    columns = [
        "build",
        "s",
        "s with opening",
        "s of embedding",
        "not embedding",
        "texts embedded",
        "stages run",
    ]
    table(columns, rows)


if __name__ == "__main__":
    main()
