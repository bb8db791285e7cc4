"""What must be transactional: sources, documents, failures, settings and runs, in one SQLite file.

Retrieval never opens it. There is one writer, the holder of the builder's lock.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.checksum import bytes_digest, text_digest
from ketrag_fast.storage.database import Database
from ketrag_fast.storage.io_errors import json_of, tables_damaged
from ketrag_fast.storage.layout import FORMAT, incompatible
from ketrag_fast.types import Document, Failure
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
  content  TEXT NOT NULL,                -- hash of id, title, text, metadata, and locators if there are any
  title    TEXT NOT NULL,
  text     TEXT NOT NULL,
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
CREATE TABLE removed (id TEXT PRIMARY KEY) STRICT;  -- removed by hand; skipped while their source has them
CREATE TABLE source_seals (              -- checksums of `sources`: an altered path would be read instead
  number INTEGER PRIMARY KEY,            -- of the source
  seal   TEXT NOT NULL                   -- hash of its number, kind, label and spec
) STRICT;
"""
_SOURCES = (
    "SELECT number, CAST(kind AS BLOB), CAST(label AS BLOB), CAST(spec AS BLOB) FROM sources ORDER BY number"
)
_HASHED = "\0purged "


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A registered source."""

    number: int
    kind: str
    label: str
    spec: str


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it is stored: `id`, `title`, `text` and `metadata` (JSON) as UTF-8."""

    columns: Mapping[str, bytes]
    locators: tuple[Locator, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What is stored of a document, without its text."""

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
        db.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version = {FORMAT};COMMIT;")


def seal_sources(db: sqlite3.Connection) -> None:
    """Writes the checksum of every source that has none."""
    seals = dict(db.execute("SELECT number, seal FROM source_seals").fetchall())
    rows = db.execute(_SOURCES).fetchall()
    new = ((row[0], _source_seal(row)) for row in rows if row[0] not in seals)
    db.executemany("INSERT INTO source_seals VALUES (?, ?)", new)


def _source_seal(row: tuple[Any, ...]) -> str:
    """The checksum of a row of `_SOURCES`, whatever has become of it."""
    number, *texts = row
    return bytes_digest([str(number).encode(), *(text or b"" for text in texts)])


class Tables(Database):
    """The open tables of one index."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        # What is published must not outlive the rows that it was made from: a document that a program gave
        # would be lost with the next build, and one that was removed be back.
        self._verified = -1
        self._contents: tuple[int, NDArray[np.uint8]] | None = None
        super().__init__(path, None if read_only else "FULL", partial(_prepare, path, read_only))

    def sources(self) -> list[SourceRow]:
        """In order of registration. IndexDamaged where a row is not as it was registered."""
        wrong = self._altered_sources()
        if wrong:
            listed = ", ".join(f"{number} ({label})" for number, label in list(wrong.items())[:3])
            raise IndexDamaged(
                f"{self.path} is damaged: the rows of these sources are altered: {listed}",
                hint="name all sources of the index again: `ketrag index SOURCES... --replace`. Documents "
                "that a program handed over must be handed over again; what is published stays readable",
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
            if seals.get(number) != _source_seal(row).encode()
        }
        return wrong | dict.fromkeys(sorted(seals.keys() - rows.keys()), "missing")

    def drop_altered_sources(self) -> None:
        """Removes the rows of sources that are altered, for a build that is given all sources again.

        Within a transaction, at whose end no document may be of a source that was removed.
        """
        wrong = [(number,) for number in self._altered_sources()]
        if wrong:
            self._db.execute("PRAGMA defer_foreign_keys = ON")
            self._db.execute("REINDEX sources")  # its index may still hold what the row held
            self._db.executemany("DELETE FROM sources WHERE number = ?", wrong)
            self._db.executemany("DELETE FROM source_seals WHERE number = ?", wrong)

    def _texts(self, row: tuple[Any, ...], what: str) -> tuple[Any, ...]:
        """A row that ends with three texts; SQLite itself does not look whether an altered one does."""
        if not all(isinstance(value, str) for value in row[-3:]):
            raise tables_damaged(self.path, f"the row of {what} makes no sense: {row!r:.200}")
        return row

    def add_source(self, kind: str, label: str, spec: str) -> None:
        """Registers a source, once. What a merge kept of it, when it was not there, is read from it again."""
        if kind == "path":
            self._db.execute(
                "UPDATE OR IGNORE sources SET kind = 'path', label = ? WHERE kind = 'documents' AND spec = ?",
                (label, spec),
            )
        self._db.execute(
            "INSERT INTO sources (kind, label, spec) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (kind, label, spec),
        )
        seal_sources(self._db)

    def remove_source(self, number: int) -> None:
        """Forgets a source whose documents are gone."""
        self._db.execute("DELETE FROM sources WHERE number = ?", (number,))
        self._db.execute("DELETE FROM source_seals WHERE number = ?", (number,))

    def known(self) -> dict[str, Known]:
        """All documents by id."""
        rows = self._db.execute("SELECT id, key, source, place, content FROM documents")
        found = {row[0]: Known(*row[1:]) for row in rows}
        for name, known in found.items():
            numbers = (known.key, known.source, known.place)
            if (
                not isinstance(name, str)
                or not isinstance(known.content, str)
                or set(map(type, numbers)) != {int}
            ):
                raise tables_damaged(self.path, f"the row of document {name!r} makes no sense")
        return found

    def altered(self) -> dict[int, str]:
        """The documents (key to id) whose stored payload does not give their stored hash."""
        query = (
            "SELECT key, id, CAST(content AS BLOB), CAST(id AS BLOB), CAST(title AS BLOB),"
            " CAST(text AS BLOB), CAST(metadata AS BLOB), CAST(data AS BLOB)"
            " FROM documents LEFT JOIN locators ON document = key ORDER BY source, place"
        )
        return {
            key: name
            for key, name, content, *parts in self._db.execute(query)
            if bytes_digest(part for part in parts if part is not None).encode() != content
        }

    def check(self, which: str = "3") -> None:
        """IndexDamaged where SQLite finds that pages, rows or indexes of the file do not fit together.

        `which` is a number of findings that suffice, or the name of one table.
        """
        found = [str(row[0]) for row in self._db.execute(f"PRAGMA integrity_check({which})")]
        if found != ["ok"]:
            raise tables_damaged(self.path, "; ".join(found)[:300])

    def sense(self) -> None:
        """IndexDamaged where a row cannot be what was written: of sources, failures, settings, runs."""
        self.sources(), self.known(), self.failures(), self.settings()
        for number, report in self._db.execute("SELECT number, report FROM runs"):
            json_of(report, self.path, f"the report of run {number}")

    def verify(self) -> None:
        """IndexDamaged where the text of a document is not as it was read. Counted once for each change."""
        changes = self._db.total_changes
        if self._verified == changes:
            return
        self.check("documents")  # their order is read from an index, which may say other than the rows
        wrong = sorted(map(repr, self.altered().values()))
        if wrong:
            more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
            raise IndexDamaged(
                f"{self.path} is damaged: what is stored of {', '.join(wrong[:3])}{more} is altered",
                hint="`ketrag index --rebuild` reads the sources again and stores them anew; documents that "
                "a program handed over must be handed over again",
            )
        self._verified = changes

    def insert(self, document: Document, source: int, place: int, content: str) -> None:
        """A new document."""
        self._db.execute(
            "INSERT INTO documents (id, source, place, content, title, text, metadata, chars)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (document.id, source, place, content, *_payload(document)),
        )
        self._set_locators("(SELECT key FROM documents WHERE id = ?)", document.id, document)

    def _set_locators(self, which: str, value: Any, document: Document) -> None:
        if data := to_text(document.locators):
            query = f"INSERT OR REPLACE INTO locators (document, data) VALUES ({which}, ?)"  # noqa: S608 - ours
            self._db.execute(query, (value, data))

    def update(self, key: int, document: Document, source: int, place: int, content: str) -> None:
        """A document whose content changed."""
        self._db.execute(
            "UPDATE documents SET source = ?, place = ?, content = ?,"
            " title = ?, text = ?, metadata = ?, chars = ? WHERE key = ?",
            (source, place, content, *_payload(document), key),
        )
        self._db.execute("DELETE FROM locators WHERE document = ?", (key,))
        self._set_locators("?", key, document)

    def move(self, key: int, source: int, place: int) -> None:
        """A document that only changed its place."""
        self._db.execute("UPDATE documents SET source = ?, place = ? WHERE key = ?", (source, place, key))

    def remove(self, keys: Iterable[int]) -> None:
        """Documents that are gone."""
        self._db.executemany("DELETE FROM documents WHERE key = ?", ((key,) for key in keys))

    def removed(self) -> set[str]:
        """The ids that are passed over where a source has them, because someone removed them."""
        return {name for (name,) in self._db.execute("SELECT id FROM removed")}

    def set_removed(self, ids: Iterable[str], removed: bool) -> None:
        """Adds ids to those that are passed over, or takes them out."""
        query = "INSERT OR IGNORE INTO removed VALUES (?)" if removed else "DELETE FROM removed WHERE id = ?"
        self._db.executemany(query, ((name,) for name in ids))

    def set_failures(self, failures: Iterable[Failure]) -> None:
        """The failures of the last reading of all sources."""
        self._db.execute("DELETE FROM failures")
        rows = ((f.document, f.code, f.message) for f in failures)
        self._db.executemany("INSERT INTO failures VALUES (?, ?, ?)", rows)

    def failures(self) -> list[Failure]:
        """In the order of reading."""
        rows = self._db.execute("SELECT document, code, message FROM failures ORDER BY rowid")
        return [Failure(*self._texts(row, "a failure")) for row in rows]

    def set_settings(self, settings: Mapping[str, Any]) -> None:
        """The build settings of the last build that was begun."""
        self._db.execute("DELETE FROM settings")
        rows = ((name, json.dumps(value)) for name, value in settings.items())
        self._db.executemany("INSERT INTO settings VALUES (?, ?)", rows)

    def settings(self) -> dict[str, Any]:
        """As `set_settings` got them."""
        rows = self._db.execute("SELECT name, value FROM settings ORDER BY rowid")
        return {name: json_of(value, self.path, f"setting {name!r}") for name, value in rows}

    def add_run(self, started: str, seconds: float, generation: int, changed: bool, report: str) -> None:
        """The diary of builds."""
        self._db.execute(
            "INSERT INTO runs (started, seconds, generation, changed, report) VALUES (?, ?, ?, ?, ?)",
            (started, seconds, generation, int(changed), report),
        )

    def document_hashes(self) -> Iterator[tuple[str, str]]:
        """(id, content hash) in document order."""
        yield from self._db.execute("SELECT id, content FROM documents ORDER BY source, place")

    def contents(self) -> NDArray[np.uint8]:
        """uint8[documents, 32]: the content hashes, in document order. Read once for each change."""
        changes = self._db.total_changes
        if self._contents is None or self._contents[0] != changes:
            rows = self._db.execute("SELECT content FROM documents ORDER BY source, place")
            self._contents = changes, hashes_of((content for (content,) in rows), self.path)
        return self._contents[1]

    def fingerprint(self) -> str:
        """A hash of all documents and their order."""
        return fingerprint_of(self.contents())

    def some(self, numbers: Sequence[int]) -> Iterator[StoredDocument]:
        """Some documents by their numbers in document order. IndexDamaged where one is not as it was read."""
        keys = [key for (key,) in self._db.execute("SELECT key FROM documents ORDER BY source, place")]
        query = (
            "SELECT CAST(content AS BLOB), CAST(id AS BLOB), CAST(title AS BLOB), CAST(text AS BLOB),"
            " CAST(metadata AS BLOB), CAST(data AS BLOB)"
            " FROM documents LEFT JOIN locators ON document = key WHERE key = ?"
        )
        for number in numbers:
            content, *parts = self._db.execute(query, (keys[number],)).fetchone()
            if bytes_digest(part for part in parts if part is not None).encode() != content:
                self.verify()
                raise tables_damaged(self.path, f"what is stored of document {number} is altered")
            rows = from_rows(json_of(parts[4], self.path, "the locators of a document")) if parts[4] else ()
            yield StoredDocument(dict(zip(("id", "title", "text", "metadata"), parts, strict=False)), rows)

    def count(self) -> int:
        """Of documents."""
        return int(self._db.execute("SELECT count(*) FROM documents").fetchone()[0])

    def characters(self) -> int:
        """Code points of all documents' texts."""
        return int(self._db.execute("SELECT coalesce(sum(chars), 0) FROM documents").fetchone()[0])

    def characters_of(self, keys: Iterable[int]) -> int:
        """Code points of some documents' texts."""
        query = "SELECT chars FROM documents WHERE key = ?"
        return sum(int(self._db.execute(query, (key,)).fetchone()[0]) for key in keys)

    def origins(self, names: Iterable[str]) -> dict[str, str]:
        """Of documents, the path or glob of the source that each is from; those of a program have none.
        IndexDamaged where the row of a source is altered.
        """
        self.sources()
        query = "SELECT spec FROM documents JOIN sources ON number = source WHERE id = ? AND kind = 'path'"
        found = {}
        for name in names:
            row = self._db.execute(query, (name,)).fetchone()
            if row is not None:
                found[name] = str(row[0])
        return found

    def purge(self, vectors: Iterable[tuple[int, str, bytes]], replies: Iterable[bytes]) -> None:
        """Keeps of the vectors and replies these alone, forgets earlier builds and estimates, sources without
        documents and the ids that were removed (their hashes stay); nothing of it is left in the file.
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
            for name in ("runs", "failures", "estimates"):
                if name in there:
                    self._db.execute(f"DELETE FROM {name}")  # noqa: S608 - ours
            self._db.execute("DELETE FROM sources WHERE number NOT IN (SELECT source FROM documents)")
            self._db.execute("DELETE FROM source_seals WHERE number NOT IN (SELECT number FROM sources)")
            plain = [name for name in self.removed() if not name.startswith(_HASHED)]
            self.set_removed(plain, removed=False)
            self.set_removed(map(hash_purged_id, plain), removed=True)
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def column(self, name: str) -> Iterator[bytes]:
        """One text column (`id`, `title`, `text` or `metadata`) as UTF-8, in document order."""
        if name not in ("id", "title", "text", "metadata"):
            raise ValueError(f"there is no column {name!r} of documents")
        self.verify()
        query = f"SELECT CAST({name} AS BLOB) FROM documents ORDER BY source, place"  # noqa: S608 - checked above
        for (value,) in self._db.execute(query):
            yield value

    def documents(self) -> Iterator[Document]:
        """All documents, in order. IndexDamaged where one is not as it was read."""
        self.verify()
        rows = self._db.execute("SELECT id, text, title, metadata FROM documents ORDER BY source, place")
        located = dict(self.located())
        for place, (name, text, title, metadata) in enumerate(rows):
            about = json_of(metadata, self.path, f"the metadata of {name!r}")
            yield Document(name, text, title, about, located.get(place, ()))

    def located(self) -> Iterator[tuple[int, tuple[Locator, ...]]]:
        """(number in document order, locators) of the documents that have any."""
        if not self._db.execute("SELECT 1 FROM locators LIMIT 1").fetchone():
            return
        query = "SELECT data FROM documents LEFT JOIN locators ON document = key ORDER BY source, place"
        for place, (data,) in enumerate(self._db.execute(query)):
            if data is None:
                continue
            try:
                yield place, from_rows(json_of(data, self.path, "the locators of a document"))
            except (TypeError, ValueError) as error:
                raise tables_damaged(self.path, f"the locators of document {place} make no sense") from error


def hashes_of(contents: Iterable[str], path: Path) -> NDArray[np.uint8]:
    """uint8[documents, 32] from content hashes as `path` has them; IndexDamaged where one is none."""
    try:
        return np.frombuffer(bytes.fromhex("".join(contents)), np.uint8).reshape(-1, 32)
    except (TypeError, ValueError):
        raise tables_damaged(path, "the hash of a document makes no sense") from None


def fingerprint_of(hashes: NDArray[np.uint8]) -> str:
    """A hash of documents, by their content hashes, and of their order."""
    return bytes_digest([hashes.tobytes()])


def hash_purged_id(name: str) -> str:
    """What is kept of the id of a document that was purged."""
    return _HASHED + text_digest([name])


def content_of(document: Document) -> str:
    """The hash by which a changed document is known."""
    parts = (document.id, document.title, document.text, _metadata(document))
    return text_digest((*parts, to_text(document.locators)) if document.locators else parts)


def _metadata(document: Document) -> str:
    if not document.metadata:
        return "{}"
    return json.dumps(dict(document.metadata), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _payload(document: Document) -> tuple[str, str, str, int]:
    return document.title, document.text, _metadata(document), len(document.text)
