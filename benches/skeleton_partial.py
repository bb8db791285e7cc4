"""Quality of a skeleton whose extraction stopped early: chunks read in order of importance, and in order of id.

A stop is made by a recording that holds the first chunks alone; every other stage is that of one index.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common import header, require_data, table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.eval import evaluate, load_dataset

ORDERS = ("importance", "id", "chance")


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="musique-train100")
    parser.add_argument("--recording", default="openie.gpt-3.5-turbo-1106.jsonl")
    parser.add_argument("--shares", default="10,25,50,100")
    parser.add_argument("--modes", default="ket,skeleton")
    parser.add_argument("--budgets", default="12000,6000,3000")
    parser.add_argument("--core-ratio", type=float, default=0.8)
    args = parser.parse_args()
    shares = [int(share) for share in args.shares.split(",")]
    budgets = [int(budget) for budget in args.budgets.split(",")]
    modes = args.modes.split(",")
    folder = require_data(args.set)
    dataset = load_dataset(folder)
    header(
        f"A skeleton that was stopped early ({args.set})",
        [
            "Coverage: % of questions with an answer in the context. 100 questions: one question is one point,",
            "and differences below two or three points are noise.",
            f"The core chunks are {args.core_ratio:.0%} of all; 'chance' is one shuffle.",
            f"Replies: {args.recording}, the recorded extraction of a real model.",
        ],
    )
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        place, said = Path(temporary) / "index", Path(temporary) / "all.jsonl"
        settings = Settings(
            llm=f"replay:{folder / args.recording}", record=str(said), core_ratio=args.core_ratio
        )
        Index.build(folder, place, settings=settings).close()
        lines = recorded(said)
        for share in shares:
            for order in ORDERS if share < 100 else ORDERS[:1]:
                chosen = core_chunks(place, order)[: -(-len(lines) * share // 100)]
                part = Path(temporary) / f"{order}-{share}.jsonl"
                part.write_text("".join(lines[number] for number in sorted(chosen)), "utf-8")
                with Index.build([], place, settings=Settings(llm=f"replay:{part}")) as index:
                    stats = index.stats()
                    scored = evaluate(index, dataset, modes, budgets)
                label = order if share < 100 else "all of them"
                cells = []
                for mode in modes:
                    own = [row for row in scored if row.mode == mode]
                    shown = (
                        "not run" if row.coverage is None else f"{100 * row.coverage:.1f}" for row in own
                    )
                    cells.append(" / ".join(shown))
                rows.append([f"{share} %", label, stats["counts"]["entities"], *cells])
    at = args.budgets.replace(",", " / ")
    table(["chunks read", "in order of", "entities", *(f"{mode} at {at}" for mode in modes)], rows)


def recorded(file: Path) -> dict[int, str]:
    """The lines of a recording by the chunk's place among those recorded, which are in order of id."""
    lines = file.read_text("utf-8").splitlines(keepends=True)
    return dict(enumerate(line for line in lines if "schema" not in json.loads(line)))


def core_chunks(place: Path, order: str) -> Sequence[int]:
    """Return the core chunks as positions among themselves in order of id, in the requested order."""
    newest = max(place.glob("gen-*"))
    core = np.load(newest / "core" / "core.npy", allow_pickle=False)
    ranks = np.argsort(np.argsort(core))  # of each core chunk, the most important first
    if order == "id":
        return range(len(core))
    if order == "importance":
        found: list[int] = ranks.tolist()
        return found
    shuffled = list(range(len(core)))
    random.Random(42).shuffle(shuffled)
    return shuffled


if __name__ == "__main__":
    main()
