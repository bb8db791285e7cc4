"""Manage the cached folders of indexes built for an `allow` condition: delete old ones, lock one for use."""

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
"""Maximum number of cached folders per generation; the least recently opened are deleted."""
_WAIT: Final = 600.0
"""Seconds to wait for another process that builds the same folder, if the query has no earlier deadline."""
_PAUSE: Final = 0.05
"""Seconds between two attempts."""


def drop_old(layout: Layout, opened: Path | None = None) -> None:
    """Delete the folders of older generations and, for the current one, all but the most recently opened.

    `opened` is never deleted if it belongs to the current generation, even if another machine's clock makes
    all other folders look more recent. Readers keep the files that they have open.
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
    """Lock a folder, so that only one process at a time can create, open or delete it.

    Waits at most `seconds` (default 600) for another process, then raises IndexLocked. `check` is called
    every 50 ms; it raises to stop waiting at a deadline or when the work is cancelled.
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
                    f"another process is still building {folder}", hint="try again when it has finished"
                ) from None
            time.sleep(_PAUSE)
    try:
        yield
    finally:
        lock.release()
