"""The folder of an index during a build: created, held, and removed again if a first build stores nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ketrag_fast.errors import Cancelled, KetragError
from ketrag_fast.storage.durable import discard_folder
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from ketrag_fast.storage.tables import Tables


@contextmanager
def hold_folder(layout: Layout) -> Iterator[None]:
    """Create the folder of an index if it is missing, and hold it for building.

    A new index whose build fails before it has stored a document or a source is removed, so that a mistake in
    the command (a wrong path, a folder in which everything is ignored) leaves the disk as it was. A build
    that was stopped or killed keeps its folder, because the next one continues it.
    """
    is_new = not layout.exists()
    missing = [path for path in (layout.root, *layout.root.parents) if not os.path.lexists(path)]
    is_removed = False
    layout.create()
    try:
        with builder_lock(layout):
            try:
                yield
            except Cancelled:
                raise
            except Exception:
                is_removed = is_new and _is_empty(layout)
                if is_removed:
                    _remove_files(layout)
                raise
    finally:
        if is_removed:
            _remove_folders(layout, missing)


def _is_empty(layout: Layout) -> bool:
    """Return whether nothing was published or stored in an index."""
    if layout.generations():
        return False
    if not layout.tables.is_file():
        return True
    try:
        with Tables(layout.tables) as tables:
            return not tables.sources() and tables.count() == 0
    except (KetragError, OSError):
        return False


def _remove_files(layout: Layout) -> None:
    """Remove what a build creates before it reads. A process waiting for the lock finds it free or gone."""
    with suppress(OSError):
        discard_folder(layout.work)
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            layout.tables.with_name(layout.tables.name + suffix).unlink(missing_ok=True)
    for path in (layout.identity, layout.lock):
        with suppress(OSError):  # Windows removes no open file
            path.unlink(missing_ok=True)


def _remove_folders(layout: Layout, missing: list[Path]) -> None:
    """Remove the folders that the build created, if they are empty."""
    if os.name == "nt":
        with suppress(OSError):
            layout.lock.unlink(missing_ok=True)
    for path in missing:
        with suppress(OSError):
            path.rmdir()
