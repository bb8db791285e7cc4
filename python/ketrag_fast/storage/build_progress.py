"""The progress of a running build as a small file, so that other processes can show it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any, Final

from ketrag_fast.base.progress import Callback, Event
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.storage.layout import Layout

NAME: Final = "progress.json"
"""File in `work/`."""
_FIRST: Final = 1.0
"""Seconds before the file is first written: most builds are shorter."""
_PAUSE: Final = 0.5
_STALE: Final = 60.0
"""Seconds after which the file of a build that was killed is ignored."""
_MOST: Final = 10_000


@contextmanager
def progress_shown(
    layout: Layout, callback: Callback | None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callback]:
    """Yield a progress callback that also writes each event to a file; the file is deleted at the end."""
    shown = _ProgressFile(layout, callback, clock)
    try:
        yield shown
    finally:
        shown.remove()


def read_progress(layout: Layout) -> dict[str, Any] | None:
    """Return the last event of the running build, with `started`; None if no build has reported yet."""
    path = layout.work / NAME
    try:
        if abs(time.time() - path.stat().st_mtime) > _STALE:
            return None
        data = json.loads(read_regular(path, _MOST))
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and isinstance(data.get("stage"), str) else None


class _ProgressFile:
    """Forwards progress events, and writes the latest event to the file twice a second."""

    def __init__(self, layout: Layout, callback: Callback | None, clock: Callable[[], float]) -> None:
        self._path = layout.work / NAME
        self._callback, self._clock = callback, clock
        self._next = clock() + _FIRST
        self._started = time.time()
        self._written = False

    def __call__(self, event: Event) -> bool | None:
        """Forward the event; write it if half a second has passed."""
        result = None if self._callback is None else self._callback(event)
        if self._clock() >= self._next:
            self._next = self._clock() + _PAUSE
            self._write({**asdict(event), "started": self._started})
        return result

    def remove(self) -> None:
        """Remove the file."""
        if self._written:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _write(self, data: dict[str, Any]) -> None:
        """Replace the file. A failure is ignored: the build does not depend on it."""
        aside = self._path.with_name(f"{NAME}.tmp")
        with suppress(OSError):
            self._written = True
            aside.unlink(missing_ok=True)
            opened = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(opened, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
                file.write(json.dumps(data))
            aside.replace(self._path)
