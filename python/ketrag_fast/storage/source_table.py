"""The sources of an index. Their rows have checksums, so that a build never reads from an altered path."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.records import dataclass
from ketrag_fast.storage.checksum import bytes_digest
from ketrag_fast.storage.io_errors import json_of, tables_damaged
from ketrag_fast.storage.known_files import FileTable
from ketrag_fast.storage.layout import FORMAT, incompatible

_SOURCES: Final = (
    "SELECT number, CAST(kind AS BLOB), CAST(label AS BLOB), CAST(spec AS BLOB) FROM sources ORDER BY number"
)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A registered source."""

    number: int
    kind: str
    label: str
    spec: str


def open_sources(path: Path, *, writable: bool = False) -> SourceTable:
    """Open the tables of an index to read its sources, without importing what documents need.

    Raises IndexIncompatible for another format.
    """
    return SourceTable(path, "NORMAL" if writable else None, partial(_require_format, path))


def _require_format(path: Path, db: sqlite3.Connection) -> None:
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    if found != FORMAT:
        raise incompatible(path, found)


class SourceTable(FileTable):
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
        self.drop_known_files(number)
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

    def documents_of_paths(self, paths: Iterable[str]) -> dict[str, list[str]]:
        """Return the ids of the stored documents of files, by path; unknown files are left out."""
        wanted = frozenset(paths)
        found = {}
        for row in self.known_files():
            if row.path in wanted and not row.is_folder:
                end = self.next_place(row.source, row.place)
                query = (
                    "SELECT id FROM documents WHERE source = ? AND place >= ? AND (? IS NULL OR place < ?)"
                )
                rows = self._db.execute(query, (row.source, row.place, end, end))
                found[row.path] = [str(name) for (name,) in rows]
        return found

    def build_settings(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the values of some settings of the last build; those that are not stored are left out."""
        found = {}
        for name in names:
            row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
            if row is not None:
                found[name] = json_of(row[0], self.path, f"setting {name!r}")
        return found

    def folder_descriptions(self) -> dict[str, str]:
        """Return folder descriptions by path; the key "" has the description of the whole index."""
        if "descriptions" not in self.tables():
            return {}
        return {
            str(path): str(text) for path, text in self._db.execute("SELECT path, text FROM descriptions")
        }


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
