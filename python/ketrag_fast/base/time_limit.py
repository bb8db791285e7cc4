"""Limit the time of calls that may never return, such as those that look up files of a disk that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

_T = TypeVar("_T")
_SLICE: Final = 0.5
_COMPUTED: Final = 0.01
"""Seconds between two looks at the processor time of the process, and those that it computes at least."""
_hanging: Final[dict[str, threading.Thread]] = {}
"""By name, threads whose calls did not return in time; there is at most one for each name."""


def in_time(
    call: Callable[[], _T], seconds: float, busy_seconds: float = 0.0, name: str | None = None
) -> _T | None:
    """Return what a call returns, or None if that takes more than some seconds; the call then goes on.

    It gets at most `busy_seconds` more while this process computes: then no disk hangs, the machine is busy.
    It runs on another thread, which does not keep the process from ending. Its exception is raised. While an
    earlier call with the same `name` hangs, no further one is made, and None is returned at once: a service
    whose disk does not answer would otherwise wait for each request, and leave a thread behind for each.

    Examples:
        >>> in_time(lambda: 3, 1.0)
        3
    """
    if name is not None and name in _hanging:
        if _hanging[name].is_alive():
            return None
        _hanging.pop(name, None)
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name="ketrag-limited")
    thread.start()
    thread.join(seconds)
    end, before = time.monotonic() + busy_seconds, -1.0
    while thread.is_alive() and time.monotonic() < end and (now := time.process_time()) > before + _COMPUTED:
        before = now
        thread.join(_SLICE)
    if errors:
        raise errors[0]
    if name is not None and not results:
        _hanging[name] = thread
    return results[0] if results else None
