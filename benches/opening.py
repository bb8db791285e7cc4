"""Opening an index: time and memory under each `verify`, the questions after it, and whole commands."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

from common import WORK, arguments, median, publish, seconds, target
from common import result_table as table
from generated import documents, question
from ketrag_fast import Index, Settings

VERIFY = ("blocks", "sizes", "full")
_CHILD = """
import json, pathlib, sys, time
from ketrag_fast import Index, Settings
place, tiny, verify, *questions = sys.argv[1:]

def memory():
    rows = dict(line.split(":") for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    return int(rows["VmRSS"].split()[0]) / 1024

Index.open(tiny).retrieve("Where?", mode="walk")
before, found = memory(), []
started = time.perf_counter()
index = Index.open(place, settings=Settings(verify=verify))
found.append(1000 * (time.perf_counter() - started))
for question in questions:
    started = time.perf_counter()
    context = index.retrieve(question, mode="walk", budget=4000)
    found.append(1000 * (time.perf_counter() - started))
    assert context.passages, question
print(json.dumps([*found, memory() - before]))
"""


def made(count: int) -> Path:
    """Return an index of that many generated documents, built unless it exists."""
    place = WORK / f"opening-{count}"
    Index.build(list(documents(count)), place, settings=Settings(modes="bm25,walk,text")).close()
    return place


def megabytes(place: Path) -> float:
    """Return the bytes of the arrays of an index, in MB."""
    return sum(file.stat().st_size for file in place.glob("gen-*/*/*")) / 1e6


def main() -> None:
    """Measure fresh processes."""
    args = arguments(__doc__).parse_args()
    count, runs = (300, 1) if args.smoke else (100_000, 5)
    place, tiny = made(count), made(100)
    asked = [question(document) for document in islice(documents(count), 4, 6)]
    rows: list[list[Any]] = []
    for verify in VERIFY:
        command = [sys.executable, "-c", _CHILD, str(place), str(tiny), verify, *asked]
        found = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for _ in range(runs)
        ]
        opened, first, second, memory = (median(values) for values in zip(*found, strict=True))
        bound = target(opened, most=50) if verify == "blocks" else ""
        rows.append([verify, opened, first, second, memory, bound])
    commands: list[list[Any]] = []
    small = made(300 if args.smoke else 8_000)
    for name, argv, most in (
        ("ketrag --help", ["--help"], 120),
        ("ketrag retrieve, 8,000 documents", ["retrieve", asked[0], "-i", str(small), "--mode", "walk"], 300),
        (
            f"ketrag retrieve, {count:,} documents",
            ["retrieve", asked[0], "-i", str(place), "--mode", "walk"],
            300,
        ),
    ):
        command = [sys.executable, "-m", "ketrag_fast.apps.cli.main", *argv]
        took = [
            1000 * x
            for x in seconds(lambda c=command: subprocess.run(c, check=True, capture_output=True), runs)
        ]
        commands.append([name, median(took), min(took), target(median(took), most=most)])
    columns = ["verify", "open, ms", "first question, ms", "second question, ms", "MB gained", "target, open"]
    publish(
        [
            table(f"An index of {megabytes(place):,.0f} MB, {count:,} documents, mode walk", columns, rows),
            table("Whole commands", ["command", "ms, median", "ms, least", "target, ms"], commands),
        ],
        f"Medians of {runs} processes.",
    )


if __name__ == "__main__":
    main()
