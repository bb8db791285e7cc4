"""Measure what the benchmarks' page shows, store it, and write the page: benches/BENCHMARKS.md.

    python benches/all.py                       # what was not measured with the present code, quality first
    python benches/all.py --quality             # quality only, or --times
    python benches/all.py --only build,polar    # these runs; --again measures them although they are current
    python benches/all.py --smoke               # every run at tiny sizes; stores nothing

It stops between runs without loss, and a run that fails keeps its last result. Question sets are read from `$KETRAG_DATA`.
Peers come from the group `bench`, all-MiniLM-L6-v2 from `ketrag models install all-MiniLM-L6-v2`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import claims
import figures
from common import PEERS, PLACE, RESULT, ROOT
from page import page, table_lines
from sections import Run, runs
from stamps import PAGE, RESULTS, digest, read_results, stale_runs


def measure(run: Run, *, smoke: bool) -> dict[str, Any]:
    """Return the result of a run. Raises RuntimeError with the last line of its output if it fails."""
    code = digest(run.globs)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, str(ROOT / "benches" / run.command[0]), *run.command[1:]]
        environment = {**os.environ, RESULT: str(out), "KETRAG_PEERS": PEERS, "HF_HUB_OFFLINE": "1"}
        if smoke:
            environment[PLACE] = folder
        started = time.monotonic()
        done = subprocess.run(
            command + ["--smoke"] * smoke,
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode or not out.exists():
            last = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
            raise RuntimeError(last[0])
        result: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return {
        "command": " ".join(("python", f"benches/{run.command[0]}", *run.command[1:])),
        "seconds": round(time.monotonic() - started, 1),
        "digest": code,
        **result,
    }


def store(name: str, result: dict[str, Any]) -> None:
    """Write a result, a line for each row, and the page."""
    RESULTS.mkdir(exist_ok=True)
    tables = []
    for table in result["tables"]:
        rows = ",\n   ".join(json.dumps(row, ensure_ascii=False) for row in table["rows"])
        head = {name: table[name] for name in ("title", "columns")}
        tables.append(f'{json.dumps(head, ensure_ascii=False)[:-1]},\n  "rows": [\n   {rows}\n  ]}}')
    facts = {name: value for name, value in result.items() if name != "tables"}
    text = json.dumps(facts, ensure_ascii=False, indent=1)[:-2] + ',\n "tables": [\n  ' + ",\n  ".join(tables)
    path = RESULTS / f"{name}.json"
    fresh = path.with_suffix(".tmp")
    fresh.write_text(text + "\n ]\n}\n", "utf-8")
    json.loads(fresh.read_text("utf-8"))
    fresh.replace(path)
    write_page()


def write_page() -> None:
    """Render the page, the table of all modes, the README's table and its figure from the stored results."""
    results = read_results()
    PAGE.write_text(page(results, stale_runs(results)), "utf-8")
    claims.write()
    figures.write()


def main() -> int:
    """Run what is selected; return 1 if a run failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quality", action="store_true", help="the sections on quality")
    parser.add_argument("--times", action="store_true", help="the sections on time and memory")
    parser.add_argument("--only", metavar="NAME,NAME", help="these runs; an empty list renders the page only")
    parser.add_argument("--again", action="store_true", help="measure what is current, too")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes; prints the tables, stores nothing")
    args = parser.parse_args()
    known = runs()
    only = None if args.only is None else [name for name in args.only.split(",") if name]
    unknown = [name for name in only or () if name not in known]
    if unknown:
        parser.error(f"unknown run {unknown[0]}; known are {', '.join(known)}")
    old = read_results()
    outdated = stale_runs(old)
    failed = 0
    for name, (section, run) in known.items():
        if only is not None and name not in only:
            continue
        if args.quality != args.times and section.is_time != args.times:
            continue
        if not (args.again or args.smoke or name not in old or name in outdated):
            continue
        print(name, end=" ", file=sys.stderr, flush=True)
        try:
            result = measure(run, smoke=args.smoke)
        except RuntimeError as error:
            failed += 1
            print(f"failed: {error}", file=sys.stderr, flush=True)
            continue
        print(f"{result['seconds']:,.0f} s", file=sys.stderr, flush=True)
        if args.smoke:
            print("\n\n".join("\n".join(table_lines(table)) for table in result["tables"]), flush=True)
        else:
            store(name, result)
    if not args.smoke:
        write_page()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
