"""Run the same function on several items in threads, even if some threads fail to start.

The standard library's pools wait for each thread to report its start, forever if the thread dies from lack of
memory before that. Here the caller waits only for the items that threads have taken.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")
_LOOK: Final = 0.05
"""Seconds between two checks if no thread reports completion."""


def map_threads(work: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """Return the results of `work` for each item, in order. The first error by index is raised at the end."""
    # Everything that a thread needs is allocated first, so that it can report that memory is exhausted.
    # Without the GIL two threads can get the same item from an iterator, but not from `pop`. None ends a
    # thread.
    places = [None] * max(threads, 1) + list(reversed(range(len(items))))
    results: list[Any] = [None] * len(items)
    errors: list[BaseException | None] = [None] * len(items)
    done = bytearray(len(items))
    ready = _thread.allocate_lock()
    ready.acquire()

    def run() -> None:
        while (at := places.pop()) is not None:
            try:
                results[at] = work(items[at])
            except BaseException as error:  # noqa: BLE001 - raised again below
                errors[at] = error
            finally:
                done[at] = 1
                with suppress(RuntimeError):  # another thread released it already
                    ready.release()

    for _ in range(min(threads, len(items)) - 1):
        try:
            _thread.start_new_thread(run, ())
        except (RuntimeError, MemoryError):  # the threads that started do the work
            break
    run()
    while 0 in done:
        ready.acquire(timeout=_LOOK)
    for error in errors:
        if error is not None:
            raise error
    return cast("list[R]", results)
