"""Quality of the modes on about 2,700 multi-hop questions: the numbers of the README, with intervals.

    python benches/claims.py --keep FOLDER                               # no model
    python benches/claims.py --keep FOLDER --embedder native:FOLDER      # with MiniLM; embeds once, for some ten minutes
    python benches/claims_figure.py                                      # draws docs/claims.svg from claims.json

Writes the results to benches/claims.json and keeps those of other sets and models there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from common import header, require_data, table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.metrics import bootstrap_interval
from ketrag_fast.lab.eval.question import DataSet
from ketrag_fast.lab.eval.results import METRICS
from ketrag_fast.lab.eval.run import collect

SETS = ("musique-dev", "2wiki-dev", "hotpotqa-dev")
BUDGETS = (12_000, 6_000, 3_000, 1_500)
MODES = ("bm25", "text", "fused", "keyword", "walk")
KEPT = Path(__file__).with_name("claims.json")
Value = tuple[float, float, float]
"""Percent, with the ends of its 95 % interval."""


def measure(index: Index, dataset: DataSet, mode: str) -> dict[str, Value]:
    """Coverage at each budget, recall@5 and all gold in the first 10, over the questions that they apply to."""
    found = collect(index, dataset, [mode], BUDGETS)
    if found.skipped:
        raise SystemExit(f"{mode}: {found.skipped[mode]}")
    gold = {question.id: question.gold for question in dataset.questions}
    coverage = METRICS["coverage"]
    out = {}
    for budget in BUDGETS:
        values = [value for r in found.of(mode, budget) if (value := coverage(r)) is not None]
        out[f"coverage at {budget:,}"] = _value(values)
    first = [(gold[r.question], r.found) for r in found.of(mode, BUDGETS[0]) if gold[r.question]]
    out["recall@5"] = _value([len(wanted & set(places[:5])) / len(wanted) for wanted, places in first])
    out["all gold in 10"] = _value([float(wanted <= set(places[:10])) for wanted, places in first])
    return out


def _value(values: list[float]) -> Value:
    low, high = bootstrap_interval(values) or (0.0, 0.0)
    mean = sum(values) / len(values)
    return round(100 * mean, 1), round(100 * low, 1), round(100 * high, 1)


def rows_of(kept: dict[str, Any], name: str) -> list[list[str]]:
    """A line for each ranking of a set."""
    rows = []
    for ranking, values in kept[name]["rankings"].items():
        cells = [f"{mean:.1f} ({low:.0f} to {high:.0f})" for mean, low, high in values.values()]
        rows.append([ranking, *cells])
    return rows


def show(kept: dict[str, Any], name: str) -> None:
    """Prints the table of a set."""
    print(f"## {name}: {kept[name]['questions']:,} questions, {kept[name]['passages']:,} passages\n")
    columns = [f"coverage at {budget:,}" for budget in BUDGETS]
    table(["ranking", *columns, "recall@5", "all gold in 10"], rows_of(kept, name), about=name)


def main() -> None:
    """Print what differs from the documents."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--embedder", default="builtin")
    parser.add_argument("--model", default="MiniLM", help="the model's name in the tables")
    parser.add_argument("--modes", default=",".join(MODES), help="what is measured anew; all else stays")
    parser.add_argument("--keep", type=Path, help="a folder for the indexes, one for each set and embedder")
    parser.add_argument("--print", action="store_true", help="measure nothing: print what claims.json holds")
    args = parser.parse_args()
    plain = args.embedder == "builtin"
    header(
        "What the modes find",
        [
            "Coverage: % of questions with an answer in the context of so many tokens (token rule; yes/no questions left "
            "out). Recall@5: % of the supporting passages among the first five; all gold in 10: % of questions whose "
            "supporting passages are all among the first ten. In brackets 95 % bootstrap intervals over the questions.",
            "The weights of the walk were chosen on these sets; text, fused and keyword without a model go by vectors "
            "fitted on the corpus.",
        ],
    )
    kept: dict[str, Any] = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    for name in args.sets.split(","):
        if args.print:
            show(kept, name)
            continue
        folder = require_data(name)
        dataset = load_dataset(folder)
        own = kept.setdefault(name, {"rankings": {}})
        own["questions"] = len(dataset.questions)
        with tempfile.TemporaryDirectory() as temporary:
            place = (args.keep or Path(temporary)) / f"{name}-{'none' if plain else args.model.lower()}"
            Index.build(folder, place, settings=Settings(embedder=args.embedder, modes=MODES)).close()
            for mode in [mode for mode in args.modes.split(",") if plain or mode != "bm25"]:
                with Index.open(place) as index:
                    own["passages"] = index.stats()["counts"]["documents"]
                    own["rankings"][mode if plain else f"{mode}, {args.model}"] = measure(
                        index, dataset, mode
                    )
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        show(kept, name)


if __name__ == "__main__":
    main()
