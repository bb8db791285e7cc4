"""The same work on several items at once, on threads that need not come to be.

The interpreter's own pools wait for each thread to say that it has begun, for ever where the thread dies of
a lack of memory before it can. Here nobody waits for a thread but for the item that it took.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")
_LOOK: Final = 0.05
"""Seconds between two looks, where no thread says that it is done."""


def map_threads(work: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """What `work` gives for each item, in their order. The first error by place is raised at the end."""
    # All that a thread needs is made before it: one that finds no memory left can still say so.
    places = iter(list(range(len(items))))
    results: list[Any] = [None] * len(items)
    errors: list[BaseException | None] = [None] * len(items)
    done = bytearray(len(items))
    ready = _thread.allocate_lock()
    ready.acquire()

    def run() -> None:
        for at in places:
            try:
                results[at] = work(items[at])
            except BaseException as error:  # noqa: BLE001 - raised again below
                errors[at] = error
            finally:
                done[at] = 1
                with suppress(RuntimeError):  # another one said so already
                    ready.release()

    for _ in range(min(threads, len(items)) - 1):
        try:
            _thread.start_new_thread(run, ())
        except (RuntimeError, MemoryError):  # those that there are do the work
            break
    run()
    while 0 in done:
        ready.acquire(timeout=_LOOK)
    for error in errors:
        if error is not None:
            raise error
    return cast("list[R]", results)
