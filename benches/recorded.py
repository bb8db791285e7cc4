"""Modes of the skeleton on a recorded extraction (GPT-3.5 on musique-train100), next to the modes without one."""

from __future__ import annotations

from dataclasses import replace

from common import WORK, arguments, publish, require_data, require_model
from common import result_table as table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.eval import load_dataset
from quality import ALL_GOLD, BUDGETS, RECALLS, scores

SET = "musique-train100"
RECORDING = "openie.gpt-3.5-turbo-1106.jsonl"
MODES = (
    "bm25",
    "text",
    "fused",
    "walk",
    "keyword",
    "skeleton",
    "ket",
    "g2cons",
)


def main() -> None:
    """Measure without a model and with MiniLM."""
    args = arguments(__doc__).parse_args()
    folder = require_data(SET)
    dataset = load_dataset(folder)
    if args.smoke:
        dataset = replace(dataset, questions=dataset.questions[:5])
    ranked_rows, covered_rows = [], []
    for label in ("none",) if args.smoke else ("none", "MiniLM"):
        settings = Settings(modes=",".join(MODES), llm=f"replay:{folder / RECORDING}", core_ratio=0.8)
        if label == "MiniLM":
            settings = settings.having(embedder=f"native:{require_model()}")
        with Index.build(folder, WORK / f"{SET}-recorded-{label.lower()}", settings=settings) as index:
            for mode in MODES[label == "MiniLM" :]:
                ranked, covered = scores(index, dataset, mode)
                ranked_rows.append([mode, label, *ranked])
                covered_rows.append([mode, label, *covered])
    cuts = [f"recall@{k}" for k in RECALLS] + [f"all gold in {k}" for k in ALL_GOLD]
    budgets = [f"answer at {budget:,}" for budget in BUDGETS]
    publish(
        [
            table("Supporting passages", ["mode", "vectors or reader", *cuts], ranked_rows),
            table("Answers in the context", ["mode", "vectors or reader", *budgets], covered_rows),
        ],
        f"{SET}: {len(dataset.questions)} questions, 1,890 passages.",
        ["A core ratio of 0.8: PageRank selects four of five chunks for the extraction."],
    )


if __name__ == "__main__":
    main()
