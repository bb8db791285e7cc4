"""Whole builds, each in a fresh process: seconds, peak memory, bytes on disk."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, median, publish, require_data, require_model, target
from common import result_table as table
from generated import documents

RUNS = 3
_CHILD = """
import json, resource, sys, time
from pathlib import Path
from ketrag_fast import Index, Settings
sys.path.insert(0, sys.argv[1])
place, source, options = Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
if source.isdigit():
    from generated import documents
    source = list(documents(int(source)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
with Index.build(source, place, settings=Settings(**options)) as index:
    took = time.perf_counter() - started
    stages = {stage.name: stage.seconds for stage in index.report.stages}
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps([took, int(peak.split()[1]) / 1024, stages]))
"""


def built(source: str, options: dict[str, Any], runs: int) -> tuple[float, float, float, dict[str, float]]:
    """Return the median seconds, MB of memory, MB on disk, and the seconds of each stage in the last run."""
    took, peak, size, stages = [], [], 0.0, {}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "index"
            command = [sys.executable, "-c", _CHILD, str(Path(__file__).parent), str(place), source]
            done = subprocess.run([*command, json.dumps(options)], check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            took.append(found[0])
            peak.append(found[1])
            stages = found[2]
            size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / 1e6
    return median(took), median(peak), size, stages


def main() -> None:
    """Measure a real corpus with and without a model, and generated ones."""
    args = arguments(__doc__).parse_args()
    real = str(require_data("polar" if args.smoke else "2wiki-101"))
    large = 300 if args.smoke else 100_000
    assert next(documents(1)).text
    rows: list[list[Any]] = []
    stage_rows: list[list[Any]] = []
    cases: list[tuple[str, str, str, dict[str, Any], float]] = [
        ("2wiki-101: 6,119 passages", real, "default, no model", {}, 3.0),
        ("2wiki-101: 6,119 passages", real, "bm25, walk", {"modes": "bm25,walk"}, 1.5),
        (f"generated: {large:,} documents", str(large), "default, no model", {}, 15.0),
    ]
    for name, source, what, options, most in cases:
        took, peak, size, stages = built(source, options, 1 if args.smoke or source == str(large) else RUNS)
        rows.append([name, what, took, peak, size, target(took, most=most)])
        stage_rows += [[stage, value] for stage, value in stages.items()] if not stage_rows else []
    if not args.smoke:
        options = {"embedder": f"native:{require_model()}"}
        took, peak, size, _ = built(real, options, 1)
        rows.append(["2wiki-101: 6,119 passages", "default, MiniLM", took, peak, size, ""])
    publish(
        [
            table("Whole builds", ["documents", "modes", "s", "peak MB", "MB on disk", "target, s"], rows),
            table("Stages of the first row", ["stage", "s"], stage_rows),
        ],
        f"Medians of {RUNS} builds; one build of generated documents and with MiniLM.",
    )


if __name__ == "__main__":
    main()
