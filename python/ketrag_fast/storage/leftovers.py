"""Leftovers of stopped builds, merges and copies in an index folder or next to it; none is damage."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import KetragError
from ketrag_fast.storage import build_progress
from ketrag_fast.storage.generation import MANIFEST, current_number
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.storage.manifest import read_manifest
from ketrag_fast.storage.tables import Tables

_PASSING = frozenset({"publish", MERGE, build_progress.NAME, f"{build_progress.NAME}.tmp"})


class Note(NamedTuple):
    """A leftover file or folder: its kind, path and consequence."""

    what: str
    path: Path
    note: str


def notes(layout: Layout) -> Iterator[Note]:
    """Yield all leftovers. Changes nothing."""
    if layout.owner.exists():
        yield Note(
            "builder", layout.owner, f"{_owner(layout)}; if it is gone, the next build takes its place"
        )
    merging = layout.work / MERGE
    if merging.exists():
        yield Note("merge", merging, "a merge was not finished: the same `ketrag merge` continues it")
    elif left := sorted(path for path in _entries(layout.work) if path.name not in _PASSING):
        size = sum(_size(path) for path in left) / 1e6
        yield Note(
            "work",
            layout.work,
            f"{len(left):,} finished or begun stages of a stopped build ({size:,.1f} MB): "
            "`ketrag index` continues from them, and removes them when it ends",
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
            yield from _find_unpublished(layout, current)
    for path in _entries(layout.root):
        if not layout.is_own(path.name):
            yield Note("stranger", path, "not part of the index; commands ignore it")
    for path in _entries(layout.root.absolute().parent):
        if path.name.startswith(".unbundle-") and path.is_dir():
            yield Note(
                "unbundle",
                path,
                "left by a `ketrag unbundle` that was killed, of this index or another; "
                "it can be removed while none runs",
            )


def _find_unpublished(layout: Layout, current: int) -> Iterator[Note]:
    manifest = read_manifest(layout.generation(current) / MANIFEST)
    with Tables(layout.tables, read_only=True) as tables:
        found = tables.fingerprint()
        stored = manifest.documents.get("fingerprint")
    if found != stored:
        yield Note(
            "documents",
            layout.tables,
            "the tables hold other documents than what is published: a build was stopped after it had "
            "read the sources; `ketrag index` publishes them",
        )


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _size(path: Path) -> int:
    """Return the size in bytes; files removed meanwhile count as 0."""
    files = [path]
    if path.is_dir() and not path.is_symlink():
        files = [Path(place, name) for place, _, names in os.walk(path) for name in names]
    size = 0
    for file in files:
        with suppress(OSError):
            size += file.lstat().st_size
    return size


def _owner(layout: Layout) -> str:
    try:
        owner = json.loads(read_regular(layout.owner))
        return f"process {int(owner['pid'])} on {owner['host']} claims to build here"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "some process claims to build here"
