"""Small files that somebody else may have put there: read whole, but never a pipe, a device or too much."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

MOST: Final = 1 << 26
"""Bytes of a manifest or a file of settings; the largest real ones have thousands."""


def read_regular(path: Path, most: int = MOST) -> bytes:
    """The bytes of a regular file. OSError for anything else and for more than `most` bytes: a pipe would
    be waited for, and a device need not end.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as file:  # noqa: PTH123 - a handle is no path
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        # A read of so many bytes would first ask for memory of so many: the size says what is due.
        data = file.read(min(status.st_size, most) + 1)
        while len(data) <= most and (more := file.read(1 << 16)):
            data += more
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))
    return data
