"""The folders of indexes for an `allow` condition: how many are kept, and exclusive access to one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from ketrag_fast.errors import IndexLocked
from ketrag_fast.storage.durable import discard_folder
from ketrag_fast.storage.generation import current_number
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import Layout

KEPT: Final = 32
"""Folders kept per generation, the most recently opened."""
_WAIT: Final = 600.0
"""Seconds to wait for another process that builds the same folder, unless a deadline ends the wait."""
_PAUSE: Final = 0.05
"""Seconds between two attempts."""


def drop_old(layout: Layout, opened: Path | None = None) -> None:
    """Remove the folders of older generations, and all but the most recently opened of the current one.

    `opened` stays if it is one of the current generation, even if the clock of another machine makes all
    others look more recent. Readers keep the files that they have open.
    """
    try:
        folders = [entry for entry in layout.allowed.iterdir() if entry.is_dir()]
    except OSError:
        return
    current = f"{current_number(layout) or 0:06}-"
    own = [folder for folder in folders if folder.name.startswith(current)]
    with suppress(OSError):
        own.sort(key=lambda folder: (folder == opened, folder.stat().st_mtime), reverse=True)
    for folder in {*folders} - {*own[:KEPT]}:
        with suppress(IndexLocked), alone(folder, 0):
            discard_folder(folder)
            if folder not in own:  # older generations are no longer opened
                folder.with_name(f"{folder.name}.lock").unlink(missing_ok=True)


@contextmanager
def alone(
    folder: Path, seconds: float | None = None, check: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Hold a folder, so that one process at a time makes, opens or removes it.

    Waits at most `seconds` (600 without) for another process, then raises IndexLocked. `check` is called
    every 50 ms of the wait, and raises to end it: at a deadline, or when the work is cancelled.
    """
    place = folder.with_name(f"{folder.name}.lock")
    lock = FileLock(place, timeout=0)
    end = time.monotonic() + (_WAIT if seconds is None else seconds)
    while True:
        try:
            with writing(folder.parent):
                lock.acquire()
            break
        except Timeout:
            check()
            if time.monotonic() >= end:
                raise IndexLocked(
                    f"another process is still building {folder}", hint="try again when it has ended"
                ) from None
            time.sleep(_PAUSE)
    try:
        yield
    finally:
        lock.release()
