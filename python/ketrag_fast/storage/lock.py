"""Who builds: the lock of the single builder, the progress it shows, and locks of cached allowed indexes.

Readers need no lock.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.base.progress import Callback, Event
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import IndexLocked
from ketrag_fast.records import asdict
from ketrag_fast.storage.durable import discard_folder
from ketrag_fast.storage.generation import current_number
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import Layout

PROGRESS: Final = "progress.json"
"""File in `work/` with the last event of the running build."""
_FIRST: Final = 1.0
"""Seconds before the file is first written: most builds are shorter."""
_BETWEEN: Final = 0.5
_STALE: Final = 60.0
"""Seconds after which the file of a build that was killed is ignored."""
_MOST: Final = 10_000
KEPT_ALLOWED: Final = 32
"""Maximum number of allowed indexes per generation; the least recently opened are deleted."""
_WAIT: Final = 600.0
"""Seconds to wait for another process that builds the same allowed index, without an earlier deadline."""
_PAUSE: Final = 0.05
"""Seconds between two attempts."""


@contextmanager
def builder_lock(layout: Layout) -> Iterator[None]:
    """Lock the index for building, or raise IndexLocked at once. A dead process no longer holds its lock."""
    with writing(layout.root):
        lock = _core.lock_file(layout.lock)
    if lock is None:
        owner = read_owner(layout)
        raise IndexLocked(
            f"another process is building the index in {layout.root}{f' ({owner})' if owner else ''}",
            hint="wait until it has finished; queries on the published generation still work",
        )
    try:
        about = {"pid": os.getpid(), "host": _host()}
        with writing(layout.root):
            layout.owner.write_text(json.dumps(about), encoding="utf-8", newline="\n")
        yield
    finally:
        try:
            # If removal fails, the next holder overwrites it.
            with suppress(OSError):
                layout.owner.unlink(missing_ok=True)
        finally:
            lock.release()


def is_building(layout: Layout) -> bool:
    """Return whether a process is building the index; also True if that cannot be found out."""
    try:
        lock = _core.lock_file(layout.lock)
    except OSError:
        return True
    if lock is None:
        return True
    lock.release()
    return False


def _host() -> str:
    """Return the name of this machine; `platform` takes longer to import than a lock to take."""
    if hasattr(os, "uname"):
        return str(os.uname().nodename)
    import platform

    return platform.node()


def read_owner(layout: Layout) -> str | None:
    """Return which process claims to build, for example `process 12 on host`; None if unknown."""
    try:
        owner = json.loads(read_regular(layout.owner))
        return f"process {int(owner['pid'])} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


@contextmanager
def progress_shown(
    layout: Layout, callback: Callback | None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callback]:
    """Yield a progress callback that also writes the latest event to a file, for other processes to show.

    The file is written twice a second, and deleted at the end. A failure to write it is ignored.
    """
    path = layout.work / PROGRESS
    aside = path.with_name(f"{PROGRESS}.tmp")
    due, started, is_written = clock() + _FIRST, time.time(), False

    def show(event: Event) -> bool | None:
        nonlocal due, is_written
        result = None if callback is None else callback(event)
        if clock() >= due:
            due, is_written = clock() + _BETWEEN, True
            with suppress(OSError):
                aside.unlink(missing_ok=True)
                opened = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(opened, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
                    file.write(json.dumps({**asdict(event), "started": started}))
                aside.replace(path)
        return result

    try:
        yield show
    finally:
        if is_written:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def read_progress(layout: Layout) -> dict[str, Any] | None:
    """Return the last event of the running build, with `started`; None if no build has reported yet."""
    path = layout.work / PROGRESS
    try:
        if abs(time.time() - path.stat().st_mtime) > _STALE:
            return None
        data = json.loads(read_regular(path, _MOST))
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and isinstance(data.get("stage"), str) else None


@contextmanager
def alone(
    folder: Path, seconds: float | None = None, check: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Lock the folder of an allowed index, so that only one process can create, open or delete it.

    Waits at most `seconds` (default 600) for another process, then raises IndexLocked. `check` is called
    every 50 ms; it raises to stop waiting at a deadline or when the work is cancelled.
    """
    end = time.monotonic() + (_WAIT if seconds is None else seconds)
    while True:
        with writing(folder.parent):
            lock = _core.lock_file(_lock_of(folder))
        if lock is not None:
            break
        check()
        if time.monotonic() >= end:
            raise IndexLocked(
                f"another process is still building {folder}", hint="try again when it has finished"
            )
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        lock.release()


def drop_old(layout: Layout, opened: Path | None = None) -> None:
    """Delete allowed indexes of older generations and, for the current one, all but the most recently opened.

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
    for folder in {*folders} - {*own[:KEPT_ALLOWED]}:
        with suppress(IndexLocked), alone(folder, 0):
            discard_folder(folder)
            if folder not in own:  # older generations are no longer opened
                _lock_of(folder).unlink(missing_ok=True)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")
