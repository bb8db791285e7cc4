"""Check that recall@5 of `bm25` and `walk`, without a model, is what `gate.json` expects on six English question sets.

    python benches/gate.py             # exit code 1 if a value differs by more than the tolerance, up or down
    python benches/gate.py --accept    # write the present values to gate.json

The sets are samples in benches/data. Settings are the defaults, so a changed default that moves quality is noticed here. A gain fails
as well: an expected value that is too low would let a later loss pass.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ketrag_fast import Index, Settings
from ketrag_fast.eval import collect, load_dataset
from ketrag_fast.eval.metrics import recall

HERE: Final = Path(__file__).resolve().parent
EXPECTED: Final = HERE / "gate.json"
SETS: Final = ("musique", "2wiki", "hotpotqa", "xquad-en", "lihua-world", "cosqa")
MODES: Final = ("bm25", "walk")
BUDGET: Final = 4_000
"""Tokens of a context; five documents fit."""
ROW: Final = "{:<12} {:<5} {:>9} {:>7} {:>11}"

Values = Mapping[str, Mapping[str, float]]
"""Recall@5 in percent by set and mode."""


def measure(name: str) -> dict[str, float]:
    """Return recall@5 of each mode on a set, in percent."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "set"
        folder.mkdir()
        for packed in (HERE / "data" / name).glob("*.gz"):
            (folder / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
        dataset = load_dataset(folder)
        gold = {question.id: question.gold for question in dataset.questions}
        settings = Settings(modes=",".join(MODES))
        values = {}
        with Index.build(folder, Path(temporary) / "index", settings=settings) as index:
            found = collect(index, dataset, MODES, [BUDGET])
        for mode in MODES:
            shares = [
                recall(result.found[:5], gold[result.question]) or 0 for result in found.of(mode, BUDGET)
            ]
            values[mode] = round(100 * sum(shares) / len(shares), 2)
    return values


def compare(measured: Values, expected: Values, tolerance: float) -> tuple[list[str], list[str]]:
    """Return the rows of the table, and a message for each value outside the tolerance."""
    rows, faults = [ROW.format("set", "mode", "expected", "got", "difference")], []
    for name, values in measured.items():
        for mode, got in values.items():
            wanted = expected.get(name, {}).get(mode)
            if wanted is None:
                rows.append(ROW.format(name, mode, "none", f"{got:.2f}", ""))
                faults.append(f"{mode} on {name}: nothing is expected, got {got:.2f}")
                continue
            rows.append(ROW.format(name, mode, f"{wanted:.2f}", f"{got:.2f}", f"{got - wanted:+.2f}"))
            if abs(got - wanted) > tolerance + 1e-9:
                faults.append(f"{mode} on {name}: expected {wanted:.2f} ± {tolerance:g}, got {got:.2f}")
    return rows, faults


def main(argv: list[str]) -> int:
    """Measure and compare; return 1 if a value is outside the tolerance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accept", action="store_true", help="write the present values to gate.json")
    args = parser.parse_args(argv)
    started = time.monotonic()
    stored: dict[str, Any] = json.loads(EXPECTED.read_text("utf-8"))
    measured = {name: measure(name) for name in SETS}
    rows, faults = compare(measured, stored["recall@5"], stored["tolerance"])
    print("\n".join(rows))
    print(f"{time.monotonic() - started:.0f} s")
    if args.accept:
        EXPECTED.write_text(json.dumps({**stored, "recall@5": measured}, indent=1) + "\n", "utf-8")
        return 0
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print(
            "If the change is intended, run `python benches/gate.py --accept`, commit benches/gate.json with it,"
            " and put the values before and after into the commit message.",
            file=sys.stderr,
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
