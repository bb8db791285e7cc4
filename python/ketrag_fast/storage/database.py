"""One SQLite file that is written while others may read it: how it is opened, and all-or-nothing changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from ketrag_fast.storage.faults import writing


def connect(path: Path, synchronous: Literal["NORMAL", "FULL"]) -> sqlite3.Connection:
    """An open file with a write-ahead log. FULL keeps the last change through a power cut; NORMAL may undo
    it, and never tears one.
    """
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {synchronous}")
    except BaseException:
        db.close()
        raise
    return db


class Database:
    """An open file that closes itself after a `with`. A full disk and the like are StorageFull, ReadOnly."""

    def __init__(
        self,
        path: Path,
        synchronous: Literal["NORMAL", "FULL"],
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Also folds the write-ahead log into the file, where nobody else reads it."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        with writing(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # SQLite itself rolls back when the disk is full
                    self._db.execute("ROLLBACK")
                raise
