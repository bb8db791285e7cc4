"""Single bits, changed in any file of an index: read back under each way of verifying, and built upon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.soak.attempts import RIGHT, attempt, fault
from tests.soak.plan import Job, Outcome
from tests.soak.subject import Subject

COUNT = 2000
"""In each way of verifying."""
BUILDS = 10
"""One flip in as many lies in the tables, and is met by a build."""


def jobs(scale: float) -> list[Job]:
    count = max(round(COUNT * scale), 4)
    return [Job("flips", verify, n) for verify in ("full", "blocks", "sizes") for n in range(count)]


def run(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    subject = Subject(folder / "read", 56)
    built = Subject(folder / "built", 8)
    places = [path for path in sorted(subject.index.glob("gen-*/**/*")) if path.is_file()]
    places.append(subject.index / "CURRENT")
    sizes = [path.stat().st_size for path in places]
    for job in todo:
        chance = Random(f"{seed} {job}")
        if job.number % BUILDS == 0:
            yield Outcome(job, *in_tables(built, job, chance))
            continue
        # Half of them in any byte, half in any file: most files are small.
        path = chance.choice(places) if job.number % 2 else chance.choices(places, sizes)[0]
        bit = flip(path, chance)
        said = attempt(subject.read, job.kind)
        flip(path, at=bit)
        yield Outcome(job, f"{path.name} bit {bit}", said)


def in_tables(subject: Subject, job: Job, chance: Random) -> tuple[str, str]:
    """A flip in the SQLite file: a build, and then one that reads everything anew."""
    bit = flip(subject.index / "index.sqlite", chance)
    rebuild = chance.random() < 0.7
    said = attempt(subject.build, rebuild=rebuild, verify=job.kind)
    after = attempt(subject.read, "full", stats=False)
    if after != RIGHT and not said.startswith("said"):
        said = fault(f"{said}; then what is published: {after}")
    subject.restore()
    return f"index.sqlite bit {bit}, rebuild {rebuild}", said


def flip(path: Path, chance: Random | None = None, *, at: int = 0) -> int:
    """Changes one bit in place; which one is returned."""
    with path.open("rb+") as file:
        size = file.seek(0, 2)
        bit = chance.randrange(8 * size) if chance is not None and size else at
        if size:
            file.seek(bit // 8)
            byte = file.read(1)[0]
            file.seek(bit // 8)
            file.write(bytes([byte ^ 1 << bit % 8]))
    return bit
