"""Atomic targets: a file or a folder appears under its name when it is complete, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ketrag_fast.errors import ConfigError, ReadOnly, StorageFull
from ketrag_fast.storage.durable import sync_folder, sync_folders
from ketrag_fast.storage.io_errors import writing


def require_free(target: Path, *, replace: bool) -> None:
    """Raise ConfigError if the target exists and may not be replaced, or if its folder is missing."""
    if not target.name:
        raise ConfigError(f"{str(target)!r} is not the name of a file or folder")
    parent = target.absolute().parent
    if not parent.is_dir():
        raise ConfigError(
            f"cannot write {target}: the folder {parent} does not exist",
            hint="create the folder, or name another",
        )
    if (target.exists() or target.is_symlink()) and not replace:
        raise ConfigError(f"{target} already exists", hint="name another target, or give --replace")


@contextmanager
def new_file(target: Path, *, replace: bool) -> Iterator[IO[bytes]]:
    """Yield a stream whose bytes become the file `target` when the block ends without an error.

    Raises ConfigError, StorageFull, ReadOnly.
    """
    require_free(target, replace=replace)
    if target.is_dir():
        raise ConfigError(f"{target} is a folder, and this format is one file", hint="name a file")
    aside = _aside(target)
    with _adapt_hints(target), writing(target):
        try:
            aside.unlink(missing_ok=True)  # of a killed process that had the same number
            with aside.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            aside.replace(target)
        finally:
            aside.unlink(missing_ok=True)
        sync_folder(target.absolute().parent)


@contextmanager
def new_folder(target: Path, names: Collection[str], *, replace: bool) -> Iterator[Path]:
    """Yield an empty folder that becomes `target` when the block ends without an error.

    A folder is only replaced if all its entries have prefixes in `names`, which an earlier export wrote.

    Raises ConfigError, StorageFull, ReadOnly.
    """
    require_free(target, replace=replace)
    if target.exists() or target.is_symlink():
        _require_export(target, names)
    aside = _aside(target)
    with _adapt_hints(target), writing(target):
        try:
            remove(aside)  # of a killed process that had the same number
            aside.mkdir()
            yield aside
            for path in aside.iterdir():
                with path.open("rb+") as stream:
                    os.fsync(stream.fileno())
            sync_folders(aside)
            with replaced(target):
                aside.rename(target)
        finally:
            remove(aside)
        sync_folder(target.absolute().parent)


@contextmanager
def replaced(target: Path) -> Iterator[None]:
    """Remove the file or folder `target`, which the block may write again; after an error it is put back."""
    old = target.with_name(f".{target.name}.old-{os.getpid()}")
    if target.exists():
        target.rename(old)
    try:
        yield
    except BaseException:
        remove(target)
        if old.exists():
            old.rename(target)
        raise
    remove(old)


def remove(path: Path) -> None:
    """Remove a file or folder, if it exists and that is possible."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _adapt_hints(target: Path) -> Iterator[None]:
    """Replace the hint of write errors by one that fits an export."""
    try:
        yield
    except (ReadOnly, StorageFull) as error:
        error.hint = f"free some space, or write to a folder other than {target.absolute().parent}"
        raise


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.part-{os.getpid()}")


def _require_export(target: Path, names: Collection[str]) -> None:
    """Raise ConfigError unless everything in the folder may come from an export of this format."""
    if target.is_symlink() or not target.is_dir():
        raise ConfigError(
            f"{target} is not a folder, and this format is a folder of files", hint="name a folder"
        )
    for entry in sorted(target.iterdir()):
        if not entry.is_file() or entry.is_symlink() or not entry.name.startswith(tuple(names)):
            raise ConfigError(
                f"{target} is not replaced, because it holds {entry.name!r}, which no export wrote",
                hint="name another folder",
            )
