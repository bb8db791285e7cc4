"""A whole build with a model's folder: `native:` against `sentence-transformers:`, and what each finds.

Usage: python benches/encoder_build.py MODEL_FOLDER [--build 2wiki-101] [--quality musique-train100]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from common import header, require_data, table
from ketrag_fast import Index, Settings
from ketrag_fast.eval import evaluate, load_dataset

KINDS = ("native", "sentence-transformers")
MODES = ("bm25", "text", "fused", "knng", "keyword", "walk")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--build", default="2wiki-101", help="the set whose build is timed")
    parser.add_argument("--quality", default="musique-train100", help="the set whose questions are asked")
    parser.add_argument("--budgets", default="6000,1500")
    args = parser.parse_args()
    budgets = [int(x) for x in args.budgets.split(",")]
    header(
        "Builds with the native encoder and with sentence-transformers",
        [
            "One build each from nothing, with the loading of the model; all cores; default settings.",
            "sentence-transformers: is this package's backend on that library, which sorts by tokens and is",
            "faster than the library's own `encode` (benches/encoder.py compares with that).",
            "Coverage: % of questions with an answer in the context.",
        ],
    )
    times, scores = {}, {}
    for kind in KINDS:
        settings = Settings(embedder=f"{kind}:{args.folder}", offline=True, modes=MODES)
        with tempfile.TemporaryDirectory() as temporary:
            started = time.perf_counter()
            Index.build(require_data(args.build), Path(temporary) / "a", settings=settings).close()
            times[kind] = time.perf_counter() - started
            folder = require_data(args.quality)
            with Index.build(folder, Path(temporary) / "b", settings=settings) as index:
                rows = evaluate(index, load_dataset(folder), MODES, budgets)
            scores[kind] = {(row.mode, row.budget): 100 * (row.coverage or 0) for row in rows}
    table(
        [f"build of {args.build}", *KINDS, "times faster"],
        [["seconds", *(f"{times[kind]:.1f}" for kind in KINDS), f"{times[KINDS[1]] / times[KINDS[0]]:.2f}"]],
    )
    cells = [
        [f"{mode} at {budget}", *(f"{scores[kind][mode, budget]:.1f}" for kind in KINDS)]
        for mode in MODES
        for budget in budgets
    ]
    table([f"coverage, {args.quality}", *KINDS], cells)


if __name__ == "__main__":
    main()
