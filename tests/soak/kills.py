"""Builds and changes that are killed: at any moment, and at any call that changes a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from ketrag_fast import Index
from tests.soak import calls
from tests.soak.attempts import RIGHT, attempt, fault
from tests.soak.changes import MAKE, Change
from tests.soak.failures import count
from tests.soak.plan import Job, Outcome
from tests.soak.subject import Subject, remove

COUNT = 200
"""Of builds of a larger index, and again as many of all kinds of changes."""


def jobs(scale: float) -> list[Job]:
    number = max(round(COUNT * scale), 2)
    kinds = ["at a moment", *(["at a call"] if calls.there() else [])]
    found = [Job("kills", kinds[n % len(kinds)], n) for n in range(number)]
    pairs = [f"{change}, {kind}" for change in MAKE for kind in kinds]
    return found + [Job("kills", pairs[n % len(pairs)], n) for n in range(number)]


def share(todo: list[Job], number: int, processes: int) -> list[Job]:
    """One process's part: whole changes."""
    mine = ["at a moment", "at a call", *MAKE][number::processes]
    return [job for job in todo if job.kind.partition(",")[0] in mine]


def run(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    builds = [job for job in todo if "," not in job.kind]
    if builds:
        yield from _builds(builds, seed, folder)
    for kind in MAKE:
        mine = [job for job in todo if job.kind.startswith(f"{kind},")]
        if mine:
            own = folder / "changes" / kind
            own.mkdir(parents=True)
            yield from _changes(Change(kind, own), mine, seed, own / "place")


def _builds(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
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
            moment = chance.random() * usual
            what = f"after {moment:.3f} of {usual:.3f} s"
            said = attempt(subject.build, fresh, kill_after=moment)
        if said in ("killed", RIGHT):
            said = attempt(after, subject, fresh, chance.random() < 0.5, seconds=60)
        yield Outcome(job, what, said)


def _changes(change: Change, todo: list[Job], seed: int, place: Path) -> Iterator[Outcome]:
    change.restore(place)
    begun = time.monotonic()
    assert attempt(made, change, place) == RIGHT
    usual = time.monotonic() - begun
    number = count(change, place, "COUNT") if calls.there() else 0
    for job in todo:
        chance = Random(f"{seed} {job}")
        change.restore(place)
        if job.kind.endswith("at a call"):
            at = chance.randrange(number) + 1
            what = f"call {at} of {number}"
            said = attempt(made, change, place, at, seconds=60)
        else:
            moment = chance.random() * usual
            what = f"after {moment:.3f} of {usual:.3f} s"
            said = attempt(made, change, place, kill_after=moment)
        if said in ("killed", RIGHT):
            plain = chance.random() < 0.3
            said = attempt(change.judge, place, done=said == RIGHT, plain=plain, seconds=60)
        yield Outcome(job, what, said if said in ("old", "new", "missing") else fault(said))


def made(change: Change, place: Path, at: int = 0) -> str:
    """The change; the `at`-th call that changes a file is its last."""
    if at:
        calls.arm(place, "KILL", at)
    change.make(place)
    return RIGHT


def after(subject: Subject, path: Path, plain: bool) -> str:
    """What was left can be read or is said to be unfinished; the next build finishes it, and one more finds
    nothing to do. With `plain` the next build names no source and no setting: it continues with those that
    the killed one stored, if it had come as far as that.
    """
    from ketrag_fast.errors import IndexMissing
    from ketrag_fast.storage.layout import Layout
    from ketrag_fast.systems.index_settings import begun_settings

    try:
        with Index.open(path) as index:
            if subject.ask(index) != subject.right:
                return fault("what was published before the kill answers wrongly")
    except IndexMissing:
        pass
    said = subject.build(path, plain=plain and begun_settings(Layout(path)) is not None)
    if said == RIGHT:
        with Index.build(subject.source, path, settings=subject.settings) as index:
            assert index.report is not None
            said = fault("a further build changed something") if index.report.changed else subject.same(index)
    return said
