"""Retrieval quality of a question set in every mode that needs no LLM: recall, all gold and coverage with intervals.

python benches/quality.py musique-dev             # vectors fitted on the corpus
python benches/quality.py musique-dev --model     # all-MiniLM-L6-v2
python benches/quality.py musique-dev --rules     # modes of entities and relations, extracted by rules
"""

from __future__ import annotations

import sys
from dataclasses import replace

from common import MODEL, WORK, arguments, publish, require_data, require_model
from common import result_table as table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.eval import METRICS, DataSet, collect, load_dataset
from ketrag_fast.lab.eval.metrics import all_gold, bootstrap_interval, recall

PLAIN = ("bm25", "text", "fused", "walk", "keyword", "knn", "g2cons", "cg-rag")
RULES = ("skeleton", "ket", "g2cons", "noderag")
SHORT = ("bm25", "text", "fused", "walk")
"""Modes of the sets in several languages."""
LANGUAGES = ("en", "de", "ru", "ar", "hi", "zh")
BUDGETS = (12_000, 6_000, 3_000, 1_500)
RECALLS = (2, 5, 10)
ALL_GOLD = (5, 10)

Value = tuple[float, float, float]


def share(values: list[float]) -> Value | None:
    """Return the mean in percent with the ends of its 95 % interval, or None without values."""
    interval = bootstrap_interval(values)
    if interval is None:
        return None
    mean = sum(values) / len(values)
    return round(100 * mean, 2), round(100 * interval[0], 2), round(100 * interval[1], 2)


def scores(index: Index, dataset: DataSet, mode: str) -> tuple[list[Value | None], list[Value | None]]:
    """Return recall and all gold at their cuts, and coverage at each budget.

    Raises SystemExit if the index does not serve the mode.
    """
    found = collect(index, dataset, [mode], BUDGETS)
    if found.skipped:
        raise SystemExit(f"{mode}: {found.skipped[mode]}")
    gold = {question.id: question.gold for question in dataset.questions if question.gold}
    results = [r for r in found.of(mode, BUDGETS[0]) if r.question in gold]
    ranked = [share([float(recall(r.found[:k], gold[r.question]) or 0) for r in results]) for k in RECALLS]
    ranked += [
        share([float(all_gold(r.found[:k], gold[r.question]) or 0) for r in results]) for k in ALL_GOLD
    ]
    coverage = METRICS["coverage"]
    covered = [
        share([value for r in found.of(mode, budget) if (value := coverage(r)) is not None])
        for budget in BUDGETS
    ]
    return ranked, covered


def main() -> None:
    """Measure a set with one embedder."""
    parser = arguments(__doc__)
    parser.add_argument("set")
    parser.add_argument("--model", action="store_true", help=f"embed with {MODEL}")
    parser.add_argument("--rules", action="store_true", help="the modes that need entities and relations")
    args = parser.parse_args()
    names = [f"xquad-{language}" for language in LANGUAGES] if args.set == "xquad" else [args.set]
    modes = RULES if args.rules else SHORT if len(names) > 1 else PLAIN
    if args.model:
        modes = tuple(mode for mode in modes if mode != "bm25")
    label = "rules" if args.rules else "MiniLM" if args.model else "none"
    settings = Settings(modes=",".join(modes))
    if args.model:
        settings = settings.having(embedder=f"native:{require_model()}")
    if args.rules:
        settings = settings.having(llm="heuristic")
    ranked_rows, covered_rows, about = [], [], []
    for name in names:
        folder = require_data(name)
        dataset = load_dataset(folder)
        if args.smoke:
            dataset = replace(dataset, questions=dataset.questions[:5])
        place = WORK / f"{name}-{label.lower()}"
        with Index.build(folder, place, settings=settings) as index:
            passages = index.stats()["counts"]["documents"]
            for mode in modes:
                ranked, covered = scores(index, dataset, mode)
                head = [name.removeprefix("xquad-")] * (len(names) > 1) + [mode, label]
                ranked_rows.append([*head, *ranked])
                covered_rows.append([*head, *covered])
                print(name, mode, ranked, file=sys.stderr, flush=True)
        about.append(f"{len(dataset.questions):,} questions, {passages:,} passages.")
    head = ["language"] * (len(names) > 1) + ["mode", "vectors or reader"]
    cuts = [f"recall@{k}" for k in RECALLS] + [f"all gold in {k}" for k in ALL_GOLD]
    tables = [table("Supporting passages", [*head, *cuts], ranked_rows)]
    if any(value is not None for row in covered_rows for value in row[len(head) :]):
        budgets = [f"answer at {budget:,}" for budget in BUDGETS]
        tables.append(table("Answers in the context", [*head, *budgets], covered_rows))
    publish(tables, "; ".join(dict.fromkeys(about)))


if __name__ == "__main__":
    main()
