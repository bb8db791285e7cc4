"""Runs the parts of the attack in processes of their own, and counts."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.process import ROOT, environment
from tests.soak import calls, crashes, damages, failures, flips, histories, kills, limits, readers, rot
from tests.soak.plan import Job, Outcome

PARTS: Final[dict[str, Any]] = {
    "flips": flips,
    "damages": damages,
    "kills": kills,
    "writes": calls,
    "limits": limits,
    "crashes": crashes,
    "failures": failures,
    "readers": readers,
    "rot": rot,
    "histories": histories,
}
BEFORE: Final = {"writes": "calls", "failures": "calls", "kills": "calls", "crashes": "record"}
"""Which library stands before the processes of a part."""


def all_of(
    parts: list[str], seed: int, scale: float, processes: int, log: Path | None = None
) -> tuple[list[Outcome], list[str]]:
    """All outcomes, and what could not be run here."""
    with tempfile.TemporaryDirectory(prefix="ketrag-soak-") as name:
        needed = dict.fromkeys(BEFORE[part] for part in parts if part in BEFORE)
        libraries = {which: calls.compiled(which, Path(name)) for which in needed}
        missing = []
        if None in libraries.values():
            missing = ["writes, crashes and kills at calls: they need Linux and a C compiler"]
        pairs = [(part, f"{part}:{n}:{processes}") for part in parts for n in range(processes)]

        def one(which: tuple[str, str]) -> list[Outcome]:
            library = libraries.get(BEFORE.get(which[0], ""))
            env = {name: value for name, value in environment().items() if name != "LD_PRELOAD"}
            command = [sys.executable, "-m", "tests.soak", "--worker", which[1]]
            return worker(
                [*command, "--seed", str(seed), "--scale", str(scale)],
                env | ({"LD_PRELOAD": str(library)} if library else {}),
                log,
            )

        with ThreadPoolExecutor(processes) as pool:
            found = [outcome for some in pool.map(one, pairs) for outcome in some]
    return found, missing


def worker(command: list[str], env: dict[str, str], log: Path | None) -> list[Outcome]:
    """The outcomes that one process prints, line by line."""
    found = []
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, encoding="utf-8") as child:
        assert child.stdout is not None
        for line in child.stdout:
            if not line.startswith("["):
                continue
            job, what, said = json.loads(line)
            found.append(Outcome(Job(*job), what, said))
            if log is not None:
                with log.open("a") as file:
                    file.write(line)
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}")
    return found


def work(which: str, seed: int, scale: float) -> None:
    """One process's part of the jobs, printed as they end."""
    part, number, processes = which.split(":")
    todo = PARTS[part].jobs(scale)
    share = getattr(PARTS[part], "share", lambda jobs, n, of: jobs[n::of])
    todo = share(todo, int(number), int(processes))
    with tempfile.TemporaryDirectory(prefix="ketrag-soak-") as name:
        for outcome in PARTS[part].run(todo, seed, Path(name)):
            sys.stdout.write(json.dumps(outcome) + "\n")
            sys.stdout.flush()


def faults(outcomes: list[Outcome]) -> list[Outcome]:
    """What went as none may go."""
    return [outcome for outcome in outcomes if outcome.said.startswith("FAULT")]


def counted(outcomes: list[Outcome]) -> list[list[str]]:
    """For each part and kind of the attack: its name, attempts, how they ended, faults."""
    rows = []
    for part, kind in dict.fromkeys((outcome.job.part, outcome.job.kind) for outcome in outcomes):
        some = [o for o in outcomes if (o.job.part, o.job.kind) == (part, kind)]
        ends = Counter("fault" if o.said.startswith("FAULT") else o.said for o in some)
        shown = ", ".join(f"{name} {count:,}" for name, count in ends.most_common() if name != "fault")
        rows.append([f"{part}: {kind}", f"{len(some):,}", shown, str(ends["fault"])])
    return rows


def report(outcomes: list[Outcome], missing: list[str]) -> str:
    """How often what was tried, how it ended, and every fault."""
    lines = ["| attack | attempts | how they ended | faults |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in counted(outcomes)]
    lines += ["", *(f"Not run: {what}" for what in missing)]
    lines += [f"{o.job.part} {o.job.kind} {o.job.number}: {o.what}: {o.said}" for o in faults(outcomes)]
    return "\n".join(lines)
