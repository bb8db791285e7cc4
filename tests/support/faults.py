"""Faults that tests of indexes inject: a changed bit, a changed row, a build that is stopped."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ketrag_fast.base.progress import Event


def flip(file: Path, at: int | None = None) -> None:
    """Change one bit, by default in the middle, of a file that from then on shares nothing with a link."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 1
    file.unlink()
    file.write_bytes(data)


def run_sql(index: Path, *statements: str) -> None:
    """Change the tables of an index as another program would."""
    with closing(sqlite3.connect(index / "index.sqlite")) as db, db:
        for statement in statements:
            db.execute(statement)


def stop_at(stage: str) -> Callable[[Event], bool]:
    """Return a progress callback that stops a build when a stage begins."""
    return lambda event: event.stage != stage
