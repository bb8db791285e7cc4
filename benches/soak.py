"""The attack on a small index (tests/soak): what was done, how often, and how it ended.

python benches/soak.py [--seed N] [--scale X] [--log FILE] | --logs FILE,FILE [--note TEXT]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.soak import drive
from tests.soak.plan import Job, Outcome

from common import header, table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="the part of the attempts that is made")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--log", type=Path, help="keeps one line for each attempt")
    parser.add_argument("--logs", help="makes the section of such files, comma-separated, and runs nothing")
    parser.add_argument("--note", action="append", default=[], help="a line above the table")
    args = parser.parse_args()
    header(
        "An index under attack",
        [
            "An index of the polar articles with every graph that needs no model, each attempt in a process of its own.",
            "Crashes, failures, rot and the kills of changes: an index of seven short documents with kept vectors of a "
            "small model, kept replies and a history (tests/soak/changes.py). `old`, `new`: the side that a reader "
            "finds; `missing`: none yet, of a first build. docs/durability.md says what is done.",
            "A fault is an untyped error, a signal, more than 10 s, another answer under `full` or `blocks`, or a next "
            "build that does not end with the digest of the undisturbed one.",
            *args.note,
        ],
    )
    if args.logs:
        lines = [line for name in args.logs.split(",") for line in Path(name).read_text("utf-8").splitlines()]
        # An attempt that was repeated counts once, as it ended last.
        last = {Job(*job): Outcome(Job(*job), what, said) for job, what, said in map(json.loads, lines)}
        outcomes = list(last.values())
        missing: list[str] = []
    else:
        outcomes, missing = drive.all_of(list(drive.PARTS), args.seed, args.scale, args.processes, args.log)
    table(["attack", "attempts", "how they ended", "faults"], drive.counted(outcomes))
    for what in missing:
        print(f"Not run: {what}")


if __name__ == "__main__":
    main()
