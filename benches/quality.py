"""Retrieval quality of question sets: recall, all gold and coverage with intervals.

python benches/quality.py modes musique-dev              # every mode that needs no LLM; vectors fitted on the corpus
python benches/quality.py modes musique-dev --model      # vectors by all-MiniLM-L6-v2
python benches/quality.py modes musique-dev --rules      # modes of entities and relations, extracted by rules
python benches/quality.py hops musique-dev [--model]     # by the number of hops, on sets that name it
python benches/quality.py systems musique-dev [--model]  # every system at its best at equal tokens; relations by rules
python benches/quality.py systems musique-train100       # the same with what GPT-3.5 extracted, recorded by HippoRAG
python benches/quality.py recorded musique-train100      # modes of the skeleton on that recording, without a model and with
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from common import MODEL, WORK, arguments, publish, require_data, require_model, reuse_vectors
from common import result_table as table
from ketrag_fast import Index, Settings
from ketrag_fast.eval import METRICS, DataSet, collect, load_dataset
from ketrag_fast.eval.metrics import all_gold, bootstrap_interval, recall

PLAIN = ("bm25", "text", "fused", "walk", "keyword", "knn", "g2cons", "cg-rag")
RULES = ("skeleton", "ket", "g2cons", "noderag")
SHORT = ("bm25", "text", "fused", "walk")
"""Modes of the sets in several languages."""
LANGUAGES = ("en", "de", "ru", "ar", "hi", "zh")
BUDGETS = (12_000, 6_000, 3_000, 1_500)
RECALLS = (2, 5, 10)
ALL_GOLD = (5, 10)
RECORDING = "openie.gpt-3.5-turbo-1106.jsonl"
"""The recorded extraction of a set, if it has one."""
RECORDED = (
    "bm25",
    "text",
    "fused",
    "walk",
    "keyword",
    "skeleton",
    "ket",
    "g2cons",
)
"""Modes on a recorded extraction."""
SYSTEMS = ("text", "fused", "walk", "cg-rag", "g2cons")

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


def read_set(name: str, smoke: bool) -> tuple[Path, DataSet]:
    """Return the folder of a question set and its questions, only five of them for a try."""
    folder = require_data(name)
    dataset = load_dataset(folder)
    return folder, replace(dataset, questions=dataset.questions[:5]) if smoke else dataset


def publish_modes(args: argparse.Namespace) -> None:
    """Measure every mode with one embedder."""
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
        folder, dataset = read_set(name, args.smoke)
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


def publish_hops(args: argparse.Namespace) -> None:
    """Measure by the number of hops of a question."""
    folder, dataset = read_set(args.set, args.smoke)
    hops = {question.id: str(question.metadata.get("hops", "")) for question in dataset.questions}
    if not any(hops.values()):
        raise SystemExit(f"{args.set}: the questions have no metadata.hops")
    modes = SHORT[1:] if args.model else SHORT
    settings = Settings(modes=",".join(modes))
    if args.model:
        settings = settings.having(embedder=f"native:{require_model()}")
    gold = {question.id: question.gold for question in dataset.questions if question.gold}
    rows = []
    place = WORK / f"{args.set}-hops-{args.model}"
    if args.model:
        reuse_vectors(place, args.set)
    with Index.build(folder, place, settings=settings) as index:
        found = collect(index, dataset, list(modes), BUDGETS[:1])
        passages = index.stats()["counts"]["documents"]
    for mode in modes:
        for name in sorted(set(hops.values())):
            results = [
                r for r in found.of(mode, BUDGETS[0]) if r.question in gold and hops[r.question] == name
            ]
            cells = [
                *(
                    share([float(recall(r.found[:k], gold[r.question]) or 0) for r in results])
                    for k in RECALLS[:2]
                ),
                *(
                    share([float(all_gold(r.found[:k], gold[r.question]) or 0) for r in results])
                    for k in ALL_GOLD
                ),
            ]
            rows.append([mode, "MiniLM" if args.model else "none", name, len(results), *cells])
    cuts = [f"recall@{k}" for k in RECALLS[:2]] + [f"all gold in {k}" for k in ALL_GOLD]
    about = f"{len(dataset.questions):,} questions, {passages:,} passages."
    publish([table("By hops", ["mode", "vectors", "hops", "questions", *cuts], rows)], about)


def coverage_row(index: Index, dataset: DataSet, mode: str, label: str) -> list[object]:
    """Return a mode's coverage and mean tokens at each budget. Raises SystemExit if the index lacks the mode."""
    found = collect(index, dataset, [mode], BUDGETS[:3])
    if found.skipped:
        raise SystemExit(f"{mode}: {found.skipped[mode]}")
    coverage = METRICS["coverage"]
    cells: list[object] = [label]
    for budget in BUDGETS[:3]:
        results = found.of(mode, budget)
        cells.append(share([value for r in results if (value := coverage(r)) is not None]))
    first = found.of(mode, BUDGETS[0])
    cells.append(round(sum(r.tokens for r in first) / len(first)))
    print(label, cells, file=sys.stderr, flush=True)
    return cells


def publish_systems(args: argparse.Namespace) -> None:
    """Measure every system at its best, at equal tokens: shares of questions with an answer in the context."""
    folder, dataset = read_set(args.set, args.smoke)
    llm = "heuristic"
    if (folder / RECORDING).exists():
        llm = f"replay:{folder / RECORDING}"
    common: dict[str, object] = {"llm": llm}
    if args.model:
        common["embedder"] = f"native:{require_model()}"
    out = []
    vectors = "minilm" if args.model else "fitted"
    # One folder for both builds, so that no text is embedded twice.
    place = WORK / f"systems-{args.set}-{vectors}"
    if args.model:
        reuse_vectors(place, args.set)
    settings = Settings(modes=",".join(SYSTEMS), **common)
    with Index.build(folder, place, settings=settings, rebuild=True) as index:
        out += [coverage_row(index, dataset, mode, mode) for mode in SYSTEMS]
    for system in ("noderag", "noderag:reference"):
        nodes = Settings(system=system, modes="noderag", **common)
        with Index.build(folder, place, settings=nodes, rebuild=True) as index:  # the vectors are kept
            out.append(coverage_row(index, dataset, "noderag", system))
            passages = index.stats()["counts"]["documents"]
    heads = [f"answer at {budget:,}" for budget in BUDGETS[:3]]
    columns = ["set", "vectors", "mode", *heads, f"tokens of {BUDGETS[0]:,}"]
    label = "MiniLM" if args.model else "none"
    about = f"{args.set}: {len(dataset.questions):,} questions, {passages:,} passages."
    publish([table("Answers in the context", columns, [[args.set, label, *row] for row in out])], about)


def publish_recorded(args: argparse.Namespace) -> None:
    """Measure modes of the skeleton on a recorded extraction, without a model and with MiniLM."""
    folder, dataset = read_set(args.set, args.smoke)
    ranked_rows, covered_rows = [], []
    for label in ("none",) if args.smoke else ("none", "MiniLM"):
        settings = Settings(modes=",".join(RECORDED), llm=f"replay:{folder / RECORDING}", core_ratio=0.8)
        if label == "MiniLM":
            settings = settings.having(embedder=f"native:{require_model()}")
        with Index.build(folder, WORK / f"{args.set}-recorded-{label.lower()}", settings=settings) as index:
            for mode in RECORDED[label == "MiniLM" :]:
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
        f"{args.set}: {len(dataset.questions)} questions, 1,890 passages.",
        ["A core ratio of 0.8: PageRank selects four of five chunks for the extraction."],
    )


def main() -> None:
    """Measure one subject on a set."""
    subjects = {
        "modes": publish_modes,
        "hops": publish_hops,
        "systems": publish_systems,
        "recorded": publish_recorded,
    }
    parser = arguments(__doc__)
    parser.add_argument("subject", choices=subjects)
    parser.add_argument("set")
    parser.add_argument("--model", action="store_true", help=f"embed with {MODEL}")
    parser.add_argument("--rules", action="store_true", help="the modes that need entities and relations")
    args = parser.parse_args()
    subjects[args.subject](args)


if __name__ == "__main__":
    main()
