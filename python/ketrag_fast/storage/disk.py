"""What an index takes on the disk: each generation, and what it shares with others through hard links."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ketrag_fast.storage.layout import Layout


def disk_use(layout: Layout) -> dict[str, Any]:
    """Bytes of the tables, of unfinished work, and of each generation: `bytes` of all its files, and `alone`
    of those that no other generation has, which are free once it is gone. What goes meanwhile is passed over.
    """
    folders = [layout.generation(number) for number in layout.generations()]
    held = {folder.name: _files(folder) for folder in folders}
    owners: dict[tuple[int, int], int] = {}
    for files in held.values():
        for key in files:
            owners[key] = owners.get(key, 0) + 1
    generations = [
        {
            "name": name,
            "bytes": sum(files.values()),
            "alone": sum(size for key, size in files.items() if owners[key] == 1),
        }
        for name, files in held.items()
        if files
    ]
    tables = sum(_size(layout.tables.with_name(layout.tables.name + end)) for end in ("", "-wal"))
    work = sum(_files(layout.work).values())
    once = {key: size for files in held.values() for key, size in files.items()}
    return {
        "generations": generations,
        "tables": tables,
        "work": work,
        "all": sum(once.values()) + tables + work,
    }


def _files(folder: Path) -> dict[tuple[int, int], int]:
    """The files below a folder by their identity, with their sizes."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                about = Path(place, name).lstat()
            except OSError:
                continue
            found[about.st_dev, about.st_ino] = about.st_size
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
