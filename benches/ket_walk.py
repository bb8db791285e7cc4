"""KET-RAG's half against the walk: three questions, on sets of 100.

    python benches/ket_walk.py [--embedder native:FOLDER]

1. Is the gain of KET-RAG-P at chunks of 1,200 tokens the skeleton's, or that of splitting them for the texts? The control is
   `ket-rag-p` with `kg_share` 0: the same pieces, and no skeleton.
2. Why does `ket` cover less than `keyword` on units of some 200 tokens? What each side of its budget buys.
3. What is left of that if the walk ranks the texts: `ket-walk` and `walk`, and larger shares for the skeleton.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import header, require_data, table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.comparison.configurations import Configuration
from ketrag_fast.lab.eval import concatenate, evaluate, load_dataset, metrics
from ketrag_fast.lab.eval.question import DataSet
from solutions import RECORDED, SEED, moved

SETS = ("musique-train100", "hotpotqa-train100")
BUDGETS = (12_000, 6_000, 3_000, 1_500)
SHARES = (0.1, 0.2, 0.4)
Hits = list[bool]


def coverage(index: Index, dataset: DataSet, mode: str, budgets: Sequence[int] = BUDGETS) -> str:
    """`89.0 / 85.0 / 73.0 / 61.0`."""
    rows = evaluate(index, dataset, [mode], budgets)
    return " / ".join("-" if row.coverage is None else f"{100 * row.coverage:.1f}" for row in rows)


def control(name: str, embedder: str, work: Path) -> None:
    """The split against the skeleton."""
    dataset = load_dataset(require_data(name))
    recorded = dataset.folder / RECORDED
    for layout in ("passages", "one document, shuffled"):
        llm = f"replay:{recorded}" if recorded.is_file() else "heuristic"
        if layout != "passages":
            llm = f"replay:{moved(dataset, recorded, work)}" if recorded.is_file() else llm
            dataset = concatenate(dataset, SEED)
        folder = work / layout.split(",", 1)[0].replace(" ", "-")
        rows = []
        for label, own in (
            ("keyword-rag: whole chunks", {"system": "keyword-rag"}),
            ("ket-rag-p: split chunks, skeleton", {"system": "ket-rag-p", "llm": llm}),
            (
                "ket-rag-p, kg_share 0: split chunks, no skeleton",
                {"system": "ket-rag-p", "llm": llm, "kg_share": 0.0},
            ),
            ("ket-rag-p, rollover texts", {"system": "ket-rag-p", "llm": llm, "rollover": "texts"}),
            ("keyword-rag-150: chunks of 150 tokens", {"system": "keyword-rag-150"}),
        ):
            settings = Configuration(label, own).resolved(Settings(embedder=embedder))
            with Index.build(dataset.sources, folder, settings=settings, replace=True, rebuild=True) as index:
                rows.append([label, coverage(index, dataset, settings.mode)])
        print(f"## {name}, {layout}: chunks of 1,200 tokens\n")
        table(["solution", f"coverage at {BUDGETS}"], rows)


def hits(index: Index, dataset: DataSet, mode: str, budget: int) -> Hits:
    """For each question with an answer whether the context holds it."""
    asked = [q for q in dataset.questions if q.answers and not metrics.is_yes_no(q.answers)]
    found = index.retrieve_many([q.text for q in asked], mode=mode, budget=budget)
    return [bool(metrics.coverage(c.text, q.answers)) for q, c in zip(asked, found, strict=True)]


def shares(name: str, embedder: str, work: Path) -> None:
    """Return what `ket` buys with its budget, and compare `ket-walk` with `walk`."""
    dataset = load_dataset(require_data(name))
    recorded = dataset.folder / RECORDED
    llm = f"replay:{recorded}" if recorded.is_file() else "heuristic"
    modes = ("keyword", "ket", "walk", "ket-walk", "skeleton")
    common: dict[str, Any] = {"embedder": embedder, "llm": llm, "core_ratio": 0.8, "modes": modes}
    folder = work / "units"
    Index.build(dataset.sources, folder, settings=Settings(**common), replace=True).close()
    rows, parts = [], []
    with Index.open(folder, settings=Settings(embedder=embedder)) as index:
        rows = [[mode, coverage(index, dataset, mode)] for mode in modes[:4]]
        for budget in BUDGETS:
            texts = round(0.6 * budget)
            whole, most = hits(index, dataset, "keyword", budget), hits(index, dataset, "keyword", texts)
            skeleton = hits(index, dataset, "skeleton", budget - texts)
            lost = [a and not b for a, b in zip(whole, most, strict=True)]
            gained = [c and not a for a, c in zip(whole, skeleton, strict=True)]
            kept = [c and x for c, x in zip(skeleton, lost, strict=True)]
            cells = (whole, most, skeleton, lost, kept, gained)
            parts.append([f"{budget:,}", *(f"{100 * sum(x) / len(x):.1f}" for x in cells)])
    for share in SHARES:
        with Index.open(folder, settings=Settings(embedder=embedder, kg_share=share)) as index:
            rows.append([f"ket, kg_share {share:g}", coverage(index, dataset, "ket")])
    print(f"## {name}: units of some 200 tokens, {llm.split(':')[0]}\n")
    table(["mode", f"coverage at {BUDGETS}"], rows)
    print("What 40 % of the budget buys: % of questions whose answer is there.\n")
    columns = ["budget", "keyword", "keyword at 60 %", "skeleton at 40 %", "lost by the cut"]
    table([*columns, "of these in the skeleton", "in the skeleton alone"], parts)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--embedder", default="builtin")
    parser.add_argument("--only", choices=("control", "shares"))
    args = parser.parse_args()
    header(
        "KET-RAG's half, and the walk",
        [
            "Coverage: % of questions with an answer in the context (token rule; yes/no questions left out). One question "
            "is one point; differences below two or three are noise.",
            "Skeletons: recorded GPT-3.5 triples on musique-train100, the heuristic extractor on hotpotqa-train100.",
            f"Embedder: {args.embedder.split(':')[0]}.",
        ],
    )
    for name in args.sets.split(","):
        with tempfile.TemporaryDirectory() as temporary:
            if args.only != "shares":
                control(name, args.embedder, Path(temporary))
            if args.only != "control":
                shares(name, args.embedder, Path(temporary))


if __name__ == "__main__":
    main()
