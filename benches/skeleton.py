"""KET-RAG with a recorded extraction: skeleton, keyword, ket and walk: `python benches/skeleton.py`.

`--embedder` names a model (default: the built-in space). Shares of the budget for the skeleton and the
rollover of what a half leaves are compared with the defaults, to say where `ket` gains and loses; then
what becomes of `ket`'s budget as the paper has it is printed, and what each half of `rollover = texts` brings.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from common import header, require_data, table
from ket_reason import print_reason
from ketrag_fast import Index, Settings
from ketrag_fast.lab.eval import evaluate, load_dataset

RECORDING = "openie.gpt-3.5-turbo-1106.jsonl"


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="musique-train100")
    parser.add_argument("--budgets", default="12000,6000,3000")
    parser.add_argument("--embedder", default="builtin")
    parser.add_argument("--core-ratio", type=float, default=0.8)
    args = parser.parse_args()
    budgets = [int(x) for x in args.budgets.split(",")]
    header(
        f"The skeleton of a recorded extraction ({args.set}, embedder {args.embedder})",
        [
            "Coverage: % of questions with an answer in the context (token rule); recall: % of supporting",
            "passages among the printed ones. 100 questions: differences under 2 or 3 points are noise.",
        ],
    )
    folder = require_data(args.set)
    dataset = load_dataset(folder)
    built = Settings(
        llm=f"replay:{folder / RECORDING}", embedder=args.embedder, core_ratio=args.core_ratio, offline=True
    )
    runs = [("skeleton", {}), ("keyword", {}), ("ket", {}), ("hybrid", {}), ("walk", {})]
    runs += [("ket", {"rollover": to}) for to in ("none", "graph")]
    runs += [("ket", {"kg_share": share}) for share in (0.1, 0.2, 0.6)]
    runs += [("ket", {"seed_entities": 20}), ("hybrid", {"rollover": "none"})]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) / "index"
        Index.build(folder, place, settings=built).close()
        for mode, query in runs:
            with Index.open(place, settings=Settings(**query)) as index:
                own = evaluate(index, dataset, [mode], budgets)
            name = " ".join([mode, *(f"{key}={value}" for key, value in query.items())])
            cells = [f"{100 * (row.coverage or 0):.1f}" for row in own]
            recall = [f"{100 * (row.recall or 0):.1f}" for row in own]
            tokens = [f"{row.tokens_mean:.0f}" for row in own]
            rows.append([name, " / ".join(cells), " / ".join(recall), " / ".join(tokens)])
        table(["mode", f"coverage at {args.budgets}", "recall", "tokens used"], rows)
        with Index.open(place, settings=Settings(rollover="none")) as index:
            print_reason(index, dataset, max(budgets), Settings().kg_share)


if __name__ == "__main__":
    main()
