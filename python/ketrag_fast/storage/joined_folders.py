"""The folders of joined indexes: location, how many are kept, and which parts they were made from.

A joined index is a copy of the documents of its parts. Each part records the folder of the copy, so that
it is removed as soon as the part changes, and nothing that a part has purged stays in it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import IndexLocked, KetragError
from ketrag_fast.storage.allowed_folders import alone
from ketrag_fast.storage.durable import (
    discard_folder,
    replace_file,
    sync_folder,
    write_json,
)
from ketrag_fast.storage.layout import Layout

KEPT: Final = 4
"""Joined indexes that are kept, the most recently opened."""
COPIES: Final = 64
"""Copies of indexes of other machines that are kept."""
COPY: Final = "part-"
"""How the names of these copies begin."""
ABOUT: Final = "joined.json"
"""Record of a joined index: its parts and, once complete, a number that rises with their generations."""
_NAME: Final = re.compile("[0-9a-f]{32}")
"""The name of the folder of a joined index."""


def home_of(folder: str | None) -> Path:
    """Return the folder of all joined indexes: the one given, or one in the user's cache folder."""
    if folder:
        return Path(folder).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ketrag-fast" / "joined"


def read_about(folder: Path) -> dict[str, Any] | None:
    """Return the record of a joined index; None if it is unfinished or unreadable."""
    try:
        about = json.loads(read_regular(folder / ABOUT))
        return {"parts": _parts(about), "generation": int(about["generation"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _parts(about: Any) -> list[str]:
    """Return the parts that a record names."""
    return [str(part) for part in about["parts"]]


def begin_joined(folder: Path, parts: Sequence[str]) -> None:
    """Create the folder of a joined index with an unfinished record, and note it in its parts.

    Must run before any text is copied, so that a part's purge finds the copy of a process that was killed.
    """
    Layout(folder).work.mkdir(mode=0o700, parents=True)  # a merge refuses a folder that has files without it
    _write_record(folder, {"parts": list(parts)})
    sync_folder(folder.parent)
    _write_notes(folder, parts)


def write_about(folder: Path, parts: Sequence[str], generation: int) -> None:
    """Record that a joined index is complete, and note its folder in its parts."""
    _write_record(folder, {"parts": list(parts), "generation": generation})
    _write_notes(folder, parts)


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    replace_file(folder / ABOUT, json.dumps(record, ensure_ascii=False).encode())


def _write_notes(folder: Path, parts: Sequence[str]) -> None:
    for part in parts:
        layout = Layout(Path(part))
        note = layout.joined / f"{folder.name}.json"
        if _noted_folder(note) == folder.absolute():
            continue
        with suppress(OSError, KetragError):  # a part that cannot be written cannot be purged either
            layout.joined.mkdir(mode=0o700, exist_ok=True)
            write_json(note, {"folder": str(folder.absolute())})
            sync_folder(layout.joined)
            sync_folder(layout.root)


def discard_joined(folder: Path) -> None:
    """Remove a joined index, its record last: a part's purge must find what a killed process has left."""
    try:
        rest = [entry for entry in folder.iterdir() if entry.name != ABOUT]
    except OSError:
        rest = []
    for entry in rest:
        if entry.is_dir() and not entry.is_symlink():
            discard_folder(entry)
        else:
            with suppress(OSError):
                entry.unlink()
    if not any(os.path.lexists(entry) for entry in rest):
        discard_folder(folder)


def drop_joined(layout: Layout) -> list[Path]:
    """Remove the joined indexes that contain an index which has changed; return those that remain.

    Readers keep the files that they have open.
    """
    left = []
    for note in _notes(layout):
        folder = _folder_of(layout, note)
        if folder is not None:
            with suppress(IndexLocked), alone(folder, 0):
                discard_joined(folder)
            if folder.exists():
                left.append(folder)
                continue
        with suppress(OSError):
            note.unlink()
    with suppress(OSError):
        layout.joined.rmdir()
    return left


def drop_unused(home: Path, opened: Path) -> None:
    """Remove all but the most recently opened joined indexes and copies.

    `opened` stays, even if the clock of another machine makes all others look more recent.
    """
    try:
        folders = [entry for entry in home.iterdir() if entry.is_dir()]
        folders.sort(key=lambda folder: (folder == opened, folder.stat().st_mtime), reverse=True)
    except OSError:
        return
    copies = [folder for folder in folders if folder.name.startswith(COPY)]
    joined = [folder for folder in folders if folder not in copies]
    for folder in (*joined[KEPT:], *copies[COPIES:]):
        with suppress(IndexLocked), alone(folder, 0):
            discard_joined(folder)


def _notes(layout: Layout) -> list[Path]:
    try:
        return sorted(entry for entry in layout.joined.iterdir() if entry.suffix == ".json")
    except OSError:
        return []


def _folder_of(layout: Layout, note: Path) -> Path | None:
    """Return the joined index of a note, complete or not, if it is one and names this index as a part.

    A note may come from somebody else's index, and must not make a builder remove any other folder. One with
    an unreadable record is a joined index if it has the name of one.
    """
    folder = _noted_folder(note)
    if folder is None or not folder.is_absolute() or folder.name != note.stem:
        return None
    try:
        record = read_regular(folder / ABOUT)
    except OSError:
        return None
    try:
        parts = _parts(json.loads(record))
    except (ValueError, KeyError, TypeError, RecursionError):
        return folder if _NAME.fullmatch(folder.name) else None
    return folder if os.path.realpath(layout.root) in parts else None


def _noted_folder(note: Path) -> Path | None:
    """Return the folder that a note names; None if the note is missing or unreadable."""
    try:
        return Path(str(json.loads(read_regular(note))["folder"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
