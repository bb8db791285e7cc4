"""Structural damage: files cut, grown, lost, swapped, zeroed or replaced by other things.

Entries of JSON, pages and rows of SQLite become what they may not be.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Final

from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import KetragError
from ketrag_fast.index.health import examine
from ketrag_fast.storage.manifest import SEAL, seal_of
from tests.soak.attempts import RIGHT, attempt, fault
from tests.soak.plan import Job, Outcome
from tests.soak.subject import Subject, remove

COUNT = 1200
ANOTHER_ORDER: Final = ("documents", "place")
"""A column that SQLite updates together with its index: another order of the documents, which is valid."""
WRONG: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 1.5, 10**30, -(2**63), float("inf"), float("nan"), "", "x", "\x00", "7", "../../x"),
    *([], {}, [[]], {"": None}, ["x"] * 3, {"a": {"b": {}}}, "\ud800", "x" * 5000),
)


def jobs(scale: float) -> list[Job]:
    kinds = list(HARMS)
    return [Job("damages", kinds[n % len(kinds)], n) for n in range(max(round(COUNT * scale), len(kinds)))]


def run(todo: list[Job], seed: int, folder: Path) -> Iterator[Outcome]:
    subjects = Subject(folder / "arrays", 8), Subject(folder / "delta", 8, delta=True)
    for job in todo:
        chance = Random(f"{seed} {job}")
        subject = subjects[job.number // len(HARMS) % 2]
        what = HARMS[job.kind](subject, chance)
        verify = chance.choice(["full", "full", "blocks", "sizes"])
        forged, rebuild = "sealed" in what, chance.random() < 0.5
        if job.kind == "settings":
            lines = {"command": attempt(command, subject, what)}
        else:
            lines = {
                "read": attempt(subject.read, "sizes" if forged else verify),
                "doctor": attempt(doctor, subject),
                "build": attempt(build, subject, rebuild=rebuild, forged=forged),
            }
            if verify == "full" and lines["read"].startswith("error") and lines["doctor"] == RIGHT:
                lines["doctor"] = fault(f"the doctor found nothing, and reading: {lines['read']}")
        remove(subject.index)
        subject.restore()
        wrong = [f"{name}: {line}" for name, line in lines.items() if line.startswith("FAULT")]
        said = fault("; ".join(wrong)) if wrong else f"{next(iter(lines.values()))}"
        yield Outcome(job, f"{what}; verify {verify}, rebuild {rebuild}", said)


def build(subject: Subject, *, rebuild: bool, forged: bool) -> str:
    """A build on what is left: the undisturbed digest, a report that says more, or an error."""
    said = subject.build(rebuild=rebuild)
    return "other settings" if forged and "nothing said" in said else said


def doctor(subject: Subject) -> str:
    """What `ketrag doctor` finds; reading must not change what it reads."""
    before = contents(subject.index)
    found = [finding.error for finding in examine(subject.index) if finding.error is not None]
    if contents(subject.index) != before:
        return fault("the doctor changed the index")
    untyped = [error for error in found if not isinstance(error, KetragError)]
    assert not untyped
    return f"error {found[0].code}" if found else RIGHT


def contents(folder: Path) -> dict[str, Any]:
    """All files below a folder, without following links."""
    found: dict[str, Any] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path.is_symlink() or not path.is_file():
                found[str(path)] = os.lstat(path).st_mode
            elif not name.endswith("-shm"):
                found[str(path)] = path.read_bytes()
    return found


def command(subject: Subject, text: str) -> str:
    """`ketrag stats` with a file of settings."""
    (subject.index / ".." / "settings.toml").write_text(text, "utf-8", "replace")
    code = main(["stats", "-i", str(subject.index), "--config", str(subject.index / ".." / "settings.toml")])
    return f"exit {code}" if code in (0, 2, 4) else fault(f"exit {code}")


# ---------------------------------------------------------------- the harms; each says what it did


def files(subject: Subject) -> list[Path]:
    return [path for path in sorted(subject.index.rglob("*")) if path.is_file()]


def some(subject: Subject, chance: Random) -> Path:
    """Any file; those outside of the stages are few and matter most."""
    every = files(subject)
    few = [path for path in every if path.suffix not in (".npy", ".pack", ".bin")]
    return chance.choice(few if chance.random() < 0.4 else every)


def cut(subject: Subject, chance: Random) -> str:
    path = some(subject, chance)
    size = chance.choice([0, 1, path.stat().st_size // 2, max(path.stat().st_size - 1, 0)])
    os.truncate(path, size)
    return f"{path.name} cut to {size}"


def grow(subject: Subject, chance: Random) -> str:
    path = some(subject, chance)
    more = chance.choice([1, 7, 4096, 100_000])
    with path.open("ab") as file:
        file.write(chance.randbytes(more) if more % 2 else bytes(more))
    return f"{path.name} grown by {more}"


def lose(subject: Subject, chance: Random) -> str:
    every = files(subject) + [path for path in sorted(subject.index.rglob("*")) if path.is_dir()]
    path = chance.choice(every)
    remove(path)
    return f"{path.name} lost"


def swap(subject: Subject, chance: Random) -> str:
    first, second = some(subject, chance), some(subject, chance)
    aside = subject.index / "aside"
    first.rename(aside)
    if second.exists():
        second.rename(first)
    aside.rename(second)
    return f"{first.name} and {second.name} swapped"


def zero(subject: Subject, chance: Random) -> str:
    path = some(subject, chance)
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data) + 1)
    more = chance.choice([1, 64, 4096, len(data)])
    data[at : at + more] = bytes(len(data[at : at + more]))
    path.write_bytes(data)
    return f"{path.name} zero at {at}, {more} bytes"


def replace(subject: Subject, chance: Random) -> str:
    path = some(subject, chance)
    other = some(subject, chance)
    kind = chance.choice(["folder", "loop", "nowhere", "other", "device", "pipe", "socket", "copy", "up"])
    data = other.read_bytes()
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "copy":
        path.write_bytes(data)
    elif kind == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    else:
        to = {
            "loop": path,
            "nowhere": subject.index.parent / "nowhere" / "at" / "all",
            "other": other,
            "device": "/dev/zero",
            "up": subject.index,
        }
        path.symlink_to(to[kind])
    return f"{path.name} replaced by {kind}"


def shuffled_folders(subject: Subject, chance: Random) -> str:
    """Stages under one another's name; a generation under another number, or twice."""
    # An index with a delta has two generations; a copy of the older one as the current one is no damage.
    generation = subject.index / (subject.index / "CURRENT").read_text().strip()
    if chance.random() < 0.5:
        first, second = chance.sample([path for path in generation.iterdir() if path.is_dir()], 2)
        first.rename(generation / "aside")
        second.rename(first)
        (generation / "aside").rename(second)
        return f"stages {first.name} and {second.name} swapped"
    free = [generation.with_name(f"gen-{number:06}") for number in (2, 3, 7, 999_999, 10**12)]
    target = chance.choice([path for path in free if not path.exists()])
    if chance.random() < 0.5:
        generation.rename(target)
    else:
        shutil.copytree(generation, target)
        (subject.index / "CURRENT").write_text(target.name)
    return f"{generation.name} as {target.name}"


def edit_manifest(subject: Subject, chance: Random) -> str:
    path = next(subject.index.glob("gen-*/manifest.json"))
    data = json.loads(path.read_text())
    spot, key = data, chance.choice(list(data))
    while isinstance(spot[key], (dict, list)) and spot[key] and chance.random() < 0.75:
        spot = spot[key]
        key = chance.choice(list(spot)) if isinstance(spot, dict) else chance.randrange(len(spot))
    before = spot[key]
    way = chance.random()
    if way < 0.15:
        del spot[key]
        shown = "gone"
    elif way < 0.25:
        path.write_text(json.dumps(data).replace("{", '{"a":' * 3000 + "{", 1))
        return f"manifest: nested deeply before {key}"
    else:
        spot[key] = chance.choice(WRONG)
        if type(before) is int and chance.random() < 0.5:
            spot[key] = before + chance.choice([-1, 1, 2**31, 2**62])
        shown = repr(spot[key])[:40]
    sealed = ""
    if chance.random() < 0.7:
        try:
            data[SEAL] = seal_of(data)
            sealed = ", sealed again"
        except (ValueError, TypeError):
            pass
    path.write_text(json.dumps(data), "utf-8", "surrogatepass")
    return f"manifest: {key} is {shown}{sealed}"


def edit_stage(subject: Subject, chance: Random) -> str:
    """A stage.json of a finished stage in the work folder, where a stopped build would have left it."""
    generation = next(subject.index.glob("gen-*"))
    data = json.loads((generation / "manifest.json").read_text())
    record = chance.choice(data["stages"])
    folder = subject.index / "work" / f"{record['name']}-{record['fingerprint'][:24]}"
    shutil.copytree(generation / record["name"], folder)
    shutil.rmtree(generation / record["name"])
    key = chance.choice(list(record))
    record[key] = chance.choice(WRONG)
    text = json.dumps(record)
    if chance.random() < 0.2:
        text = chance.choice(["[" * 99_999, "", "null", "\x00", "9" * 9999, text[: len(text) // 2]])
    (folder / "stage.json").write_text(text, "utf-8", "surrogatepass")
    return f"work/{folder.name}: {key} is {record[key]!r:.40}"


def pages(subject: Subject, chance: Random) -> str:
    path = subject.index / "index.sqlite"
    data = bytearray(path.read_bytes())
    size = 4096
    first, second = (size * chance.randrange(len(data) // size) for _ in range(2))
    way = chance.choice(["zero", "swap", "copy", "noise", "head"])
    if way == "head":
        data[16 + chance.randrange(84)] = chance.randrange(256)
    one, other = data[first : first + size], data[second : second + size]
    if way in ("swap", "copy"):
        data[first : first + size] = other
    if way == "swap":
        data[second : second + size] = one
    if way in ("zero", "noise"):
        data[first : first + size] = bytes(size) if way == "zero" else chance.randbytes(size)
    path.write_bytes(data)
    return f"index.sqlite: {way} of pages {first // size}, {second // size}"


def rows(subject: Subject, chance: Random) -> str:
    path = subject.index / "index.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("PRAGMA ignore_check_constraints = ON")
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        table = chance.choice(tables)
        way = chance.random()
        if way < 0.1:
            db.execute(f"DROP TABLE {table}")
            return f"table {table} dropped"
        columns = db.execute(f"PRAGMA table_info({table})").fetchall()
        columns = [column for column in columns if (table, column[1]) != ANOTHER_ORDER]
        _, name, kind, *_ = chance.choice(columns)
        count = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        at = chance.randrange(max(count, 1))
        which = f"{name} = (SELECT {name} FROM {table} LIMIT 1 OFFSET {at})"
        if way < 0.2 and table != ANOTHER_ORDER[0]:  # a document that SQLite deletes is one that was removed
            db.execute(f"DELETE FROM {table} WHERE {which}")
            return f"rows of {table} deleted: {name} of row {at}"
        if way < 0.3:
            db.execute(f"ALTER TABLE {table} RENAME COLUMN {name} TO other")
            return f"{table}.{name} renamed"
        texts = ["", "x", "[" * 9999, "NaN", "Infinity", "null", '{"a": 1}', "7", "\x00\x1b[2J", "9" * 5000]
        values: dict[str, list[Any]] = {
            "INTEGER": [-1, 0, 7, 2**31, 2**62, -(2**63)],
            "REAL": [-1.0, 0.0, 1e308, float("inf")],
            "BLOB": [b"", b"\xff\xfe", bytes(16), b"\x00" * 5000],
            "TEXT": texts,
        }
        value = chance.choice(values[kind])
        try:
            if kind == "TEXT" and chance.random() < 0.3:  # bytes that are no text
                db.execute(f"UPDATE {table} SET {name} = CAST(x'ff61c3' AS TEXT) WHERE {which}")
            else:
                db.execute(f"UPDATE {table} SET {name} = ? WHERE {which}", (value,))
        except sqlite3.IntegrityError:
            return f"{table}.{name} of row {at} stays"
    return f"{table}.{name} of row {at} is {value!r:.40}"


def settings(subject: Subject, chance: Random) -> str:
    """A file of settings; the text is what was done."""
    names = ["budget", "threads", "verify", "mode", "seed", "deadline", "knn_k", "embedder", "prices", "x y"]
    values = ["-1", "9e999", "inf", "nan", "[[1]]", "{}", '""', "true", "1979-05-27", "9" * 4400, "'\\x00'"]
    if chance.random() < 0.1:
        return chance.choice(["[" * 20_000, "a = " + "[" * 5000, "\x00", "=", "\ud800", "a.b.c.d = 1\na = 2"])
    return "\n".join(
        f"{chance.choice(names)} = {chance.choice(values)}" for _ in range(chance.randrange(1, 3))
    )


HARMS: Final[dict[str, Callable[[Subject, Random], str]]] = {
    "cut": cut,
    "grow": grow,
    "lose": lose,
    "swap": swap,
    "zero": zero,
    "replace": replace,
    "folders": shuffled_folders,
    "manifest": edit_manifest,
    "stage": edit_stage,
    "pages": pages,
    "rows": rows,
    "settings": settings,
}
