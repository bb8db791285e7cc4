"""Durable writes: after a power cut a file is either old or new, never half written."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if os.name == "nt" else ()
"""Seconds between attempts to rename a file; Windows refuses while another process has it open."""


_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


def sync_file(path: Path) -> None:
    """Sync the bytes of a file to disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Sync the directory entries of a folder to disk (does nothing on Windows)."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folders(path: Path) -> None:
    """Sync the directory entries of a folder and of all folders below it."""
    for place, _, _ in os.walk(path, topdown=False):
        sync_folder(Path(place))


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Create a folder and its parents, and sync their directory entries.

    Raises FileExistsError if the name is taken.
    """
    above = path.absolute().parent
    if not above.is_dir():
        with suppress(FileExistsError):  # another process created it meanwhile
            make_folder(above)
    path.mkdir(mode=mode)
    sync_folder(above)


def write_file(path: Path, data: bytes) -> None:
    """Write and sync a new file."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def json_bytes(data: Mapping[str, Any]) -> bytes:
    """Return an object as JSON with a line for each entry, as all JSON files of an index are written.

    Indenting the values, too, would take four times as long, because Python's fast encoder does not.
    """
    rows = (
        f" {json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in data.items()
    )
    return ("{\n" + ",\n".join(rows) + "\n}\n").encode()


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write and sync a JSON file."""
    write_file(path, json_bytes(data))


def retry_denied(action: Callable[[], object], pauses: Sequence[float] = _PAUSES) -> None:
    """Run `action`; after a PermissionError sleep for the next of `pauses` and retry."""
    for pause in pauses:
        try:
            action()
            return
        except PermissionError:
            time.sleep(pause)
    action()


def replace_path(source: Path, target: Path) -> None:
    """Rename a file over another one. On Windows, wait up to a second until readers close the target."""
    retry_denied(lambda: source.replace(target))


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    aside = path.with_name(path.name + ".tmp")
    write_file(aside, data)
    replace_path(aside, path)
    sync_folder(path.parent)


def move_folder(source: Path, target: Path) -> None:
    """Rename a finished folder; an existing target is removed first."""
    remove_folder(target)
    retry_denied(lambda: source.rename(target))
    sync_folder(target.parent)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name: a hard link, or a synced copy if links are unsupported."""
    try:
        os.link(source, target)
    except OSError:
        from shutil import copyfile

        copyfile(source, target)
        sync_file(target)


def remove_folder(path: Path) -> None:
    """Remove a folder if it exists; errors are raised."""
    if (path.is_symlink() or path.exists()) and not _remove_quickly(path):
        from shutil import rmtree

        rmtree(path)


def discard_folder(path: Path) -> None:
    """Remove a folder and ignore errors; on Windows mapped files remain until the next cleanup."""
    if not _remove_quickly(path):
        from shutil import rmtree

        rmtree(path, ignore_errors=True)


def _remove_quickly(path: Path) -> bool:
    """Remove a folder without importing `shutil`, which imports three packers; return whether it is gone."""
    if sys.platform == "win32":
        return False
    try:
        handle = os.open(path, _FOLDER)
        try:
            _empty_folder(handle)
        finally:
            os.close(handle)
        path.rmdir()
    except FileNotFoundError:
        return not os.path.lexists(path)
    except (OSError, RecursionError):
        return False
    return True


def _empty_folder(handle: int) -> None:
    """Remove what is in an open folder; links are not followed."""
    with os.scandir(handle) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, is_folder in entries:
        if not is_folder:
            os.unlink(name, dir_fd=handle)
            continue
        below = os.open(name, _FOLDER, dir_fd=handle)
        try:
            _empty_folder(below)
        finally:
            os.close(below)
        os.rmdir(name, dir_fd=handle)


def discard_contents(folder: Path) -> None:
    """Remove the contents of a folder, and ignore errors."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if path.is_dir() and not path.is_symlink():
                discard_folder(path)
            else:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
