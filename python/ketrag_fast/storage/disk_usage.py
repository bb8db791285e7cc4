"""What is on disk: usage in bytes by kind of data, and leftovers of stopped work, none of which is damage.

Generations share unchanged files under several names: each file counts once, with the current generation
if that has it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from ketrag_fast.errors import KetragError
from ketrag_fast.records import asdict, dataclass
from ketrag_fast.storage.generation import MANIFEST, current_number
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.storage.lock import PROGRESS, read_owner
from ketrag_fast.storage.manifest import read_manifest
from ketrag_fast.storage.tables import Tables

_KEPT = {
    # Keys and indexes use about 40 bytes per row in addition to the columns.
    "vectors": "SELECT coalesce(sum(count * (4 * dimension + 64)), 0) FROM vector_models"
    " JOIN (SELECT model, count(*) AS count FROM vectors GROUP BY model) ON model = number",
    "replies": "SELECT coalesce(sum(length(text) + length(records) + 100), 0) FROM replies",
}
_PASSING = frozenset({"publish", MERGE, PROGRESS, f"{PROGRESS}.tmp"})


@dataclass(frozen=True, slots=True)
class GenerationSize:
    """Size of a generation: `bytes` of all its files, `own` bytes that deleting it would free."""

    generation: int
    bytes: int
    own: int
    current: bool


@dataclass(frozen=True, slots=True)
class Footprint:
    """Disk usage in bytes. `arrays` and `vectors` are those of the current generation.

    `kept_vectors` and `kept_replies` estimate the cached results of models in the tables, `documents` is
    the rest of the tables.
    """

    arrays: int
    vectors: int
    documents: int
    kept_vectors: int
    kept_replies: int
    older: int
    work: int
    model: int
    other: int
    total: int
    generations: tuple[GenerationSize, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that `ketrag stats --json` prints."""
        return {**asdict(self), "generations": [asdict(one) for one in self.generations]}


def footprint(layout: Layout, vectors: Collection[str]) -> Footprint:
    """Measure an index; `vectors` are the stages whose arrays are vectors, or graphs of them."""
    current = current_number(layout)
    names: dict[int, dict[int, tuple[int, str]]] = {}
    for number in layout.generations():
        folder = layout.generation(number)
        names[number] = {
            inode: (size, path.relative_to(folder).parts[0]) for inode, size, path in _files(folder)
        }
    listed = []
    for number, files in names.items():
        others = {inode for other, held in names.items() if other != number for inode in held}
        own = sum(size for inode, (size, _) in files.items() if inode not in others)
        listed.append(GenerationSize(number, sum(size for size, _ in files.values()), own, number == current))
    here = names.get(current, {}) if current is not None else {}
    parts = {True: 0, False: 0}
    for size, stage in here.values():
        parts[stage in vectors] += size
    older = {inode: size for held in names.values() for inode, (size, _) in held.items() if inode not in here}
    work = sum(size for inode, size, _ in _files(layout.work) if inode not in here and inode not in older)
    model = _size(layout.model)
    tables = sum(map(_size, layout.root.glob(f"{layout.tables.name}*")))
    kept = _table_sizes(layout.tables)
    total = sum({inode: size for inode, size, _ in _files(layout.root)}.values())
    known = sum(parts.values()) + sum(older.values()) + work + model + tables
    return Footprint(
        arrays=parts[False],
        vectors=parts[True],
        documents=max(tables - sum(kept.values()), 0),
        kept_vectors=kept["vectors"],
        kept_replies=kept["replies"],
        older=sum(older.values()),
        work=work,
        model=model,
        other=max(total - known, 0),
        total=total,
        generations=tuple(listed),
    )


def _files(path: Path) -> Iterator[tuple[int, int, Path]]:
    """Yield (inode, bytes, path) of a file, or of each file below a folder. Skips deleted ones."""
    files: Iterator[Path] = iter((path,))
    if path.is_dir() and not path.is_symlink():
        files = (Path(here, name) for here, _, names in os.walk(path) for name in names)
    for file in files:
        with suppress(OSError):
            about = file.lstat()
            yield about.st_ino or hash(file), about.st_size, file


def _size(path: Path) -> int:
    return sum(size for _, size, _ in _files(path))


def _table_sizes(tables: Path) -> dict[str, int]:
    """Estimate the size of cached model results in the tables; zeros if they cannot be read."""
    found = dict.fromkeys(_KEPT, 0)
    if not tables.is_file():
        return found
    for name, query in _KEPT.items():
        with (
            suppress(sqlite3.Error),
            closing(sqlite3.connect(f"{tables.absolute().as_uri()}?mode=ro", uri=True)) as db,
        ):
            found[name] = int(db.execute(query).fetchone()[0])
    return found


class Note(NamedTuple):
    """A leftover file or folder: its kind, path and consequence."""

    what: str
    path: Path
    note: str


def notes(layout: Layout) -> Iterator[Note]:
    """Yield the leftovers of stopped builds, merges and copies, in an index folder or next to it."""
    if layout.owner.exists():
        owner = f"{read_owner(layout) or 'some process'} claims to build here"
        yield Note("builder", layout.owner, f"{owner}; if it is gone, the next build takes its place")
    merging = layout.work / MERGE
    if merging.exists():
        yield Note("merge", merging, "a merge was not finished: the same `ketrag merge` continues it")
    elif left := [path for path in _entries(layout.work) if path.name not in _PASSING]:
        yield Note(
            "work",
            layout.work,
            f"{len(left):,} finished or begun stages of a stopped build ({sum(map(_size, left)) / 1e6:,.1f} "
            "MB): `ketrag index` continues from them, and removes them when it ends",
        )
    current = current_number(layout)
    newer = [number for number in layout.generations() if current is not None and number > current]
    if newer:
        yield Note(
            "published",
            layout.generation(newer[-1]),
            f"generation {newer[-1]} is newer than what is published: a build died on its last step, and the "
            "next `ketrag index` publishes it",
        )
    if current is not None and layout.tables.is_file() and not merging.exists():
        with suppress(KetragError):  # reported by another check
            stored = read_manifest(layout.generation(current) / MANIFEST).documents.get("fingerprint")
            with Tables(layout.tables, read_only=True) as tables:
                found = tables.fingerprint()
            if found != stored:
                yield Note(
                    "documents",
                    layout.tables,
                    "the tables hold other documents than what is published: a build was stopped after it "
                    "had read the sources; `ketrag index` publishes them",
                )
    for path in _entries(layout.root):
        if not layout.is_own(path.name):
            yield Note("stranger", path, "not part of the index; commands ignore it")
    for path in _entries(layout.root.absolute().parent):
        if path.name.startswith(".unbundle-") and path.is_dir():
            yield Note(
                "unbundle",
                path,
                "left by a `ketrag import bundle` that was killed, of this index or another; "
                "it can be removed while none runs",
            )


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
