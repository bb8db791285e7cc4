"""Convert out-of-memory errors of Python, NumPy and the operating system to the package's error."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

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
