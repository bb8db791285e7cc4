"""Every change of an index with one call that fails: no room, a disk that fails, no more files to open."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from ketrag_fast.errors import KetragError
from tests.soak import calls
from tests.soak.attempts import RIGHT, attempt, fault, judged
from tests.soak.changes import MAKE, Change
from tests.soak.crashes import quick
from tests.soak.plan import Job, Outcome

MOST: Final = 3000
"""More than a change makes calls; jobs beyond its last have nothing to do."""


def jobs(scale: float) -> list[Job]:
    """At scale 1 each call that writes fails once, and each opening, also one for reading."""
    step = max(round(1 / scale), 1)
    kinds = [f"{kind}, {what}" for kind in MAKE for what in ("a write", "an opening")]
    return [Job("failures", kind, n) for kind in kinds for n in range(1, MOST, step)]


def share(todo: list[Job], number: int, processes: int) -> list[Job]:
    """One process's part: whole changes."""
    mine = list(MAKE)[number::processes]
    return [job for job in todo if job.kind.partition(",")[0] in mine]


def run(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    if not calls.there():
        return
    for kind in dict.fromkeys(job.kind.partition(",")[0] for job in todo):
        with tempfile.TemporaryDirectory(dir=quick(folder)) as name:
            change, place = Change(kind, Path(name)), Path(name, "place")
            numbers: dict[str, int] = {}
            for job in todo:
                own, _, what = job.kind.partition(", ")
                if own == kind:
                    mode = "OPEN" if what == "an opening" else "ONCE"
                    if mode not in numbers:
                        numbers[mode] = count(change, place, "COUNT_OPENS" if mode == "OPEN" else "COUNT")
                    if job.number <= numbers[mode]:
                        yield _one(change, place, job, mode, seed, numbers[mode])


def _one(change: Change, place: Path, job: Job, mode: str, seed: int, number: int) -> Outcome:
    chance = Random(f"{seed} {job}")
    code = errno.EMFILE if mode == "OPEN" else chance.choice([errno.ENOSPC, errno.EIO])
    change.restore(place)
    line = attempt(failed, change, place, mode, job.number, code, seconds=60)
    said, _, name = line.partition("\t")
    if not said.startswith("FAULT"):
        plain = chance.random() < 0.3
        then = attempt(change.judge, place, done=said == RIGHT, plain=plain, seconds=60)
        if then not in ("old", "new", "missing"):
            said = fault(f"{said}, then {then}")
    return Outcome(job, f"call {job.number} of {number} ({name} {errno.errorcode[code]})", said)


def count(change: Change, place: Path, mode: str) -> int:
    """The calls of an undisturbed change."""

    def work() -> str:
        calls.arm(place, mode)
        change.make(place)
        return str(calls.counted())

    change.restore(place)
    return int(attempt(work, seconds=60))


def failed(change: Change, place: Path, mode: str, at: int, code: int) -> str:
    """How a change ended whose `at`-th call failed, and the name of the call."""

    def work() -> str:
        calls.arm(place, mode, at, code)
        try:
            change.make(place)
        except KetragError as error:
            if not error.hint or str(change.folder) not in str(error):  # where, and what to do
                return fault(f"{error.code}: {error}, hint: {error.hint}")
            raise
        return RIGHT

    return f"{judged(work)}\t{calls.name_of_call()}"
