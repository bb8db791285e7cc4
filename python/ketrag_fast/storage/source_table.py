"""The sources of an index, and how their files were read, by which a build recognises unchanged files.

The rows of sources have checksums, so that a build never reads from an altered path. A row of a file only
saves parsing the file again; its documents have their own checksums.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.checksum import bytes_digest
from ketrag_fast.storage.database import Database
from ketrag_fast.storage.io_errors import tables_damaged
from ketrag_fast.storage.layout import FORMAT, incompatible
from ketrag_fast.types import Failure

_READINGS: Final = """
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
_COLUMNS: Final = "source, file, size, changed, digest, reader, documents, failures"
_SOURCES: Final = (
    "SELECT number, CAST(kind AS BLOB), CAST(label AS BLOB), CAST(spec AS BLOB) FROM sources ORDER BY number"
)

FileKey = tuple[int, str]
"""The number of a source, and the id of a file in that source."""


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A registered source."""

    number: int
    kind: str
    label: str
    spec: str


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


def open_sources(path: Path) -> SourceTable:
    """Open the tables of an index to read its sources, without importing what documents need.

    Raises IndexIncompatible for another format.
    """
    return SourceTable(path, None, partial(_require_format, path))


def _require_format(path: Path, db: sqlite3.Connection) -> None:
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    if found != FORMAT:
        raise incompatible(path, found)


class SourceTable(Database):
    """The part of the open tables that registers sources."""

    def sources(self) -> list[SourceRow]:
        """Return the sources in order of registration. Raises IndexDamaged if a row is altered."""
        wrong = self._altered_sources()
        if wrong:
            listed = ", ".join(f"{number} ({label})" for number, label in list(wrong.items())[:3])
            raise IndexDamaged(
                f"{self.path} is damaged: the rows of these sources are altered: {listed}",
                hint="name all sources of the index again: `ketrag index SOURCES... --replace`. Documents "
                "that a program passed must be passed again; the published generation stays readable",
            )
        rows = self._db.execute("SELECT number, kind, label, spec FROM sources ORDER BY number")
        return [SourceRow(*self._texts(row, "a source")) for row in rows]

    def _altered_sources(self) -> dict[int, str]:
        """Return the numbers and labels of the sources whose row does not match its checksum."""
        seals = dict(self._db.execute("SELECT CAST(number AS INTEGER), CAST(seal AS BLOB) FROM source_seals"))
        rows = {row[0]: row for row in self._db.execute(_SOURCES)}
        wrong = {
            number: repr((row[2] or b"").decode("utf-8", "replace"))[:80]
            for number, row in rows.items()
            if seals.get(number) != _seal_of(row).encode()
        }
        return wrong | dict.fromkeys(sorted(seals.keys() - rows.keys()), "missing")

    def drop_altered_sources(self) -> None:
        """Delete altered rows of sources, for a build that is given all sources again.

        Must run in a transaction; by its end no document may refer to a deleted source.
        """
        wrong = [(number,) for number in self._altered_sources()]
        if wrong:
            self._db.execute("PRAGMA defer_foreign_keys = ON")
            self._db.execute("REINDEX sources")  # SQLite's index may still have the old value
            self._db.executemany("DELETE FROM sources WHERE number = ?", wrong)
            self._db.executemany("DELETE FROM source_seals WHERE number = ?", wrong)

    def _texts(self, row: tuple[Any, ...], what: str) -> tuple[Any, ...]:
        """Check that the last three values of a row are strings, which SQLite does not enforce; return it."""
        if not all(isinstance(value, str) for value in row[-3:]):
            raise tables_damaged(self.path, f"the row of {what} is invalid: {row!r:.200}")
        return row

    def add_sources(self, sources: Iterable[tuple[str, str, str]]) -> None:
        """Register sources (kind, label, spec) once. A path replaces the placeholder of a merge for it."""
        for kind, label, spec in sources:
            if kind == "path":
                self._db.execute(
                    "DELETE FROM source_seals WHERE number IN"
                    " (SELECT number FROM sources WHERE kind = 'documents' AND spec = ?)",
                    (spec,),
                )
                self._db.execute(
                    "UPDATE OR IGNORE sources SET kind = 'path', label = ?"
                    " WHERE kind = 'documents' AND spec = ?",
                    (label, spec),
                )
            self._db.execute(
                "INSERT INTO sources (kind, label, spec) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (kind, label, spec),
            )
        seal_sources(self._db)

    def remove_source(self, number: int) -> None:
        """Delete a source whose documents have been deleted."""
        self._db.execute("DELETE FROM sources WHERE number = ?", (number,))
        self._db.execute("DELETE FROM source_seals WHERE number = ?", (number,))

    def program_source(self) -> int | None:
        """Return the number of the source for documents added by a program, or None."""
        own = (row.number for row in self.sources() if (row.kind, row.spec) == ("documents", ""))
        return next(own, None)

    def origins(self, names: Iterable[str] | None = None) -> dict[str, str]:
        """Map document ids to the path or glob of their source, for all documents or the given ids.

        Documents added by a program are omitted. Raises IndexDamaged if the row of a source is altered.
        """
        self.sources()
        query = "SELECT id, spec FROM documents JOIN sources ON number = source WHERE spec != ''"
        if names is None:
            return {str(name): str(spec) for name, spec in self._db.execute(query)}
        found = {}
        for name in names:
            row = self._db.execute(f"{query} AND id = ?", (name,)).fetchone()
            if row is not None:
                found[name] = str(row[1])
        return found

    def folder_descriptions(self) -> dict[str, str]:
        """Return folder descriptions by path; the key "" has the description of the whole index."""
        if "descriptions" not in self.tables():
            return {}
        return {
            str(path): str(text) for path, text in self._db.execute("SELECT path, text FROM descriptions")
        }

    def file_readings(self) -> dict[FileKey, FileReading]:
        """Return the stored readings of files in converted formats.

        Invalid rows, and those of earlier versions without content hashes, are skipped: their files are read
        again.
        """
        if "file_readings" not in self.tables():
            return {}
        found: dict[FileKey, FileReading] = {}
        query = f"SELECT {_COLUMNS} FROM file_readings"  # noqa: S608 - ours
        for source, file, size, changed, digest, reader, documents, failures in self._db.execute(query):
            try:
                pairs = [_pair(value) for value in json.loads(documents)]
                parts = tuple(Failure(*map(str, row)) for row in json.loads(failures))
            except (TypeError, ValueError, RecursionError):
                continue
            if all(isinstance(value, str) for value in (file, digest, reader, *chain.from_iterable(pairs))):
                ids, contents = tuple(name for name, _ in pairs), tuple(content for _, content in pairs)
                found[source, file] = FileReading(size, changed, digest, reader, ids, parts, contents)
        return found

    def set_file_readings(self, rows: Mapping[FileKey, FileReading], gone: Iterable[FileKey]) -> None:
        """Store readings of files, and delete the readings of the files in `gone`."""
        self._db.execute(_READINGS)
        self._db.executemany("DELETE FROM file_readings WHERE source = ? AND file = ?", gone)
        self._db.executemany(
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


def _pair(value: Any) -> tuple[Any, Any]:
    """Return an id and a content hash. Raises ValueError for a value that is not a list of two."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"expected [id, content hash], got {value!r:.80}")
    return value[0], value[1]


def seal_sources(db: sqlite3.Connection) -> None:
    """Add the missing checksums of sources."""
    seals = dict(db.execute("SELECT number, seal FROM source_seals").fetchall())
    rows = db.execute(_SOURCES).fetchall()
    new = ((row[0], _seal_of(row)) for row in rows if row[0] not in seals)
    db.executemany("INSERT INTO source_seals VALUES (?, ?)", new)


def _seal_of(row: tuple[Any, ...]) -> str:
    """Return the checksum of a row of `_SOURCES`, whose values may have any type."""
    number, *texts = row
    return bytes_digest([str(number).encode(), *(text or b"" for text in texts)])
