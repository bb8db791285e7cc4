"""What the interpreter, NumPy and the system say when memory ends, as the package's one error."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ketrag_fast.errors import KetragError, OutOfMemory

HINT: Final = (
    "give this process more (`ulimit -v`, the container's limit), or close what else is open; an index stays "
    "whole, and the same build goes on from there"
)
_UNMAPPED: Final = ("cannot allocate memory", "failed to map segment")
"""What the system's loader says of a library for which no room is left."""


def lacking(error: BaseException) -> bool:
    """Whether this is how memory that ends is said."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError):
        return any(text in str(error).lower() for text in _UNMAPPED)
    if isinstance(error, RuntimeError):
        return str(error) == "can't start new thread"
    return isinstance(error, MemoryError)


@contextmanager
def enough_memory() -> Iterator[None]:
    """OutOfMemory for whatever says so inside. Also a decorator."""
    try:
        yield
    except KetragError as error:
        if isinstance(error, OutOfMemory) and error.hint is None:
            error.hint = HINT
        raise
    except (MemoryError, OSError, ImportError, RuntimeError) as error:
        if not lacking(error):
            raise
        raise OutOfMemory("this machine's memory does not suffice", hint=HINT) from error
