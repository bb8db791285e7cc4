"""Disk usage of an index folder in bytes: arrays, tables by content, generations, leftovers.

Generations share unchanged files under several names: each file counts once, with the current generation
if that has it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ketrag_fast.storage.generation import current_number
from ketrag_fast.storage.layout import Layout

_KEPT = {
    # Keys and indexes use about 40 bytes per row in addition to the columns.
    "vectors": "SELECT coalesce(sum(count * (4 * dimension + 64)), 0) FROM vector_models"
    " JOIN (SELECT model, count(*) AS count FROM vectors GROUP BY model) ON model = number",
    "replies": "SELECT coalesce(sum(length(text) + length(records) + 100), 0) FROM replies",
}


@dataclass(frozen=True, slots=True)
class GenerationSize:
    """Size of a generation: `bytes` of all its files, `own` bytes that deleting it would free."""

    number: int
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
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "generations"}
        listed = [
            {"generation": one.number, "bytes": one.bytes, "own": one.own, "current": one.current}
            for one in self.generations
        ]
        return {**plain, "generations": listed}


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
    model = sum(size for _, size, _ in _files(layout.model))
    tables = sum(_size(path) for path in layout.root.glob(f"{layout.tables.name}*"))
    kept = _table_sizes(layout.tables)
    every = {inode: size for inode, size, _ in _files(layout.root)}
    total = sum(every.values())
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


def _files(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """Yield (inode, bytes, path) of each file below a folder; files deleted meanwhile are skipped."""
    for here, _, names in os.walk(folder):
        for name in names:
            path = Path(here) / name
            with suppress(OSError):
                about = path.lstat()
                yield about.st_ino or hash(path), about.st_size, path


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


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
