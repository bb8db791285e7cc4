"""One process publishes again and again; others read, in every way that readers have, and must never notice.

`python -m tests.soak.readers KIND INDEX RIGHT SECONDS SEED` is one reader: RIGHT is a file of the right
answers of each digest, which a calm builder made before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch

from ketrag_fast import Document, Index, Settings
from ketrag_fast.building import delta
from ketrag_fast.index.health import examine
from ketrag_fast.storage.layout import Layout
from tests.process import ROOT, environment
from tests.soak.attempts import RIGHT, fault, judged
from tests.soak.plan import Job, Outcome

SECONDS: Final = 300
"""Of each index."""
INDEXES: Final = {"arrays": "auto,fused", "deltas": "bm25,walk"}
"""The modes of the indexes that are changed: one is published as a whole each time, one as deltas."""
QUESTIONS: Final = ("Who led the Fram north?", "Which harbour did Captain Nansen2 sail from?")
MODES: Final = ("walk", "fused", "bm25")
TEXT: Final = (
    "Captain Nansen{0} led the Ship{0} north to Greenland.\n\n"
    "The Fram{0} sailed from Harbour{0} in 19{0}0. {1}\n"
)
STEPS: Final[tuple[dict[str, Any], ...]] = (
    {"add": [Document("n0", TEXT.format(5, "It was cold."))]},
    {"add": [Document("n1", TEXT.format(6, "")), Document("a1", TEXT.format(1, "Later it went south."))]},
    {"remove": "n0"},
    {"add": [Document("n0", TEXT.format(7, "")), Document("a1", TEXT.format(1, ""))]},
    {"remove": "n*"},
    {"add": [Document("a3", TEXT.format(8, ""))]},
    {"add": [Document("a3", TEXT.format(3, ""))]},
)
"""Changes that lead through some indexes, and back to the first."""


def jobs(scale: float) -> list[Job]:
    """Two jobs, whose number is their seconds."""
    return [Job("readers", kind, max(round(SECONDS * scale), 3)) for kind in INDEXES]


def share(todo: list[Job], number: int, processes: int) -> list[Job]:
    """All of it has processes of its own."""
    return todo if number == 0 else []


def run(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    for job in todo:
        own = folder / job.kind
        own.mkdir()
        yield from together(job, seed, own)


def together(job: Job, seed: int, folder: Path) -> Iterator[Outcome]:
    right = folder / "right.json"
    modes = INDEXES[job.kind]
    right.write_text(json.dumps(_calm(folder / "calm", modes)))
    index = folder / "index"
    _first(index, modes).close()
    kinds = ["build", "refresh", "refresh", "open", "hold", "threads", "look", "doctor"]
    children = []
    for number, kind in enumerate(kinds):
        command = [sys.executable, "-m", "tests.soak.readers", kind, str(index), str(right), str(job.number)]
        children.append(
            subprocess.Popen(
                [*command, f"{seed} {number}"],
                cwd=ROOT,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
            )
        )
    for kind, child in zip(kinds, children, strict=True):
        out, _ = child.communicate(timeout=job.number + 600)
        said, _, count = out.rpartition("\n")[0].rpartition("\n")[2].partition("\t")
        if child.returncode or not count:
            said = fault(f"ended by {child.returncode}: {out[-900:]}")
        yield Outcome(
            Job("readers", f"{job.kind}, {kind}", job.number), f"{job.number} s, {count or 'no'} times", said
        )


def _first(path: Path, modes: str) -> Index:
    documents = [Document(f"a{n}", TEXT.format(n, "")) for n in range(5)]
    return Index.build(documents, path, settings=Settings(threads=1, modes=modes))


def asked(index: Index) -> list[tuple[str, str]]:
    """The questions, each with a mode that the index has."""
    return [(question, mode) for question in QUESTIONS for mode in MODES if mode in index.modes]


def answers(index: Index) -> list[Any]:
    """As JSON has them."""
    contexts = [index.retrieve(question, mode=mode, budget=200) for question, mode in asked(index)]
    return [[c.text, [p.document for p in c.passages]] for c in contexts]


def _calm(path: Path, modes: str) -> dict[str, Any]:
    """The answers of each digest, by a builder whom nobody reads.

    The digest of a delta depends on the generation that it changes, so a second round has other ones.
    """
    found: dict[str, Any] = {}
    deltas = 0
    with patch.object(delta, "LEAST", 0), _first(path, modes) as index:
        first = answers(index)
        found[index.digest] = first
        for step in (*STEPS, *STEPS):
            report = index.update(**step)
            deltas += any(stage.name == "delta" for stage in report.stages)
            found[index.digest] = answers(index)
        assert answers(index) == first
    assert bool(deltas) == (modes == INDEXES["deltas"])
    return found


# ---------------------------------------------------------------- each says how often it did what it does


class Watch:
    """What every reader needs: the right answers, the time, a source of chance."""

    def __init__(self, path: Path, right: dict[str, Any], seconds: float, seed: str) -> None:
        self.path = path
        self.right = right
        self.chance = Random(seed)
        self._end = time.monotonic() + seconds
        self.times = 0

    def going(self) -> bool:
        """Whether time is left; counts."""
        self.times += 1
        return time.monotonic() < self._end

    def require(self, index: Index, answer: list[Any] | None = None, digest: str | None = None) -> None:
        """The answers of an index are those of its digest."""
        digest = digest or index.digest
        if digest not in self.right:
            raise AssertionError(f"generation {index.generation} was never published: {digest}")
        if (answer or answers(index)) != self.right[digest]:
            raise AssertionError(f"wrong answers of generation {index.generation}")


def build(watch: Watch) -> None:
    with patch.object(delta, "LEAST", 0), Index.open(watch.path) as index:
        while True:
            for step in STEPS:
                if not watch.going():
                    return
                index.update(**step)
                watch.require(index)
                # A rule that keeps what a reader may be opening must not let the disk fill.
                assert len(Layout(watch.path).generations()) <= 2


def refresh(watch: Watch) -> None:
    with Index.open(watch.path) as index:
        while watch.going():
            before = index.generation
            newer = index.refresh()
            assert index.generation > before if newer else index.generation == before
            watch.require(index)
            time.sleep(watch.chance.choice([0, 0, 0.005, 0.05]))


def opening(watch: Watch) -> None:
    while watch.going():
        with Index.open(
            watch.path, settings=Settings(verify=watch.chance.choice(["blocks", "full"]))
        ) as index:
            watch.require(index)


def hold(watch: Watch) -> None:
    """Keeps a generation long after it is gone, and only then reads all of it."""
    while watch.going():
        with Index.open(watch.path) as index:
            folder = watch.path / f"gen-{index.generation:06}"
            for _ in range(1000):
                if not folder.exists():
                    break
                time.sleep(0.01)
            watch.require(index)
            for arrays in index.inspect.arrays().values():
                for name in arrays:
                    if arrays.path(name).suffix in (".npy", ".pack"):
                        arrays[name].tobytes()


def threads(watch: Watch) -> None:
    """One takes up newer generations while others ask: each answer is of one generation, whole."""
    errors: list[BaseException] = []
    with Index.open(watch.path) as index:
        contexts = {
            (mode, question): {json.dumps(found[at]) for found in watch.right.values()}
            for at, (question, mode) in enumerate(asked(index))
        }

        def ask(seed: int) -> None:
            chance = Random(seed)
            try:
                while watch.going():
                    mode, question = chance.choice(list(contexts))
                    c = index.retrieve(question, mode=mode, budget=200)
                    found = json.dumps([c.text, [p.document for p in c.passages]])
                    assert found in contexts[mode, question], found
            except BaseException as error:  # noqa: BLE001 - it is what we look for
                errors.append(error)

        askers = [threading.Thread(target=ask, args=(seed,)) for seed in range(3)]
        for asker in askers:
            asker.start()
        while any(asker.is_alive() for asker in askers):
            index.refresh()
            time.sleep(0.01)
    for error in errors:
        raise error


def look(watch: Watch) -> None:
    """All that an index tells about itself: of an opened one, and from its tables."""
    while watch.going():
        with Index.open(watch.path) as index:
            index.stats()
            names = [one.document for one in index.inspect.documents()]
            assert len(names) == index.inspect.document_count
            index.inspect.files(names)


def doctor(watch: Watch) -> None:
    while watch.going():
        for finding in examine(watch.path):
            if finding.error is not None:
                raise AssertionError(f"{finding.what}: {finding.error}")


KINDS: Final[dict[str, Callable[[Watch], None]]] = {
    "build": build,
    "refresh": refresh,
    "open": opening,
    "hold": hold,
    "threads": threads,
    "look": look,
    "doctor": doctor,
}


def main(kind: str, path: str, right: str, seconds: str, seed: str) -> None:
    watch = Watch(Path(path), json.loads(Path(right).read_text()), float(seconds), seed)

    def work() -> str:
        KINDS[kind](watch)
        return RIGHT

    sys.stdout.write(f"{judged(work)}\t{watch.times:,}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
