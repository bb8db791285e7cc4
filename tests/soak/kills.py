"""Builds that are killed: at any moment, and at any call that changes a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from ketrag_fast import Index
from tests.soak import calls
from tests.soak.attempts import RIGHT, attempt, fault
from tests.soak.plan import Job, Outcome
from tests.soak.subject import Subject, remove

COUNT = 200


def jobs(scale: float) -> list[Job]:
    count = max(round(COUNT * scale), 2)
    kinds = ["at a moment", *(["at a call"] if calls.there() else [])]
    return [Job("kills", kinds[n % len(kinds)], n) for n in range(count)]


def run(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    subject = Subject(folder, 12)
    fresh = folder / "fresh"
    begun = time.monotonic()
    assert attempt(subject.build, fresh) == RIGHT
    usual = time.monotonic() - begun
    number = calls.count(subject, fresh)
    for job in todo:
        chance = Random(f"{seed} {job}")
        remove(fresh)
        if job.kind == "at a call":
            at = chance.randrange(number) + 1
            what = f"call {at} of {number}"
            said = attempt(calls.armed, subject, fresh, "KILL", at, seconds=60)
        else:
            at = chance.random() * usual
            what = f"after {at:.3f} of {usual:.3f} s"
            said = attempt(subject.build, fresh, kill_after=at)
        if said in ("killed", RIGHT):
            said = attempt(after, subject, fresh, seconds=60)
        yield Outcome(job, what, said)


def after(subject: Subject, path: Path) -> str:
    """What was left can be read or is said to be unfinished; the next build finishes it, and one more finds
    nothing to do.
    """
    from ketrag_fast.errors import IndexMissing

    try:
        with Index.open(path) as index:
            if subject.ask(index) != subject.right:
                return fault("what was published before the kill answers wrongly")
    except IndexMissing:
        pass
    said = subject.build(path)
    if said == RIGHT:
        with Index.build(subject.source, path, settings=subject.settings) as index:
            assert index.report is not None
            said = fault("a further build changed something") if index.report.changed else subject.same(index)
    return said
