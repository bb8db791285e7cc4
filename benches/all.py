"""Measure the sections of the benchmarks' page, store the results, and write the pages that show them.

    python benches/all.py                   # every section: `make figures`
    python benches/all.py build polar       # these sections alone: `make figures ONLY='build polar'`
    python benches/all.py --pages           # measure nothing, write the pages from the stored results
    python benches/all.py --smoke polar     # tiny sizes; prints the tables, stores nothing

It can be stopped between runs without loss, and a run that fails keeps its last result. Question sets are read from `$KETRAG_DATA`.
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
from common import PEERS, PLACE, RESULT, ROOT
from page import PAGE, RESULTS, SCORES, benchmarks_page, read_results, scores_page, table_lines
from sections import SECTIONS, Run


def measure(run: Run, *, smoke: bool) -> dict[str, Any]:
    """Return the result of a run. Raises RuntimeError with the last line of its output if it fails."""
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
    return {"seconds": round(time.monotonic() - started, 1), **result}


def store(name: str, result: dict[str, Any]) -> None:
    """Write a result, a line for each row, and the pages."""
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
    write_pages()


def write_pages() -> None:
    """Render the benchmarks, the scores of all modes, the README's table and its figure from the stored results."""
    results = read_results()
    PAGE.write_text(benchmarks_page(results), "utf-8")
    SCORES.write_text(scores_page(results), "utf-8")
    claims.write()


def main() -> int:
    """Run what is selected; return 1 if a run failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="NAME", help="sections to measure; default: all")
    parser.add_argument("--pages", action="store_true", help="write the pages from the stored results")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes; prints the tables, stores nothing")
    args = parser.parse_args()
    known = {section.name: section for section in SECTIONS}
    unknown = [name for name in args.sections if name not in known]
    if unknown:
        parser.error(f"unknown section {unknown[0]}; known are {', '.join(known)}")
    if args.pages:
        write_pages()
        return 0
    failed = 0
    for section in [known[name] for name in args.sections] or SECTIONS:
        for run in section.runs:
            print(run.name, end=" ", file=sys.stderr, flush=True)
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
                store(run.name, result)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
