"""Writing so that a power cut leaves the old or the new, never half of either."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any


def sync_folder(path: Path) -> None:
    """Makes the names in a folder durable, where the system can (not on Windows)."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Makes a folder that is not there, and the folders above it: with their names, whatever comes.

    FileExistsError where something has its name.
    """
    above = path.absolute().parent
    if not above.is_dir():
        with suppress(FileExistsError):  # another process made it meanwhile
            make_folder(above)
    path.mkdir(mode=mode)
    sync_folder(above)


def sync_folders(path: Path) -> None:
    """The names in a folder and in all folders below it."""
    for place, _, _ in os.walk(path, topdown=False):
        sync_folder(Path(place))


def write_file(path: Path, data: bytes) -> None:
    """Writes and syncs a new file."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, data: Any) -> None:
    """Writes and syncs a JSON file for people and machines."""
    write_file(path, (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode())


def replace_file(path: Path, data: bytes) -> None:
    """The file is either as before or wholly new."""
    aside = path.with_name(path.name + ".tmp")
    write_file(aside, data)
    aside.replace(path)
    sync_folder(path.parent)


def move_folder(source: Path, target: Path) -> None:
    """Moves a finished folder to its name; what was there in the way is removed first."""
    remove_folder(target)
    source.rename(target)
    sync_folder(target.parent)


def link_or_copy(source: Path, target: Path) -> None:
    """The same bytes under a second name: a hard link, or a synced copy where there are none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        with target.open("rb+") as file:
            os.fsync(file.fileno())


def remove_folder(path: Path) -> None:
    """Removes a folder if it is there; all errors count."""
    if path.is_symlink() or path.exists():
        shutil.rmtree(path)


def discard_folder(path: Path) -> None:
    """Removes a folder as far as it can: files that are mapped stay on Windows until the next time."""
    shutil.rmtree(path, ignore_errors=True)
