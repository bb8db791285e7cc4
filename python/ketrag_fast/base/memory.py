"""When memory is exhausted: one error of the package, and threads whose caller never waits forever.

The standard library's pools wait for each thread to report its start, forever if the thread dies from lack of
memory before that. `map_threads` waits only for the items that threads have taken.
"""

from __future__ import annotations

import _thread
import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar, cast

from ketrag_fast.errors import KetragError, OutOfMemory

HINT: Final = (
    "give this process more memory (`ulimit -v`, the container's limit), or close other programs; the index "
    "is intact, and the same build continues from there"
)
_UNMAPPED: Final = ("cannot allocate memory", "failed to map segment")
"""Messages of the dynamic loader when a library cannot be mapped."""


def lacking(error: BaseException) -> bool:
    """Return whether an error means that memory is exhausted."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError):
        return any(text in str(error).lower() for text in _UNMAPPED)
    if isinstance(error, RuntimeError):
        return str(error) == "can't start new thread"
    return isinstance(error, MemoryError)


@contextmanager
def enough_memory() -> Iterator[None]:
    """Convert out-of-memory errors of a block to OutOfMemory. Also usable as a decorator."""
    try:
        yield
    except KetragError as error:
        if isinstance(error, OutOfMemory) and error.hint is None:
            error.hint = HINT
        raise
    except (MemoryError, OSError, ImportError, RuntimeError) as error:
        if not lacking(error):
            raise
        raise OutOfMemory("this machine has too little free memory", hint=HINT) from error


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
