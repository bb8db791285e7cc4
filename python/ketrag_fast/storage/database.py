"""Open a SQLite file that one process writes while others read it, and change it atomically."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, Self

from ketrag_fast.errors import IndexLocked
from ketrag_fast.storage.io_errors import convert_os_error, tables_damaged, writing

_REFUSED: Final = (OSError, sqlite3.Error, UnicodeDecodeError)
"""Errors of SQLite calls. UnicodeDecodeError: a message contains a name that is not valid UTF-8."""
_BATCH: Final = 1024
"""Number of rows per fetch."""
_MOST_KEYS: Final = 500
"""Number of keys per query."""


def _converted(error: OSError | sqlite3.Error | UnicodeDecodeError, connection: Connection) -> Exception:
    """Return the package's error for an error in `_REFUSED`; return any other error unchanged."""
    path = connection.path
    if connection.stamp is not None and _stamp_of(path) != connection.stamp:
        return IndexLocked(
            f"{path} was changed by another process while it was read",
            hint="open the index again when the build has finished",
        )
    if isinstance(error, UnicodeDecodeError):
        return tables_damaged(path, error)
    return convert_os_error(error, path) or error


def _checked(name: str) -> Callable[..., Any]:
    """Return a method of SQLite's cursor that raises the package's errors."""
    method = getattr(sqlite3.Cursor, name)

    def call(self: CheckedCursor, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except _REFUSED as error:
            raise _converted(error, self.connection) from error

    return call


class CheckedCursor(sqlite3.Cursor):
    """A cursor that raises the package's errors: an altered file may fail at any row."""

    connection: Connection


for _name in ("execute", "executemany", "fetchone", "fetchall", "fetchmany", "__next__"):
    setattr(CheckedCursor, _name, _checked(_name))


class Connection(sqlite3.Connection):
    """A connection whose statements raise the package's errors."""

    path: Path
    stamp: tuple[int, ...] | None = None
    """Identity, at the time of opening, of a file that is read without locks."""

    def execute(self, sql: str, parameters: Any = (), /) -> CheckedCursor:
        """As sqlite3's."""
        return self.cursor(CheckedCursor).execute(sql, parameters)

    def executemany(self, sql: str, rows: Iterable[Any], /) -> CheckedCursor:
        """As sqlite3's."""
        return self.cursor(CheckedCursor).executemany(sql, rows)


def in_batches(rows: sqlite3.Cursor) -> Iterator[Any]:
    """Yield the rows of a result, fetched in batches because converting errors per row is slow."""
    while batch := rows.fetchmany(_BATCH):
        yield from batch


def select_in(
    db: sqlite3.Connection, query: str, values: Sequence[Any], keys: Sequence[Any]
) -> Iterator[list[Any]]:
    """Yield the rows that a query finds for some of the keys at a time, because SQLite limits their number.

    `KEYS` in the query is replaced by the marks of the keys, which follow the other values.
    """
    for start in range(0, len(keys), _MOST_KEYS):
        some = keys[start : start + _MOST_KEYS]
        yield db.execute(query.replace("KEYS", ",".join("?" * len(some))), (*values, *some)).fetchall()


def require_own_file(path: Path) -> None:
    """Raise IndexDamaged if something other than a regular file exists at the path.

    A pipe or a device would block, and SQLite would create and write the target of a link.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise tables_damaged(path, "not a regular file")


def _stamp_of(path: Path) -> tuple[int, ...]:
    """Return sizes and times of a file and its log, which change on every write; empty if it is missing."""
    log = path.with_name(f"{path.name}-wal")
    try:
        state = path.stat()
        return state.st_ino, state.st_size, state.st_mtime_ns, log.stat().st_size if log.exists() else 0
    except OSError:
        return ()


def reading_uri(path: Path) -> str:
    """Return the URI by which SQLite reads a file without writing anything."""
    log = path.with_name(f"{path.name}-wal")
    # An existing log must be read. Without one, `immutable` keeps SQLite from creating it.
    still = "" if log.exists() and log.stat().st_size else "&immutable=1"
    return f"{path.absolute().as_uri()}?mode=ro{still}"


def connect(path: Path, synchronous: Literal["NORMAL", "FULL"] | None) -> sqlite3.Connection:
    """Open a file with a write-ahead log.

    With FULL the last change survives a power cut; NORMAL may lose it, but leaves no partial change. None is
    for readers: nothing is written, not even a log.
    """
    require_own_file(path)
    if synchronous is None:
        place = reading_uri(path)
        stamp = _stamp_of(path) if "immutable" in place.rpartition("?")[2] else None
        db = sqlite3.connect(place, isolation_level=None, factory=Connection, uri=True)
        db.path, db.stamp = path, stamp
        return db
    db = sqlite3.connect(path, isolation_level=None, factory=Connection)
    db.path = path
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {synchronous}")
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one transaction."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite itself rolls back when the disk is full
            db.execute("ROLLBACK")
        raise


class Database:
    """An open SQLite file, usable as a context manager. Failed writes raise StorageFull or ReadOnly."""

    def __init__(
        self,
        path: Path,
        synchronous: Literal["NORMAL", "FULL"] | None,
        prepare: Callable[[sqlite3.Connection], None],
    ) -> None:
        self.path = path
        with writing(path):
            self._db = connect(path, synchronous)
            try:
                prepare(self._db)
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the last connection merges the write-ahead log into it."""
        self._db.close()

    def tables(self) -> set[str]:
        """Return the names of the tables in the file."""
        return {
            str(row[0]) for row in self._db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in one transaction."""
        with writing(self.path), transaction(self._db):
            yield

    @contextmanager
    def savepoint(self, undoing: type[Exception]) -> Iterator[None]:
        """Run the block within a transaction; undo its changes alone if it raises `undoing`."""
        self._db.execute("SAVEPOINT part")
        try:
            yield
        except undoing:
            self._db.execute("ROLLBACK TO part")
            raise
        self._db.execute("RELEASE part")
