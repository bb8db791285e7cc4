"""The power goes between any two calls of a change: what the disk may hold is made, read and built upon."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from tests.soak import calls
from tests.soak.attempts import attempt, fault
from tests.soak.changes import MAKE, Change
from tests.soak.disk import WAYS, Disk, entries
from tests.soak.plan import Job, Outcome
from tests.soak.subject import remove

LIBRARY: Final = "record"
"""record.c must stand before the process."""
MOST: Final = 3000
"""More than a change makes calls; jobs beyond its last have nothing to do."""
_ROOM: Final = 256 << 20
SURE: Final = ("nothing unsynced", "names alone", "mixed")
"""The ways after a change has ended that no part of the attack leaves out."""


def jobs(scale: float) -> list[Job]:
    """At scale 1 every moment in a way left to chance, and what follows the end in every way."""
    step = max(round(1 / scale), 1)
    found = []
    for kind in MAKE:
        found += [Job("crashes", kind, n) for n in range(0, MOST, step)]
        found += [Job("crashes", kind, MOST + n) for n, way in enumerate(WAYS) if step == 1 or way in SURE]
    return found


def share(todo: list[Job], number: int, processes: int) -> list[Job]:
    """One process's part: whole kinds, because each must first be recorded."""
    mine = list(MAKE)[number::processes]
    return [job for job in todo if job.kind in mine]


def run(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    if not calls.there(LIBRARY):
        return
    for kind in dict.fromkeys(job.kind for job in todo):
        mine = [job for job in todo if job.kind == kind]
        with tempfile.TemporaryDirectory(dir=quick(folder)) as name:
            yield from _one(kind, mine, seed, Path(name))


def quick(folder: Path) -> Path:
    """A place in memory, where there is one: what is synced here is judged by the record alone."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > _ROOM else folder


def _one(kind: str, todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    change = Change(kind, folder)
    place = folder / "place"
    change.restore(place)
    disk = Disk(place)
    said = attempt(recorded, change, place, folder / "record", seconds=60)
    assert said == "done", said
    made = list(entries((folder / "record").read_bytes()))
    remove(place)
    at = 0
    for job in sorted(todo, key=lambda job: job.number):
        if len(made) < job.number < MOST:
            continue
        chance = Random(f"{seed} {job}")
        moment = min(job.number, len(made))
        way = WAYS[job.number - MOST] if job.number >= MOST else chance.choice(WAYS)
        for call in made[at:moment]:
            disk.apply(call)
        at = moment
        disk.leave(place, way, chance)
        done, plain = job.number >= MOST, chance.random() < 0.3
        said = attempt(change.judge, place, done=done, plain=plain, seconds=60)
        remove(place)
        what = f"after call {moment} of {len(made)}"
        if moment:
            last = made[moment - 1]
            what += f" ({last.what} {Path(last.second or last.first).name})"
        yield Outcome(job, f"{what}, {way}", fault(said) if said.startswith("error") else said)


def recorded(change: Change, place: Path, record: Path) -> str:
    """The change, with every call written down."""
    handle = ctypes.CDLL(None).record_begin(os.fsencode(place), os.fsencode(record))
    assert handle >= 0
    change.make(place)
    return "done"
