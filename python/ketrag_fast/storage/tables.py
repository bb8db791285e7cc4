"""The transactional part of an index in one SQLite file: sources, documents, failures, settings and runs.

Rankings never open it; the paths of hits are read from it. The holder of the builder's lock is the only
writer.
"""

from __future__ import annotations

import glob
import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.checksum import PURGED, hash_purged_id, text_digest
from ketrag_fast.storage.database import Database
from ketrag_fast.storage.document_table import DocumentTable
from ketrag_fast.storage.document_texts import TEXTS_SCHEMA
from ketrag_fast.storage.io_errors import json_of, tables_damaged
from ketrag_fast.storage.layout import FORMAT, incompatible
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import LEFT_OUT

_SCHEMA = """
CREATE TABLE sources (
  number INTEGER PRIMARY KEY,            -- order of registration, which is the documents' first order
  kind   TEXT NOT NULL,                  -- 'path', or 'documents' for those that cannot be read again
  label  TEXT NOT NULL,                  -- as it was typed
  spec   TEXT NOT NULL,                  -- absolute path or glob; '' for those handed over by a program
  UNIQUE (kind, spec)
) STRICT;
CREATE TABLE documents (
  key      INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  source   INTEGER NOT NULL REFERENCES sources (number),
  place    INTEGER NOT NULL,             -- order within the source
  content  BLOB NOT NULL,                -- hash of id, title, text, metadata, and locators if there are any
  title    TEXT NOT NULL,
  metadata TEXT NOT NULL,                -- JSON
  chars    INTEGER NOT NULL              -- code points of the text
) STRICT;
CREATE INDEX documents_order ON documents (source, place);
CREATE TABLE failures (document TEXT NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL) STRICT;
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE runs (
  number INTEGER PRIMARY KEY, started TEXT NOT NULL, seconds REAL NOT NULL,
  generation INTEGER NOT NULL, changed INTEGER NOT NULL, report TEXT NOT NULL
) STRICT;
CREATE TABLE locators (
  document INTEGER PRIMARY KEY REFERENCES documents (key) ON DELETE CASCADE,
  data     TEXT NOT NULL                 -- JSON: [[start, end, kind, value], ...]
) STRICT;
CREATE TABLE document_state (token BLOB NOT NULL) STRICT;  -- random, a new one whenever documents change
INSERT INTO document_state VALUES (randomblob(16));
CREATE TABLE removed (id TEXT PRIMARY KEY) STRICT;  -- removed by hand; skipped while their source has them
CREATE TABLE source_seals (              -- checksums of `sources`: an altered path would be read instead
  number INTEGER PRIMARY KEY,            -- of the source
  seal   TEXT NOT NULL                   -- hash of its number, kind, label and spec
) STRICT;
"""
_PENDING_PURGE = "\0pending purge"
"""Name of the setting that a purge stores until it is complete; no setting of a build has this name."""

_MARK: Final = ":"
"""First character of the names of checksums in `settings`; no setting of a build begins with it."""
_DECLARED: Final = f"{_MARK}declarations"
_OF_A_BUILD: Final = f"name NOT LIKE '{_MARK}%' AND name != char(0) || '{_PENDING_PURGE[1:]}'"
_SETTINGS: Final = f"{_MARK}settings"
_FAILURES: Final = f"{_MARK}failures"
_SEALED: Final = {
    _SETTINGS: f"SELECT name, value FROM settings WHERE {_OF_A_BUILD} ORDER BY rowid",  # noqa: S608 - ours
    _FAILURES: "SELECT document, code, message FROM failures ORDER BY rowid",
}
"""Queries of the rows whose checksums are stored in `settings`, by the name of the checksum."""
_RUN_SEAL: Final = ', "seal": "'


def _run_seal(*values: object) -> str:
    return text_digest(list(map(repr, values)))


def _prepare(path: Path, read_only: bool, db: sqlite3.Connection) -> None:
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    if found not in (0, FORMAT):
        raise incompatible(path, found)
    if found == 0 and read_only:
        raise tables_damaged(path, "it holds no tables of an index")
    db.execute("PRAGMA foreign_keys = ON")
    if found == 0:
        db.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}{TEXTS_SCHEMA}PRAGMA user_version = {FORMAT};COMMIT;")
        names = ",".join(sorted(name for (name,) in db.execute("SELECT name FROM sqlite_schema")))
        row = _DECLARED, f"{names} {_schema_seal(db, names)}"
        db.execute("INSERT INTO settings VALUES (?, ?)", row)


def _schema_seal(db: sqlite3.Connection, names: str) -> str:
    """Return a checksum of the declarations of tables and indexes, whose names commas separate."""
    rows = db.execute("SELECT name, type, tbl_name, sql FROM sqlite_schema ORDER BY name").fetchall()
    wanted = set(names.split(","))
    return text_digest([repr(tuple(row)) for row in rows if row[0] in wanted])


def has_tables(path: Path) -> bool:
    """Return whether a file has tables; a build killed right at its start leaves a file without any."""
    versions: list[int] = []
    if path.is_file():
        read = "PRAGMA user_version"
        Database(path, None, lambda db: versions.append(int(db.execute(read).fetchone()[0]))).close()
    return any(versions)


class Tables(DocumentTable):
    """The open tables of one index."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        # FULL: a published generation must not outlive the rows that it was built from, or a document that a
        # program passed would be lost with the next build, and a removed one would return.
        super().__init__(path, None if read_only else "FULL", partial(_prepare, path, read_only))

    def sense(self) -> None:
        """Raise IndexDamaged if a row of sources, failures, settings or runs is invalid."""
        self.sources(), self.known(), self.failures(), self.settings()
        for number, report in self._db.execute("SELECT number, report FROM runs"):
            json_of(report, self.path, f"the report of run {number}")
        self._check_seals()

    def _check_seals(self) -> None:
        """Raise IndexDamaged if settings, failures, reports or known files are not as they were stored."""
        for _, _, file in self.altered_files():
            raise IndexDamaged(
                f"{self.path} is damaged: what is known of {file or 'a folder'!r:.80} is altered",
                hint="run `ketrag index --check`: it compares all files and repairs the rows",
            )
        stored = dict(self._db.execute("SELECT name, value FROM settings").fetchall())
        names, mark, seal = stored.get(_DECLARED, "").rpartition(" ")
        if mark and seal != _schema_seal(self._db, names):
            raise tables_damaged(self.path, "the declaration of a table is altered")
        for name, query in _SEALED.items():
            if name in stored and stored[name] != self._seal_of(query):
                raise tables_damaged(self.path, f"the stored {name.removeprefix(_MARK)} are altered")
        query = "SELECT number, started, seconds, generation, changed, report FROM runs"
        for number, *values, report in self._db.execute(query):
            plain, mark, seal = report.rpartition(_RUN_SEAL)
            if mark and seal != f'{_run_seal(*values, plain)}"}}':
                raise tables_damaged(self.path, f"the report of run {number} is altered")

    def _seal_of(self, query: str) -> str:
        return text_digest([repr(tuple(row)) for row in self._db.execute(query)])

    def _store_seal(self, name: str) -> None:
        row = name, self._seal_of(_SEALED[name])
        self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", row)

    def removed(self) -> set[str]:
        """Return the removed ids, which builds skip although a source still has them."""
        return {name for (name,) in self._db.execute("SELECT id FROM removed")}

    def set_removed(self, ids: Iterable[str], removed: bool) -> None:
        """Add ids to the removed ids, or delete them from the removed ids."""
        query = "INSERT OR IGNORE INTO removed VALUES (?)" if removed else "DELETE FROM removed WHERE id = ?"
        self._db.executemany(query, ((name,) for name in ids))

    def is_removed(self, ids: Iterable[str]) -> bool:
        """Return whether any of these ids was removed, so that builds skip it."""
        names = [mark for name in ids for mark in (name, hash_purged_id(name))]
        query = "SELECT 1 FROM removed WHERE id = ?"
        return any(self._db.execute(query, (name,)).fetchone() for name in names)

    def set_failures(self, failures: Iterable[Failure]) -> None:
        """Store the failures of the last reading of all sources."""
        self._replace_failures(failures, left_out=False)

    def replace_failures(self, documents: Iterable[str], failures: Iterable[Failure]) -> None:
        """Delete the failures of some documents, and add others."""
        self._db.executemany("DELETE FROM failures WHERE document = ?", ((name,) for name in documents))
        rows = ((f.document, f.code, f.message) for f in failures)
        self._db.executemany("INSERT INTO failures VALUES (?, ?, ?)", rows)
        self._store_seal(_FAILURES)

    def failures(self) -> list[Failure]:
        """Return the failures in the order of reading."""
        return [one for one in self._failures() if one.code not in LEFT_OUT]

    def has_failure(self, code: str) -> bool:
        """Return whether there is a failure with this code."""
        return self._db.execute("SELECT 1 FROM failures WHERE code = ?", (code,)).fetchone() is not None

    def set_left_out(self, notes: Iterable[Failure]) -> None:
        """Store what the last reading of all sources left out, with the reasons."""
        self._replace_failures(notes, left_out=True)

    def left_out(self) -> list[Failure]:
        """Return what was left out, in the order of reading."""
        return [one for one in self._failures() if one.code in LEFT_OUT]

    def _replace_failures(self, own: Iterable[Failure], *, left_out: bool) -> None:
        query = "DELETE FROM failures WHERE (code IN (SELECT value FROM json_each(?))) = ?"
        self._db.execute(query, (json.dumps(sorted(LEFT_OUT)), left_out))
        rows = ((one.document, one.code, one.message) for one in own)
        self._db.executemany("INSERT INTO failures VALUES (?, ?, ?)", rows)
        self._store_seal(_FAILURES)

    def _failures(self) -> list[Failure]:
        rows = self._db.execute("SELECT document, code, message FROM failures ORDER BY rowid").fetchall()
        for row in rows:
            if not (type(row[0]) is type(row[1]) is type(row[2]) is str):
                self._texts(row, "a failure")
        return [Failure(*row) for row in rows]

    def set_settings(self, settings: Mapping[str, Any]) -> None:
        """Store the build settings of the build that starts."""
        self._db.execute(f"DELETE FROM settings WHERE {_OF_A_BUILD}")  # noqa: S608 - ours
        rows = ((name, json.dumps(value)) for name, value in settings.items())
        self._db.executemany("INSERT INTO settings VALUES (?, ?)", rows)
        self._store_seal(_SETTINGS)

    def settings(self) -> dict[str, Any]:
        """Return the settings that `set_settings` stored."""
        rows = self._db.execute(_SEALED[_SETTINGS])
        return {name: json_of(value, self.path, f"setting {name!r}") for name, value in rows}

    def pending_purge(self) -> set[str] | None:
        """Return hashes of the patterns of an unfinished purge; None if there is no unfinished purge."""
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (_PENDING_PURGE,)).fetchone()
        if row is None:
            return None
        patterns = json_of(row[0], self.path, "the mark of a purge")
        return set(map(str, patterns)) if isinstance(patterns, list) else set()

    def set_pending_purge(self, patterns: Iterable[str] | None) -> None:
        """Store that a purge begins, with hashes of its patterns; None: the purge is complete."""
        self._db.execute("DELETE FROM settings WHERE name = ?", (_PENDING_PURGE,))
        if patterns is not None:
            row = _PENDING_PURGE, json.dumps(sorted(patterns))
            self._db.execute("INSERT INTO settings VALUES (?, ?)", row)

    def add_run(self, started: str, seconds: float, generation: int, changed: bool, report: str) -> None:
        """Add a row to the log of builds; `report` is a JSON object, to which a checksum is added."""
        plain = report.rstrip().removesuffix("}")
        report = f'{plain}{_RUN_SEAL}{_run_seal(started, seconds, generation, int(changed), plain)}"}}'
        self._db.execute(
            "INSERT INTO runs (started, seconds, generation, changed, report) VALUES (?, ?, ?, ?, ?)",
            (started, seconds, generation, int(changed), report),
        )

    def purge(self, vectors: Iterable[tuple[int, str, bytes]], replies: Iterable[bytes]) -> bool:
        """Delete unused vectors and replies, the log of builds, and sources that name a purged document.

        Only hashes remain of the ids that were removed. Returns whether the deleted data is erased from the
        file and its log; it is not while another connection reads an earlier state (waits 5 s for it).
        """
        with self.transaction():
            there = self.tables()
            for name, keys, rows in (
                ("vectors", "model, role, text", vectors),
                ("replies", "chunk", ((key,) for key in replies)),
            ):
                if name in there:
                    marks = ", ".join("?" * (keys.count(",") + 1))
                    self._db.execute(f"CREATE TEMP TABLE used ({keys}, UNIQUE ({keys}))")
                    self._db.executemany(f"INSERT OR IGNORE INTO temp.used VALUES ({marks})", rows)  # noqa: S608
                    self._db.execute(
                        f"DELETE FROM {name} WHERE ({keys}) NOT IN (SELECT {keys} FROM temp.used)"  # noqa: S608
                    )
                    self._db.execute("DROP TABLE temp.used")
            for name in ("runs", "failures", "files", "file_readings"):
                if name in there:
                    self._db.execute(f"DELETE FROM {name}")  # noqa: S608 - ours
            self._store_seal(_FAILURES)
            plain = [name for name in self.removed() if not name.startswith(PURGED)]
            self._purge_sources(plain)
            self.set_removed(plain, removed=False)
            self.set_removed(map(hash_purged_id, plain), removed=True)
        self._db.execute("VACUUM")
        is_busy, *_ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy

    def _purge_sources(self, purged: Iterable[str]) -> None:
        """Delete sources without documents that name a purged document or can no longer be read.

        An empty folder, a pattern, and a file that holds several documents may get documents later.
        """
        names = {part for name in purged for part in (name, name.rsplit("/", 1)[-1])}
        query = "SELECT number, kind, spec FROM sources WHERE number NOT IN (SELECT source FROM documents)"
        for number, kind, spec in self._db.execute(query).fetchall():
            if kind != "path" or not _may_have_documents(spec, names):
                self.remove_source(number)


def _may_have_documents(spec: str, purged: set[str]) -> bool:
    """Return whether a source may later yield documents other than the purged ones, given their names."""
    if os.path.isdir(spec):  # noqa: PTH112 - False for a name that is invalid
        return True
    return Path(spec).name not in purged and (os.path.lexists(spec) or glob.has_magic(spec))
