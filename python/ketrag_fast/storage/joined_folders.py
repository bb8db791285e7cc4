"""The folders of joined indexes: location, how many are kept, and which parts they were made from.

A joined index is a copy of the documents of its parts. Each part records the folder of the copy, so that
it is removed as soon as the part changes, and nothing that a part has purged stays in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import IndexLocked, KetragError
from ketrag_fast.storage.allowed_folders import alone
from ketrag_fast.storage.durable import discard_folder, write_json
from ketrag_fast.storage.layout import Layout

KEPT: Final = 4
"""Joined indexes that are kept, the most recently opened."""
COPIES: Final = 64
"""Copies of indexes of other machines that are kept."""
COPY: Final = "part-"
"""How the names of these copies begin."""
ABOUT: Final = "joined.json"
"""Written when a joined index is complete: its parts, and a number that rises with their generations."""


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
        parts = [str(part) for part in about["parts"]]
        return {"parts": parts, "generation": int(about["generation"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def write_about(folder: Path, parts: Sequence[str], generation: int) -> None:
    """Record that a joined index is complete, and note its folder in its parts."""
    write_json(folder / ABOUT, {"parts": list(parts), "generation": generation})
    for part in parts:
        notes = Layout(Path(part)).joined
        with suppress(OSError, KetragError):  # a part that cannot be written cannot be purged either
            notes.mkdir(mode=0o700, exist_ok=True)
            write_json(notes / f"{folder.name}.json", {"folder": str(folder.absolute())})


def drop_joined(layout: Layout) -> list[Path]:
    """Remove the joined indexes that contain an index which has changed; return those that remain.

    Readers keep the files that they have open.
    """
    left = []
    for note in _notes(layout):
        folder = _folder_of(layout, note)
        if folder is not None:
            with suppress(IndexLocked), alone(folder, 0):
                discard_folder(folder)
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
            discard_folder(folder)


def _notes(layout: Layout) -> list[Path]:
    try:
        return sorted(entry for entry in layout.joined.iterdir() if entry.suffix == ".json")
    except OSError:
        return []


def _folder_of(layout: Layout, note: Path) -> Path | None:
    """Return the joined index of a note, if it is one and names this index as a part.

    A note may come from somebody else's index, and must not make a builder remove any other folder.
    """
    try:
        folder = Path(str(json.loads(read_regular(note))["folder"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    about = read_about(folder) if folder.is_absolute() and folder.name == note.stem else None
    own = os.path.realpath(layout.root)
    return folder if about is not None and own in about["parts"] else None
