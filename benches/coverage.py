"""Quality of every mode, without a model (the table that `auto` follows and the README quotes) or with one.

python benches/coverage.py [--embedder sentence-transformers:all-MiniLM-L6-v2] [--sets A,B] [--budgets N,M]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from common import header, require_data, table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.eval import evaluate, load_dataset

MODES = ("bm25", "text", "fused", "knng", "keyword", "walk")


def main() -> None:
    """Prints a table for each set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", default="musique-train100,hotpotqa-train100")
    parser.add_argument("--budgets", default="12000,6000,3000,1500")
    parser.add_argument("--embedder", default="builtin")
    args = parser.parse_args()
    budgets = [int(x) for x in args.budgets.split(",")]
    header(
        "Quality without a model" if args.embedder == "builtin" else f"Quality with {args.embedder}",
        [
            "Coverage: % of questions with an answer in the context (token rule; yes/no questions left out).",
            "Recall: % of the supporting passages in the context. 100 questions: one question is one point,",
            "and differences below two or three points are noise.",
            "The walk's constants were chosen on these sets.",
        ],
    )
    for name in args.sets.split(","):
        folder = require_data(name)
        dataset = load_dataset(folder)
        with tempfile.TemporaryDirectory() as temporary:
            index = Index.build(
                folder, Path(temporary) / "index", settings=Settings(embedder=args.embedder, modes=MODES)
            )
            with index:
                scored = evaluate(index, dataset, MODES, budgets)
        print(f"## {name}\n")
        rows = []
        for mode in MODES:
            own = [row for row in scored if row.mode == mode]
            cells = [f"{100 * (row.coverage or 0):.1f}" for row in own]
            recall = [f"{100 * (row.recall or 0):.1f}" for row in own]
            rows.append([mode, " / ".join(cells), " / ".join(recall)])
        table(["mode", f"coverage at {args.budgets}", f"recall at {args.budgets}"], rows, about=name)


if __name__ == "__main__":
    main()
