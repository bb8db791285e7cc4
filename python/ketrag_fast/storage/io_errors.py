"""Convert the operating system's errors into the package's: full disk, missing permissions and similar."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.memory import HINT
from ketrag_fast.errors import (
    IndexDamaged,
    IndexLocked,
    KetragError,
    OutOfMemory,
    ReadOnly,
    StorageFailed,
    StorageFull,
    TooManyFiles,
)

REPAIR: Final = "run `ketrag index` again: it rebuilds whatever is damaged"


def _numbers(*names: str) -> frozenset[int]:
    """Return the numbers of the errors that this system has."""
    return frozenset(getattr(errno, name) for name in names if hasattr(errno, name))


_MANY = _numbers("EMFILE", "ENFILE")
_FULL = _numbers("ENOSPC", "EDQUOT", "EFBIG")
_DENIED = _numbers("EACCES", "EPERM", "EROFS", "ENOTDIR", "EISDIR", "ELOOP", "ENAMETOOLONG", "ENOENT")
_FAILED = _numbers("EIO", "ENXIO", "ENODEV", "ESTALE", "ETIMEDOUT", "EREMOTEIO", "EUCLEAN")
_UNLOCKED = _numbers("ENOLCK", "EOPNOTSUPP", "ENOSYS")
_PRIMARY = 0xFF  # the low byte of SQLite's extended codes is the primary code


def convert_os_error(error: OSError | sqlite3.Error, path: Path) -> KetragError | None:
    """Return the package's error for a failed write to `path`, or None for other errors of SQLite."""
    if isinstance(error, sqlite3.Error):
        return _convert_sqlite_error(error, path)
    place, number, reason = error.filename or path, error.errno, error.strerror
    if number in (None, errno.EINTR):
        return None
    if number in _MANY:
        return too_many_files(place)
    if number in _FULL:
        return _full(f"no space left to write {place}")
    if number in _DENIED:
        return _read_only(place, reason)
    if number in _FAILED:
        return _storage_failed(place, reason)
    if number == errno.ENOMEM:
        return OutOfMemory(f"no memory is left to write {place}", hint=HINT)
    if number in _UNLOCKED:
        return StorageFailed(
            f"{place} cannot be locked: {reason}",
            hint="put the index on a local disk, or on a network drive with locks",
        )
    return StorageFailed(
        f"cannot write {place}: {reason}",
        hint="the published generation is intact: run the same command again, or use another folder",
    )


def _convert_sqlite_error(error: sqlite3.Error, path: Path) -> KetragError | None:
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & _PRIMARY if isinstance(code, int) else None
    if primary == sqlite3.SQLITE_FULL:
        return _full(f"no space left to write {path}")
    if primary == sqlite3.SQLITE_IOERR:  # SQLite also reports this if there is no room for its log
        return _full(f"no space left to write {path}, or its disk fails ({error})")
    if primary == sqlite3.SQLITE_NOMEM:
        return OutOfMemory(f"no memory is left to read or write {path}", hint=HINT)
    if primary == sqlite3.SQLITE_CANTOPEN and _no_descriptor():
        return too_many_files(path)
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return _read_only(path, error)
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return IndexLocked(f"another process is writing {path}", hint="wait for it to end")
    if isinstance(error, sqlite3.ProgrammingError):
        return None  # a bug in the calling code
    # A damaged file. Other errors (a violated constraint, invalid UTF-8, a missing table) occur with our
    # statements only in an altered one.
    return tables_damaged(path, error)


def unreadable(error: OSError, path: Path) -> KetragError:
    """Return the error for an unreadable file of a generation.

    Exhausted descriptors do not count as damage.
    """
    if error.errno in _MANY:
        return too_many_files(path)
    if error.errno == errno.ENOMEM:
        return OutOfMemory(f"no memory is left to read {path}", hint=HINT)
    if error.errno in _FAILED:
        return _storage_failed(path, error.strerror)
    return IndexDamaged(f"cannot read {path}: {error.strerror}", hint=REPAIR)


def _full(message: str) -> StorageFull:
    return StorageFull(
        message, hint="free some space and run the same command again: it continues from there"
    )


def _read_only(place: object, reason: object) -> ReadOnly:
    return ReadOnly(f"cannot write {place}: {reason}", hint="choose another folder with -i/--index")


def _storage_failed(place: object, reason: str | None) -> StorageFailed:
    return StorageFailed(
        f"the disk fails at {place}: {reason}",
        hint="the published generation is intact: run the same command again, or on another disk",
    )


def too_many_files(place: object) -> TooManyFiles:
    """Return the error for exhausted file descriptors."""
    return TooManyFiles(f"cannot open {place}: this process may open no more files")


def tables_damaged(path: Path, what: object) -> IndexDamaged:
    """Return the error for unusable tables of an index."""
    return IndexDamaged(
        f"{path} is damaged: {what}",
        hint="`ketrag doctor` checks everything; index the sources into a new folder, or restore a copy of "
        "this file. The published generation stays readable",
    )


def json_of(text: Any, path: Path, what: str) -> Any:
    """Parse JSON from a row of the tables at `path`; raises IndexDamaged if it is invalid."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise tables_damaged(path, f"{what} is not JSON: {str(error)[:200]}") from error


def _no_descriptor() -> bool:
    """Return whether the process is out of descriptors; SQLite only reports that it cannot open its file."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in _MANY
    return False


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert the errors of a block that writes below `path`."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        known = convert_os_error(error, path)
        if known is None:
            raise
        raise known from error
