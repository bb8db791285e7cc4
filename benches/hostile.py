"""Endpoints that do what none should: does every call end within its time, and is a key anywhere?

python benches/hostile.py [--seeds N]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.hostile import KEY, SCENARIOS, Hostile, Play, generated, good
from tests.unit.models import test_hostile_endpoints as hostile

from common import header, table
from ketrag_fast import Index, Settings


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=100, help="scripts made by chance")
    seeds = parser.parse_args().seeds
    os.environ["KETRAG_OPENAI_API_KEY"] = f"{KEY}\r\n"
    log = io.StringIO()
    logging.basicConfig(stream=log, level=logging.DEBUG)
    chance = {f"seed {seed}": generated(seed) for seed in range(seeds)}
    header(
        "Endpoints that do what none should",
        [
            f"Each call has a deadline of {hostile.DEADLINE:g} s; it counts as late {hostile.SLACK:g} s after it.",
            "The key is looked for in errors, logs of all levels, standard error and what is stored.",
        ],
    )
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folders = hostile.Folders(Path(name) / "plain", Path(name) / "embedded")
        Index.build(hostile.DOCUMENTS, folders.plain, settings=Settings(threads=1)).close()
        with Hostile(good) as server:
            settings = Settings(threads=1, embedder=hostile.spec(server), modes="text")
            Index.build(hostile.DOCUMENTS, folders.embedded, settings=settings).close()
        rows.append(line(f"{len(SCENARIOS)} scenarios", SCENARIOS, folders, log))
        rows.append(line(f"{seeds} by chance", chance, folders, log))
    table(["scripts", "calls", "longest beyond its deadline, s", "late", "untyped", "key shown"], rows)


def line(title: str, plays: dict[str, Play], folders: hostile.Folders, log: io.StringIO) -> list[str]:
    timed = {name: places for name, places in hostile.CALLS.items() if name not in ("opens", "reads")}
    jobs = [(call, play, only) for play in plays.values() for call, only in timed.values()]

    def one(job: tuple[hostile.Call, Play, str]) -> tuple[float, str]:
        started = time.monotonic()
        wrong = hostile.attempt(*job, folders)
        return time.monotonic() - started - hostile.DEADLINE, wrong

    shown = io.StringIO()
    with contextlib.redirect_stderr(shown), ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, jobs))
    keys = sum("key" in wrong for _, wrong in found) + (KEY in log.getvalue()) + (KEY in shown.getvalue())
    late = sum("took" in wrong for _, wrong in found)
    untyped = sum("untyped" in wrong for _, wrong in found)
    most = max(beyond for beyond, _ in found)
    return [title, f"{len(jobs):,}", f"{max(most, 0.0):.2f}", str(late), str(untyped), str(keys)]


if __name__ == "__main__":
    main()
