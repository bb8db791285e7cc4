"""Single bits that change anywhere: arrays, manifests, texts, kept vectors and replies, left work, bundles.

flips.py asks a larger index in all modes; here every kind of file is met, and changes are made over what is
there, which read rows that no source gives again.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final

from ketrag_fast import Index, Settings
from ketrag_fast.errors import KetragError
from ketrag_fast.index.health import examine
from tests.soak.attempts import RIGHT, attempt, fault
from tests.soak.changes import Change
from tests.soak.crashes import quick
from tests.soak.flips import flip
from tests.soak.plan import Job, Outcome
from tests.soak.subject import remove
from tests.support.changed import bundle

COUNT: Final = 1000
KINDS: Final = (
    "rows",
    "arrays",
    "tables",
    "work",
    "rows",
    "bundle",
    "arrays",
    "tables",
    "small files",
    "rows",
    "delta",
)
SMALL: Final = ("manifest.json", "CURRENT", "blocks.b3", "stage.json", "index.lock")


def jobs(scale: float) -> list[Job]:
    count = max(round(COUNT * scale), len(KINDS))
    return [Job("rot", KINDS[n % len(KINDS)], n) for n in range(count)]


def run(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory(dir=quick(folder)) as name:
        changes = {}
        for kind in ("remove", "resume", "second delta"):
            Path(name, kind).mkdir()
            changes[kind] = Change(kind, Path(name, kind))
        whole = changes["remove"].start
        bundle(whole / "index", whole / "out.bundle")
        for job in todo:
            change = changes[{"work": "resume", "delta": "second delta"}.get(job.kind, "remove")]
            chance = Random(f"{seed} {job}")
            place = Path(name, "place")
            change.restore(place)
            path = chance.choice(files(place, job.kind))
            bit = flip(path, at=in_rows(path, chance)) if job.kind == "rows" else flip(path, chance)
            said = judge(change, place, path, job.kind, chance)
            yield Outcome(job, f"{path.relative_to(place)} bit {bit}", said)


def files(place: Path, kind: str) -> list[Path]:
    """Where a bit may change."""
    every = [path for path in sorted(place.rglob("*")) if path.is_file() and path.stat().st_size]
    match kind:
        case "tables" | "rows":
            return [place / "index" / "index.sqlite"]
        case "bundle":
            return [place / "out.bundle"]
        case "work":
            return [path for path in every if "work" in path.parts]
        case "delta":
            return [path for path in every if path.parent.name == "delta" and "work" not in path.parts]
        case "arrays":
            return [path for path in every if path.suffix in (".npy", ".pack", ".bin")]
    return [path for path in every if path.name in SMALL]


def in_rows(path: Path, chance: Random) -> int:
    """A bit among the rows of a table or index, each as likely: most of a file is vectors and free space."""
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as db:
        roots = [row[0] for row in db.execute("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")]
        size = db.execute("PRAGMA page_size").fetchone()[0]
    data = path.read_bytes()
    used = []
    for root in roots:
        begin = (root - 1) * size
        count = int.from_bytes(data[begin + 3 : begin + 5], "big")
        if count and root > 1:
            first = int.from_bytes(data[begin + 5 : begin + 7], "big") or 65536
            used.append((begin + first, begin + size))
            used.append((begin, begin + 12 + 2 * count))  # its head, and where its rows begin
    begin, end = chance.choice(used)
    return chance.randrange(8 * begin, 8 * end)


def judge(change: Change, place: Path, path: Path, kind: str, chance: Random) -> str:
    """How reading, the doctor, the change itself and --rebuild went, each in its own process."""
    if kind == "bundle":
        return attempt(arrived, change, place)
    verify = chance.choice(["full", "blocks"])
    read = attempt(reading, change, place, verify)
    found = attempt(doctor, place, path)
    made = attempt(changed, change, place, seconds=60)
    after = attempt(reading, change, place, "full")
    anew = attempt(rebuilt, change, place, seconds=60)
    lines = {
        "reading": read,
        "the doctor": found,
        "the change": made,
        "reading then": after,
        "--rebuild": anew,
    }
    wrong = [f"{name}: {line}" for name, line in lines.items() if line.startswith("FAULT")]
    # What a reader is told, the doctor says, too; and what the change publishes is right.
    if read.startswith("error") and found == RIGHT:
        wrong.append(f"reading: {read}, and the doctor finds nothing")
    if kind in ("arrays", "delta") and found == RIGHT and path.suffix != ".b3":
        wrong.append("the doctor finds nothing")
    if made == RIGHT and after != "new":
        wrong.append(f"the change is done, and reading then: {after}")
    if kind == "work" and made != RIGHT:
        wrong.append(f"left work is not made anew: {made}")
    return fault("; ".join(wrong)) if wrong else f"read {read}, changed {made}"


def reading(change: Change, place: Path, verify: str) -> str:
    """Which side answers."""
    with Index.open(place / "index", settings=Settings(verify=verify)) as index:  # type: ignore[arg-type]
        if index.digest not in change.answers:
            return fault(f"an index of neither side is opened: generation {index.generation}")
        if change.ask(index) != change.answers[index.digest]:
            return fault("wrong answers")
        return "new" if index.digest in change.new else "old"


def doctor(place: Path, path: Path) -> str:
    """What the doctor says: it names the file, and what to do."""
    found = [finding.error for finding in examine(place / "index") if finding.error is not None]
    if not found:
        return RIGHT
    if not all(error.hint for error in found):
        return fault(f"no hint: {found}")
    named = any(str(path) in str(error) or str(path.parent) in str(error) for error in found)
    return f"error {found[0].code}" if named else fault(f"the file is not named: {found}")


def changed(change: Change, place: Path) -> str:
    """The change over what is there: right, an error, or another result that is explained."""
    if change.kind == "resume":
        with Index.build([], place / "index", settings=change.settings) as index:
            assert index.report is not None
            report = index.report
    else:
        report = change.make(place)
    if report.digest in change.new:
        return RIGHT
    if report.warnings or report.failures:
        return "said in the report"
    return fault("another digest, and nothing said")


def rebuilt(change: Change, place: Path) -> str:
    """What people are told to do at last: all sources are read anew, and what is gone is said."""
    try:
        with Index.build([], place / "index", settings=change.settings, rebuild=True) as index:
            report = index.report
            assert report is not None
            said = report.warnings or report.failures or report.removed
            if index.digest not in change.answers and not said:
                return fault("rebuilt, with another digest, and nothing said")
            return RIGHT
    except KetragError as error:
        return f"error {error.code}" if error.hint else fault(f"no hint: {error}")


def arrived(change: Change, place: Path) -> str:
    """A bundle is refused and leaves nothing, or it is right: some bytes of an archive mean nothing."""
    to = place / "arrived"
    try:
        Index.unbundle(place / "out.bundle", to)
    except KetragError as error:
        left = [entry.name for entry in place.iterdir() if entry.name not in ("index", "out.bundle")]
        return fault(f"left behind: {left}") if left else f"error {error.code}"
    with Index.open(to, settings=Settings(verify="full")) as index:
        right = change.ask(index) == change.answers[index.digest]
    remove(to)
    return RIGHT if right else fault("a bundle arrived that is another")
