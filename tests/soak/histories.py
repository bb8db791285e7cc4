"""Histories of small changes: every step is a build from scratch, and the folded end has its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from ketrag_fast import Index
from tests.soak.attempts import RIGHT, fault, judged
from tests.soak.plan import Job, Outcome
from tests.soak.small import small
from tests.soak.subject import remove
from tests.support.histories import History

COUNT: Final = 10_000
KINDS: Final = ("documents", "documents with metadata")
_STEPS: Final = 4


def jobs(scale: float) -> list[Job]:
    count = max(round(COUNT * scale), len(KINDS))
    return [Job("histories", KINDS[n % len(KINDS)], n) for n in range(count)]


def run(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    for job in todo:
        place = folder / "history"
        place.mkdir()
        what = f"{_STEPS} changes"
        with small():
            said = judged(partial(_history, job, seed, place))
        if said.startswith("error"):  # nothing disturbs these builds
            said = fault(said)
        yield Outcome(job, what, said)
        remove(place)


def _history(job: Job, seed: int, place: Path) -> str:
    """Each step is compared with a build of its documents, and the folded end with that of the last one."""
    dated = job.kind == KINDS[1]
    history = History(Random(f"{seed} {job}"), place / "index", dated)
    fresh = place / "fresh"
    with history.start() as index:
        for step in history.changes(index, _STEPS):
            fresh = place / f"fresh{step}"
            history.check(index, fresh)
        index.update(fold=True)
        with Index.open(fresh) as whole:
            assert index.digest == whole.digest, "the folded index has other bytes"
    return RIGHT if history.deltas else "right, without a delta"
