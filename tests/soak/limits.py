"""Builds and questions under limits that fall: memory, files to open, bytes of a file."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from tests.soak.attempts import RIGHT, attempt, fault, judged
from tests.soak.plan import Job, Outcome
from tests.soak.subject import Subject, remove

COUNT = 1000
MIB: Final = 1 << 20
KINDS: Final = (
    *["memory, build"] * 4,
    *["memory, questions"] * 3,
    "files, build",
    "files, questions",
    "bytes, build",
)


def jobs(scale: float) -> list[Job]:
    count = max(round(COUNT * scale), len(KINDS))
    return [Job("limits", KINDS[n % len(KINDS)], n) for n in range(count)]


def run(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    subject = Subject(folder, 20)
    fresh = folder / "fresh"
    for job in todo:
        kind, what = job.kind.split(", ")
        chance = Random(f"{seed} {job}")
        remove(fresh)
        if what == "build" and chance.random() < 0.5:  # of some stages, over others
            shutil.copytree(subject.whole, fresh)
            for stage in chance.sample(sorted(fresh.glob("gen-*/*/")), 4):
                shutil.rmtree(stage)
        number, value = LIMITS[kind](chance)
        line = attempt(limited, subject, what, fresh, number, value)
        said, _, shown = line.partition("\t")
        if what == "build" and not said.startswith("FAULT") and said != RIGHT:
            then = attempt(subject.build, fresh, seconds=60)
            said = said if then == RIGHT else fault(f"{said}; the next build without a limit: {then}")
        yield Outcome(job, f"{kind} {shown or value}", said)


def limited(subject: Subject, what: str, fresh: Path, number: int, value: int) -> str:
    """A build or questions under one limit, which ends before anything is said about it."""
    if number == resource.RLIMIT_AS:  # what is mapped already is not asked for again
        value += mapped()
    soft, hard = resource.getrlimit(number)
    resource.setrlimit(number, (value, hard))
    try:
        work = partial(subject.build, fresh) if what == "build" else partial(subject.read, "blocks")
        said = judged(work, ("index_damaged",))  # a limit says nothing about a file
    finally:
        resource.setrlimit(number, (soft, hard))
    return f"{said}\t{value}"


def mapped() -> int:
    """Bytes of this process's address space."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


LIMITS: Final[dict[str, Callable[[Random], tuple[int, int]]]] = {
    "memory": lambda chance: (resource.RLIMIT_AS, int(MIB * 2 ** (chance.random() * 11 - 3))),
    "files": lambda chance: (resource.RLIMIT_NOFILE, chance.randrange(3, 40)),
    "bytes": lambda chance: (resource.RLIMIT_FSIZE, int(2 ** (chance.random() * 21))),
}
