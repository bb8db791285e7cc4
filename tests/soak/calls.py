"""Each call that changes a file of an index, failed once: calls.c stands before the process's library."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from tests.soak.attempts import RIGHT, attempt, fault, judged
from tests.soak.plan import Job, Outcome
from tests.soak.subject import Subject, remove

MODES: Final = {"COUNT": 1, "ONCE": 2, "FROM_THEN_ON": 3, "SHORT": 4, "KILL": 5, "COUNT_OPENS": 6, "OPEN": 7}
KINDS: Final = {
    "no space, once": ("ONCE", errno.ENOSPC),
    "no space from then on": ("FROM_THEN_ON", errno.ENOSPC),
    "the disk fails, once": ("ONCE", errno.EIO),
    "cut short": ("SHORT", 0),
}
MOST: Final = 2000
"""More than a build makes calls; jobs beyond its last have nothing to do."""


def compiled(name: str, folder: Path) -> Path | None:
    """The library of NAME.c, made for this machine; None where there is no C compiler, or no such loader."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or os.uname().sysname != "Linux":
        return None
    target, source = folder / f"{name}.so", Path(__file__).with_name(f"{name}.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(target), str(source), "-ldl"]
    return target if subprocess.run(command, check=False, capture_output=True).returncode == 0 else None


def there(name: str = "calls") -> bool:
    """Whether the library stands before this process."""
    return f"{name}.so" in os.environ.get("LD_PRELOAD", "")


def arm(path: Path, mode: str, at: int = 0, code: int = 0) -> None:
    """From now on the calls below a path are counted, and the `at`-th meets its fate."""
    ctypes.CDLL(None).calls_arm(os.fsencode(path), MODES[mode], ctypes.c_long(at), code)


def counted() -> int:
    """Calls since `arm`."""
    return int(ctypes.CDLL(None).calls_counted())


def name_of_call() -> str:
    """Of the call that met its fate; empty where none did."""
    call = ctypes.CDLL(None).calls_name
    call.restype = ctypes.c_char_p
    return (call() or b"").decode()


def count(subject: Subject, path: Path) -> int:
    """The calls of an undisturbed build; 0 without the library."""
    if not there():
        return 0

    def work() -> str:
        arm(path, "COUNT", 0, 0)
        said = subject.build(path)
        return str(counted()) if said == RIGHT else said

    remove(path)
    return int(attempt(work, seconds=60))


def armed(subject: Subject, path: Path, mode: str, at: int, code: int = 0) -> str:
    """A build whose `at`-th call meets its fate."""
    arm(path, mode, at, code)
    return subject.build(path, left=True)


def named(subject: Subject, path: Path, mode: str, at: int, code: int) -> str:
    """How such a build ended, and the name of the call."""
    said = judged(lambda: armed(subject, path, mode, at, code))
    return f"{said}\t{name_of_call()}"


def jobs(scale: float) -> list[Job]:
    """Every call once without space; the other ways with some of them."""
    found = []
    for kind, apart in zip(KINDS, (1, 8, 3, 8), strict=True):
        step = max(round(apart / scale), 1)
        step += step > 1 and step % 2 == 0  # calls come in pairs
        found += [Job("writes", kind, n) for n in range(1, MOST, step)]
    return found


def run(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    if not there():
        return
    subject = Subject(folder, 6, modes="auto,keyword,ket")
    fresh = folder / "fresh"
    number = count(subject, fresh)
    for job in todo:
        if job.number > number:
            continue
        mode, code = KINDS[job.kind]
        remove(fresh)
        if Random(f"{seed} {job}").random() < 0.5:  # else the first build of a new folder
            shutil.copytree(subject.whole, fresh)
            (fresh / "index.sqlite").unlink()
            shutil.rmtree(next(fresh.glob("gen-*/links")))

        line = attempt(named, subject, fresh, mode, job.number, code)
        said, _, name = line.partition("\t")
        if not said.startswith("FAULT"):
            then = attempt(subject.build, fresh, seconds=60)
            said = said if then == RIGHT else fault(f"{said}; the next build: {then}")
        yield Outcome(job, f"call {job.number} of {number} {name}", said)
