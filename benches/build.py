"""The whole build of a real corpus, without a model, stage by stage."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from common import header, median, require_data, table
from ketrag_fast import Index, Settings


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="2wiki-101", help="a question set")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    source = require_data(args.set)
    header(
        f"Whole build of {args.set}, no model",
        [
            "Wall clock of Index.build in one process: reading, every stage, hashing, syncing, publishing.",
            f"Median of {args.runs} builds into empty folders after one warm-up.",
        ],
    )
    totals: list[float] = []
    stages: dict[str, list[float]] = {}
    size = 0
    for run in range(args.runs + 1):
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            with Index.build(
                source, Path(folder) / "index", settings=Settings(threads=args.threads, modes="auto,knng")
            ) as index:
                took = time.perf_counter() - started
                report = index.report
            if run == 0:
                continue
            totals.append(took)
            assert report is not None
            for stage in report.stages:
                stages.setdefault(stage.name, []).append(stage.seconds)
            size = sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())
    rows = [[name, f"{median(times):.3f}"] for name, times in stages.items()]
    rows.append(["**all**", f"**{median(totals):.3f}**"])
    table(["stage", "seconds"], rows)
    print(f"Index folder: {size / 1e6:.1f} MB.")


if __name__ == "__main__":
    main()
