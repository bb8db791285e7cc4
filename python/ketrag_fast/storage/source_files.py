"""The table of source files read so far, by which a build recognises unchanged files.

A row only saves parsing a file again. The documents of the file have their own checksums.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ketrag_fast.types import Failure

_SCHEMA = """
CREATE TABLE IF NOT EXISTS file_readings (
  source    INTEGER NOT NULL,            -- number of the source
  file      TEXT NOT NULL,               -- id of the file in the source
  size      INTEGER NOT NULL,            -- bytes
  changed   INTEGER NOT NULL,            -- time of the last change in ns; 0 if it was changed just before
  digest    TEXT NOT NULL,               -- hash of the content
  reader    TEXT NOT NULL,               -- versions and settings of the readers
  documents TEXT NOT NULL,               -- JSON: [[id, content hash], ...], the documents in order
  failures  TEXT NOT NULL,               -- JSON: [[document, code, message], ...], parts that were not read
  PRIMARY KEY (source, file)
) STRICT, WITHOUT ROWID
"""
_COLUMNS = "source, file, size, changed, digest, reader, documents, failures"

FileKey = tuple[int, str]
"""The number of a source, and the id of a file in that source."""


@dataclass(frozen=True, slots=True)
class FileReading:
    """The size, time and hash of a file when it was read, and its documents and failures.

    `contents` has the content hashes of the documents.
    """

    size: int
    changed: int
    digest: str
    reader: str
    documents: tuple[str, ...]
    failures: tuple[Failure, ...] = ()
    contents: tuple[str, ...] = ()


def load_file_readings(db: sqlite3.Connection) -> dict[FileKey, FileReading]:
    """Return all valid rows. Invalid rows are skipped, so that their files are read again.

    Rows without content hashes, which earlier versions stored, are skipped too.
    """
    if db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'file_readings'").fetchone() is None:
        return {}
    found: dict[FileKey, FileReading] = {}
    for source, file, size, changed, digest, reader, documents, failures in db.execute(
        f"SELECT {_COLUMNS} FROM file_readings"  # noqa: S608 - ours
    ):
        try:
            pairs = [_pair(value) for value in json.loads(documents)]
            parts = tuple(Failure(*map(str, row)) for row in json.loads(failures))
        except (TypeError, ValueError, RecursionError):
            continue
        if all(isinstance(value, str) for value in (file, digest, reader, *chain.from_iterable(pairs))):
            ids, contents = tuple(name for name, _ in pairs), tuple(content for _, content in pairs)
            found[source, file] = FileReading(size, changed, digest, reader, ids, parts, contents)
    return found


def _pair(value: Any) -> tuple[Any, Any]:
    """Return an id and a content hash. Raises ValueError for a value that is not a list of two."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"expected [id, content hash], got {value!r:.80}")
    return value[0], value[1]


def store_file_readings(
    db: sqlite3.Connection, rows: Mapping[FileKey, FileReading], gone: Iterable[FileKey]
) -> None:
    """Insert or replace rows, and delete the rows of the files in `gone`."""
    db.execute(_SCHEMA)
    db.executemany("DELETE FROM file_readings WHERE source = ? AND file = ?", gone)
    db.executemany(
        f"INSERT OR REPLACE INTO file_readings ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - ours
        (
            (
                *key,
                row.size,
                row.changed,
                row.digest,
                row.reader,
                json.dumps(list(zip(row.documents, row.contents, strict=True))),
                json.dumps([(one.document, one.code, one.message) for one in row.failures]),
            )
            for key, row in rows.items()
        ),
    )
