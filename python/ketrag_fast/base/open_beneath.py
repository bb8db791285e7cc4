"""Open a file of a source folder without following links out of it, even if they are swapped meanwhile.

A check of a path followed by `open` reads whatever the path leads to at the second moment. On Unix, the core
opens each folder on the way relative to the one before it, without following links. On Windows, the identity
of the opened file is compared with that of the file inside the folder.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO, Final

from ketrag_fast._core import open_beneath

_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
)
HAS_OPENAT: Final = sys.platform != "win32"
_OUTSIDE: Final = "a symbolic link leads out of the source, or was changed while the file was opened"


def open_regular(path: Path, root: Path | None = None) -> BinaryIO:
    """Open a regular file for reading; with `root`, only one inside that folder after all links.

    Raises OSError, also for a pipe or a device, which might block.
    """
    if root is not None and HAS_OPENAT:
        handle = _open_below(path, root)
    else:
        handle = os.open(path, _FLAGS) if root is None else _open_checked(path, root)
    try:
        is_checked = root is not None and HAS_OPENAT  # by the core
        if not is_checked and not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return open(handle, "rb")  # noqa: PTH123 - a handle, not a path
    except BaseException:
        os.close(handle)
        raise


def _open_below(path: Path, root: Path) -> int:
    handle = open_beneath(path, root)
    if handle is None or handle < 0:
        code = errno.ENOSYS if handle is None else -handle
        why = {errno.ELOOP: _OUTSIDE, errno.EINVAL: "not a regular file"}.get(code) or os.strerror(code)
        raise OSError(code, why, str(path))
    return handle


def _open_checked(path: Path, root: Path) -> int:
    """Open a file and then check, by its identity, that it is the one inside the folder."""
    handle = os.open(path, _FLAGS)
    try:
        real, top = Path(os.path.realpath(path)), Path(os.path.realpath(root))
        is_inside = real.is_relative_to(top) and real != top
        if not is_inside or not os.path.samestat(os.fstat(handle), os.lstat(real)):
            raise OSError(errno.ELOOP, _OUTSIDE, str(path))
    except BaseException:
        os.close(handle)
        raise
    return handle
