"""Marks an update before a query that took too long, so that the next queries do not try it again at once."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

from ketrag_fast.storage.layout import Layout

PAUSE: Final = 600.0
"""Seconds until a query tries again. A build of the index ends the pause."""


def mark_slow_update(layout: Layout) -> None:
    """Note that an update was stopped now; does nothing if the folder cannot be written."""
    with suppress(OSError):
        layout.slow_update.touch()


def is_update_slow(layout: Layout) -> bool:
    """Return whether an update was stopped within `PAUSE` seconds, and no generation was published since."""
    try:
        stopped = layout.slow_update.stat().st_mtime
        published = layout.current.stat().st_mtime
    except OSError:
        return False
    return published < stopped and abs(time.time() - stopped) < PAUSE
