"""The one place where the system's errors become the package's: full disk, no right to write."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ketrag_fast.errors import IndexDamaged, IndexLocked, KetragError, ReadOnly, StorageFull

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG} if hasattr(errno, "EDQUOT") else {errno.ENOSPC})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_PRIMARY = 0xFF  # SQLite's extended codes carry the primary one in their low byte


def typed(error: OSError | sqlite3.Error, path: Path) -> KetragError | None:
    """The package's error for a failure while writing to `path`, or None if it is another matter."""
    if isinstance(error, sqlite3.Error):
        return _typed_sqlite(error, path)
    place = error.filename or path
    if error.errno in _FULL:
        return StorageFull(
            f"no space left to write {place}",
            hint="free some space and run the same command again: it goes on from there",
        )
    if error.errno in _DENIED:
        return ReadOnly(
            f"cannot write {place}: {error.strerror}", hint="choose another folder with -i/--index"
        )
    if error.errno in (errno.ENOTDIR, errno.EISDIR):
        return ReadOnly(
            f"cannot write {place}: {error.strerror}", hint="the index must be a folder of its own"
        )
    return None


def _typed_sqlite(error: sqlite3.Error, path: Path) -> KetragError | None:
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & _PRIMARY if isinstance(code, int) else None
    if primary == sqlite3.SQLITE_FULL:
        return StorageFull(
            f"no space left to write {path}",
            hint="free some space and run the same command again: it goes on from there",
        )
    if primary == sqlite3.SQLITE_IOERR:  # what SQLite says where its log or index of it finds no room
        return StorageFull(
            f"no space left to write {path}, or its disk fails ({error})",
            hint="free some space and run the same command again: it goes on from there",
        )
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return ReadOnly(f"cannot write {path}: {error}", hint="choose another folder with -i/--index")
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return IndexLocked(f"another process is writing {path}", hint="wait for it to end")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return IndexDamaged(
            f"{path} is damaged: {error}",
            hint="move the folder away and index the sources again; its generations stay readable",
        )
    return None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Everything inside writes below `path`; what fails for want of room or rights is typed."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        known = typed(error, path)
        if known is None:
            raise
        raise known from error
