"""Limit the time of calls that may never return, such as those that look up files of a disk that hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def in_time(call: Callable[[], _T], seconds: float) -> _T | None:
    """Return what a call returns, or None if that takes more than some seconds; the call then goes on.

    It runs on another thread, which does not keep the process from ending. Its exception is raised.

    Examples:
        >>> in_time(lambda: 3, 1.0)
        3
    """
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
    if errors:
        raise errors[0]
    return results[0] if results else None
