"""Checksums of the registered sources, so that a build never reads from an altered path."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from ketrag_fast.storage.checksum import bytes_digest

SOURCE_ROWS: Final = (
    "SELECT number, CAST(kind AS BLOB), CAST(label AS BLOB), CAST(spec AS BLOB) FROM sources ORDER BY number"
)


def seal_sources(db: sqlite3.Connection) -> None:
    """Add the missing checksums of sources."""
    seals = dict(db.execute("SELECT number, seal FROM source_seals").fetchall())
    rows = db.execute(SOURCE_ROWS).fetchall()
    new = ((row[0], source_seal(row)) for row in rows if row[0] not in seals)
    db.executemany("INSERT INTO source_seals VALUES (?, ?)", new)


def source_seal(row: tuple[Any, ...]) -> str:
    """Return the checksum of a row of `SOURCE_ROWS`, whose values may have any type."""
    number, *texts = row
    return bytes_digest([str(number).encode(), *(text or b"" for text in texts)])
