"""The transactional part of an index in one SQLite file: sources, documents, failures, settings and runs.

Rankings never open it; the paths of hits are read from it. The holder of the builder's lock is the only
writer.
"""

from __future__ import annotations

import glob
import json
import os
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.checksum import raw_digest
from ketrag_fast.storage.content_hashes import ContentHashes
from ketrag_fast.storage.database import Database, in_batches
from ketrag_fast.storage.document_hashes import (
    PURGED,
    hash_purged_id,
    hashes_of,
    metadata_json,
)
from ketrag_fast.storage.document_texts import TEXTS_SCHEMA, DocumentTexts
from ketrag_fast.storage.io_errors import json_of, tables_damaged
from ketrag_fast.storage.layout import FORMAT, SHORT_HASH, incompatible
from ketrag_fast.storage.source_files import FileKey, FileReading, load_file_readings, store_file_readings
from ketrag_fast.storage.source_table import SourceTable
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import DocumentBatch
from ketrag_fast.types.locations import Locator, from_rows, to_text

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
_STORED = "FROM documents LEFT JOIN texts AS stored ON stored.document = key"
_LOCATED = f"{_STORED} LEFT JOIN locators AS located ON located.document = key"
_PAYLOAD = (
    "content, CAST(id AS BLOB), CAST(title AS BLOB), CAST(text AS BLOB), CAST(metadata AS BLOB),"
    f" CAST(data AS BLOB) {_LOCATED}"
)
_TEXT = 2
"""Index of the text among the hashed columns of `_PAYLOAD`."""
_PENDING_PURGE = "\0pending purge"
"""Name of the setting that a purge stores until it is complete; no setting of a build has this name."""
_DOCUMENT = f"content, CAST(text AS BLOB), id, title, metadata, data {_LOCATED}"


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A stored document: `id`, `title`, `text` and `metadata` (JSON) as UTF-8."""

    columns: Mapping[str, bytes]
    locators: tuple[Locator, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """The stored attributes of a document, without its text."""

    key: int
    source: int
    place: int
    content: str


def _prepare(path: Path, read_only: bool, db: sqlite3.Connection) -> None:
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    if found not in (0, FORMAT):
        raise incompatible(path, found)
    if found == 0 and read_only:
        raise tables_damaged(path, "it holds no tables of an index")
    db.execute("PRAGMA foreign_keys = ON")
    if found == 0:
        db.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}{TEXTS_SCHEMA}PRAGMA user_version = {FORMAT};COMMIT;")


def has_tables(path: Path) -> bool:
    """Return whether a file has tables; a build killed right at its start leaves a file without any."""
    versions: list[int] = []
    if path.is_file():
        read = "PRAGMA user_version"
        Database(path, None, lambda db: versions.append(int(db.execute(read).fetchone()[0]))).close()
    return any(versions)


class Tables(SourceTable):
    """The open tables of one index."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        # FULL: a published generation must not outlive the rows that it was built from, or a document that a
        # program passed would be lost with the next build, and a removed one would return.
        self._verified = -1
        self._keys: tuple[int, array[int]] | None = None
        super().__init__(path, None if read_only else "FULL", partial(_prepare, path, read_only))
        self.texts = DocumentTexts(self._db, path)
        self.content_hashes = ContentHashes(self._db, path)

    def known(self, ids: Iterable[str] | None = None) -> dict[str, Known]:
        """Return all documents by id, or those with the given ids."""
        query = "SELECT id, key, source, place, lower(hex(content)) FROM documents"
        rows = in_batches(self._db.execute(query)) if ids is None else self._rows_of(query, ids)
        found: dict[str, Known] = {}
        for name, key, source, place, content in rows:
            if not (type(name) is type(content) is str and type(key) is type(source) is type(place) is int):
                raise tables_damaged(self.path, f"the row of document {name!r} is invalid")
            found[name] = Known(key, source, place, content)
        return found

    def _rows_of(self, query: str, ids: Iterable[str]) -> Iterator[Any]:
        for name in ids:
            yield from self._db.execute(f"{query} WHERE id = ?", (name,))

    def altered(self) -> dict[int, str]:
        """Map the keys of documents whose stored content does not match their hash to their ids."""
        rows = self._db.execute(f"SELECT key, id, {_PAYLOAD} ORDER BY source, place")
        return {
            key: name for key, name, *payload in self.texts.fill(rows, 2, 5) if not _is_unaltered(*payload)
        }

    def check(self, which: str = "3") -> None:
        """Raise IndexDamaged if SQLite finds inconsistent pages, rows or indexes.

        `which` is the maximum number of findings, or the name of the one table to check.
        """
        found = [str(row[0]) for row in self._db.execute(f"PRAGMA integrity_check({which})")]
        if found != ["ok"]:
            raise tables_damaged(self.path, "; ".join(found)[:300])

    def sense(self) -> None:
        """Raise IndexDamaged if a row of sources, failures, settings or runs is invalid."""
        self.sources(), self.known(), self.failures(), self.settings()
        for number, report in self._db.execute("SELECT number, report FROM runs"):
            json_of(report, self.path, f"the report of run {number}")

    def verify(self) -> None:
        """Raise IndexDamaged if the text of a document is altered. Checked once after each change."""
        changes = self._db.total_changes
        if self.is_verified():
            return
        self.check("documents")  # the order is read from SQLite's index, which may disagree with the rows
        wrong = sorted(map(repr, self.altered().values()))
        if wrong:
            more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
            raise IndexDamaged(
                f"{self.path} is damaged: the stored text of {', '.join(wrong[:3])}{more} is altered",
                hint="`ketrag index --rebuild` reads the sources again; documents that a program passed must "
                "be passed again",
            )
        self._verified = changes

    def is_verified(self) -> bool:
        """Return whether the current documents were verified."""
        return self._verified == self._db.total_changes

    def set_verified(self) -> None:
        """Record that the current documents were verified by other means than `verify`."""
        self._verified = self._db.total_changes

    def descriptions(self) -> Iterator[tuple[bytes, bytes, bytes, int]]:
        """Yield id, title, metadata (UTF-8) and whether the tables have the text, in document order."""
        self.check("documents")
        query = (
            "SELECT CAST(id AS BLOB), CAST(title AS BLOB), CAST(metadata AS BLOB), stored.document NOT NULL "
            f"{_STORED} ORDER BY source, place"
        )
        yield from in_batches(self._db.execute(query))

    def has_locators(self) -> bool:
        """Return whether a document has locators."""
        return self._db.execute("SELECT 1 FROM locators LIMIT 1").fetchone() is not None

    def insert(self, new: Sequence[tuple[Document, int, int, str]]) -> None:
        """Insert documents with their sources, positions and content hashes; batches are twice as fast."""
        self.content_hashes.mark()
        last = self._db.execute("SELECT coalesce(max(key), 0) FROM documents").fetchone()[0]
        self._db.executemany(
            "INSERT INTO documents (key, id, source, place, content, title, metadata, chars)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (key, document.id, source, place, bytes.fromhex(content), *_payload(document))
                for key, (document, source, place, content) in enumerate(new, last + 1)
            ),
        )
        self._set_parts(enumerate((document for document, *_ in new), last + 1))

    def insert_batch(self, batch: DocumentBatch, contents: Sequence[bytes], source: int, place: int) -> None:
        """Add the documents of a batch in adjacent positions."""
        self.content_hashes.mark()
        last = self._db.execute("SELECT coalesce(max(key), 0) FROM documents").fetchone()[0]
        keys = range(last + 1, last + 1 + len(batch))
        self._db.executemany(
            "INSERT INTO documents (key, id, source, place, content, title, metadata, chars)"
            " VALUES (?, ?, ?, ?, ?, ?, '{}', ?)",
            zip(
                keys,
                batch.ids,
                repeat(source, len(batch)),
                range(place, place + len(batch)),
                contents,
                batch.titles,
                map(len, batch.texts),
                strict=True,
            ),
        )
        self.texts.put(zip(keys, batch.texts, strict=True))

    def _set_parts(self, documents: Iterable[tuple[int, Document]]) -> None:
        every = list(documents)
        self.texts.put((key, document.text) for key, document in every)
        located = [(key, to_text(document.locators)) for key, document in every if document.locators]
        self._db.executemany("INSERT INTO locators (document, data) VALUES (?, ?)", located)

    def update(self, key: int, document: Document, source: int, place: int, content: str) -> None:
        """Replace a document whose content changed."""
        self.content_hashes.mark()
        self._db.execute(
            "UPDATE documents SET source = ?, place = ?, content = ?,"
            " title = ?, metadata = ?, chars = ? WHERE key = ?",
            (source, place, bytes.fromhex(content), *_payload(document), key),
        )
        self._db.execute("DELETE FROM locators WHERE document = ?", (key,))
        self._set_parts([(key, document)])

    def move(self, key: int, source: int, place: int) -> None:
        """Change the position of a document."""
        self.content_hashes.mark()
        self._db.execute("UPDATE documents SET source = ?, place = ? WHERE key = ?", (source, place, key))

    def remove(self, keys: Iterable[int]) -> None:
        """Delete documents."""
        self.content_hashes.mark()
        self._db.executemany("DELETE FROM documents WHERE key = ?", ((key,) for key in keys))

    def removed(self) -> set[str]:
        """Return the removed ids, which builds skip although a source still has them."""
        return {name for (name,) in self._db.execute("SELECT id FROM removed")}

    def set_removed(self, ids: Iterable[str], removed: bool) -> None:
        """Add ids to the removed ids, or delete them from the removed ids."""
        query = "INSERT OR IGNORE INTO removed VALUES (?)" if removed else "DELETE FROM removed WHERE id = ?"
        self._db.executemany(query, ((name,) for name in ids))

    def set_failures(self, failures: Iterable[Failure]) -> None:
        """Store the failures of the last reading of all sources."""
        self._db.execute("DELETE FROM failures")
        rows = ((f.document, f.code, f.message) for f in failures)
        self._db.executemany("INSERT INTO failures VALUES (?, ?, ?)", rows)

    def failures(self) -> list[Failure]:
        """Return the failures in the order of reading."""
        rows = self._db.execute("SELECT document, code, message FROM failures ORDER BY rowid")
        return [Failure(*self._texts(row, "a failure")) for row in rows]

    def set_settings(self, settings: Mapping[str, Any]) -> None:
        """Store the build settings of the build that starts."""
        self._db.execute("DELETE FROM settings WHERE name != ?", (_PENDING_PURGE,))
        rows = ((name, json.dumps(value)) for name, value in settings.items())
        self._db.executemany("INSERT INTO settings VALUES (?, ?)", rows)

    def settings(self) -> dict[str, Any]:
        """Return the settings that `set_settings` stored."""
        query = "SELECT name, value FROM settings WHERE name != ? ORDER BY rowid"
        rows = self._db.execute(query, (_PENDING_PURGE,))
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
        """Add a row to the log of builds."""
        self._db.execute(
            "INSERT INTO runs (started, seconds, generation, changed, report) VALUES (?, ?, ?, ?, ?)",
            (started, seconds, generation, int(changed), report),
        )

    def file_readings(self) -> dict[FileKey, FileReading]:
        """Return the stored readings of files in converted formats."""
        return load_file_readings(self._db)

    def set_file_readings(self, rows: Mapping[FileKey, FileReading], gone: Iterable[FileKey]) -> None:
        """Store readings of files, and delete the readings of the files in `gone`."""
        store_file_readings(self._db, rows, gone)

    def hand_over(self, generation: int) -> None:
        """Delete the texts that a published generation has."""
        keys = self.texts.published_in(generation)
        if keys:
            with self.transaction():
                self.texts.drop(keys)
            self.texts.compact()

    def document_hashes(self) -> Iterator[tuple[str, str]]:
        """Yield (id, content hash) in document order."""
        query = "SELECT id, lower(hex(content)) FROM documents ORDER BY source, place"
        yield from self._db.execute(query)

    def contents(self) -> NDArray[np.uint8]:
        """Return the content hashes in document order: uint8[documents, 32], read once for each change."""
        return self.content_hashes.read()

    def fingerprint(self) -> str:
        """Return a hash of all documents and their order."""
        return self.content_hashes.fingerprint()

    def some(self, numbers: Sequence[int]) -> Iterator[StoredDocument]:
        """Yield the documents with these numbers (in document order).

        Raises IndexDamaged if one is altered.
        """
        keys = self._ordered_keys() if numbers else ()
        query = f"SELECT {_PAYLOAD} WHERE key = ?"
        rows = (self._db.execute(query, (keys[number],)).fetchone() for number in numbers)
        yield from (self._stored(row) for row in self.texts.fill(rows, 0, 3))

    def stored(self, ids: Iterable[str]) -> Iterator[StoredDocument]:
        """Yield the documents with these ids, in their order. Raises IndexDamaged if one is altered."""
        rows = self._rows_of(f"SELECT {_PAYLOAD}", ids)
        yield from (self._stored(row) for row in self.texts.fill(rows, 0, 3))

    def short_hashes(self, ids: Iterable[str]) -> NDArray[np.uint8]:
        """Return the first bytes of the content hashes of documents: uint8[documents, 16]."""
        rows = self._rows_of("SELECT content FROM documents", ids)
        return np.ascontiguousarray(hashes_of((content for (content,) in rows), self.path)[:, :SHORT_HASH])

    def is_removed(self, ids: Iterable[str]) -> bool:
        """Return whether any of these ids was removed, so that builds skip it."""
        names = [mark for name in ids for mark in (name, hash_purged_id(name))]
        query = "SELECT 1 FROM removed WHERE id = ?"
        return any(self._db.execute(query, (name,)).fetchone() for name in names)

    def last_place(self, source: int) -> int:
        """Return the position of the last document of a source; -1 if it has none."""
        row = self._db.execute("SELECT max(place) FROM documents WHERE source = ?", (source,)).fetchone()
        return -1 if row[0] is None else int(row[0])

    def count_through(self, source: int) -> int:
        """Return the number of documents of a source and of all earlier sources."""
        query = "SELECT count(*) FROM documents WHERE source <= ?"
        return int(self._db.execute(query, (source,)).fetchone()[0])

    def _ordered_keys(self) -> Sequence[int]:
        """Return the keys of the documents in order. Read once after each change."""
        changes = self._db.total_changes
        if self._keys is None or self._keys[0] != changes:
            rows = self._db.execute("SELECT key FROM documents ORDER BY source, place")
            self._keys = changes, array("q", (key for (key,) in rows))
        return self._keys[1]

    def ids_at(self, numbers: Iterable[int]) -> list[str]:
        """Return the ids of documents by their numbers in document order."""
        keys = self._ordered_keys()
        query = "SELECT id FROM documents WHERE key = ?"
        return [self._db.execute(query, (keys[number],)).fetchone()[0] for number in numbers]

    def blocks(self, size: int) -> Iterator[list[StoredDocument]]:
        """Yield all documents in order, in blocks of about `size` bytes.

        Raises IndexDamaged if one is altered.
        """
        changes = self._db.total_changes
        if self._verified != changes:
            self.check("documents")
        block: list[StoredDocument] = []
        held = 0
        rows = self._db.execute(f"SELECT {_PAYLOAD} ORDER BY source, place")
        for row in self.texts.fill(rows, 0, 3):
            stored = self._stored(row)
            block.append(stored)
            held += sum(map(len, stored.columns.values()))
            if held >= size:
                yield block
                block, held = [], 0
        if block:
            yield block
        if self._db.total_changes == changes:
            self._verified = changes

    def _stored(self, row: Sequence[Any]) -> StoredDocument:
        """Return a document from the columns of `_PAYLOAD`."""
        content, name, title, text, metadata, data = row
        if not _is_unaltered(content, name, title, text, metadata, data):
            self.verify()
            raise tables_damaged(self.path, f"the stored text of document {name!r:.80} is altered")
        marks = from_rows(json_of(data, self.path, "the locators of a document")) if data else ()
        return StoredDocument({"id": name, "title": title, "text": text, "metadata": metadata}, marks)

    def count(self) -> int:
        """Return the number of documents."""
        return self.content_hashes.count()

    def characters(self) -> int:
        """Return the code points of all documents' texts."""
        return self.content_hashes.characters()

    def characters_of(self, keys: Iterable[int]) -> int:
        """Return the number of code points of each of the given documents."""
        query = "SELECT chars FROM documents WHERE key = ?"
        return sum(int(self._db.execute(query, (key,)).fetchone()[0]) for key in keys)

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
            for name in ("runs", "failures", "file_readings"):
                if name in there:
                    self._db.execute(f"DELETE FROM {name}")  # noqa: S608 - ours
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

    def column(self, name: str) -> Iterator[bytes]:
        """Yield one text column (`id`, `title`, `text` or `metadata`) as UTF-8, in document order."""
        if name not in ("id", "title", "text", "metadata"):
            raise ValueError(f"unknown column {name!r} of documents")
        self.verify()
        if name == "text":
            rows = self._db.execute(f"SELECT content, CAST(text AS BLOB) {_STORED} ORDER BY source, place")
            yield from (text for _, text in self.texts.fill(rows, 0, 1))
            return
        query = f"SELECT CAST({name} AS BLOB) FROM documents ORDER BY source, place"  # noqa: S608 - checked above
        for (value,) in self._db.execute(query):
            yield value

    def documents(self) -> Iterator[Document]:
        """Yield all documents in order. Raises IndexDamaged if one is altered."""
        self.verify()
        rows = self._db.execute(f"SELECT {_DOCUMENT} ORDER BY source, place")
        yield from map(self._document, self.texts.fill(rows, 0, 1))

    def _document(self, row: Sequence[Any]) -> Document:
        _, text, name, title, metadata, data = row
        about = json_of(metadata, self.path, f"the metadata of {name!r}")
        rows = from_rows(json_of(data, self.path, "the locators of a document")) if data else ()
        return Document(name, text.decode("utf-8"), title, about, rows)

    def located(self) -> Iterator[tuple[int, tuple[Locator, ...]]]:
        """Yield (number in document order, locators) of the documents that have any."""
        if not self.has_locators():
            return
        query = "SELECT data FROM documents LEFT JOIN locators ON document = key ORDER BY source, place"
        for place, (data,) in enumerate(self._db.execute(query)):
            if data is None:
                continue
            try:
                yield place, from_rows(json_of(data, self.path, "the locators of a document"))
            except (TypeError, ValueError) as error:
                raise tables_damaged(self.path, f"the locators of document {place} are invalid") from error


def _may_have_documents(spec: str, purged: set[str]) -> bool:
    """Return whether a source may later yield documents other than the purged ones, given their names."""
    if os.path.isdir(spec):  # noqa: PTH112 - False for a name that is invalid
        return True
    return Path(spec).name not in purged and (os.path.lexists(spec) or glob.has_magic(spec))


def _payload(document: Document) -> tuple[str, str, int]:
    return document.title, metadata_json(document), len(document.text)


def _is_unaltered(content: object, *parts: bytes | None) -> bool:
    """Return whether the columns of `_PAYLOAD` match the content hash; the text is None if it is lost."""
    return parts[_TEXT] is not None and raw_digest(part for part in parts if part is not None) == content
