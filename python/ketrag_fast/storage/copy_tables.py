"""New tables from those of other indexes: several merged into one, or some documents of one.

A merge has documents in a given order, cached vectors, replies and failures. If two parts cache different
results for the same text, the choice does not depend on the order of the parts, and neither does any stage
built from it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.checksum import fingerprint_of, hash_purged_id, hashes_of
from ketrag_fast.storage.database import Connection, connect, reading_uri
from ketrag_fast.storage.durable import sync_file
from ketrag_fast.storage.io_errors import tables_damaged, writing
from ketrag_fast.storage.journal import SEALED, Journal, is_right, seal_of
from ketrag_fast.storage.source_table import SourceRow, seal_sources
from ketrag_fast.storage.tables import Tables
from ketrag_fast.storage.vector_cache import VectorTable

_CACHE: Final = 256 << 10
"""Page cache in kB: cached vectors arrive in random order."""
_COLUMNS: Final = (
    "chunk, turn, attempt, text, finish, error, tokens_in, tokens_out, tokens_shared, seconds, verdict,"
    " entities, parser, records"
)
_PLACES: Final = tuple(_COLUMNS.split(", ").index(name) for name in SEALED.split(", "))
_USABLE: Final = _COLUMNS.split(", ").index("verdict")

Place = tuple[int, int, int]
"""(key of a document in its part, number of its source in the merged index, position in that source)."""


@contextmanager
def new_tables(path: Path) -> Iterator[Merged]:
    """Write the merged file and sync it. Callers delete the file after an error."""
    with writing(path):
        for name in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
            name.unlink(missing_ok=True)
        _create_tables(path)
        uri = f"{path.absolute().as_uri()}?mode=rw"
        db = sqlite3.connect(uri, isolation_level=None, factory=Connection, uri=True)
        db.path = path
        with closing(db):
            # Not durable until the end: the file is read only after it is renamed, and written again if
            # unfinished.
            for pragma in (
                "journal_mode = OFF",
                "synchronous = OFF",
                "temp_store = MEMORY",
                f"cache_size = -{_CACHE}",
            ):
                db.execute(f"PRAGMA {pragma}")
            db.execute("BEGIN")
            yield Merged(db)
            db.execute("COMMIT")
        sync_file(path)


def _create_tables(path: Path) -> None:
    Tables(path).close()
    Journal(path).close()
    VectorTable(path).close()


class Merged:
    """The merged SQLite file while it is written."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def add_sources(self, sources: Iterable[SourceRow]) -> None:
        """Add sources in their order, with their numbers."""
        rows = ((one.number, one.kind, one.label, one.spec) for one in sources)
        self._db.executemany("INSERT INTO sources VALUES (?, ?, ?, ?)", rows)
        seal_sources(self._db)

    def add_readers(self, parts: Sequence[Path]) -> None:
        """Add the readers of all parts, ordered by last use if the parts agree on it."""
        readers: dict[str, list[Any]] = {}
        for path in parts:
            with _attach(self._db, path) as there:
                if "readers" not in there:
                    continue
                query = "SELECT key, spec, identity, used, hits FROM part.readers"
                for key, spec, identity, used, hits in self._db.execute(query).fetchall():
                    known = readers.setdefault(key, [spec, identity, 0, 0])
                    known[:2] = min((known[0], known[1]), (spec, identity))
                    known[2], known[3] = max(known[2], used), known[3] + hits
        ordered = sorted(readers.items(), key=lambda item: (item[1][2], item[0]))
        rows = (
            (key, spec, identity, rank, hits)
            for rank, (key, (spec, identity, _, hits)) in enumerate(ordered, 1)
        )
        self._db.executemany(
            "INSERT INTO readers (key, spec, identity, used, hits) VALUES (?, ?, ?, ?, ?)", rows
        )

    def copy(self, path: Path, places: Iterable[Place]) -> None:
        """Copy some documents of the part at `path`, and all its cached vectors and replies.

        Published texts are not copied: the merge reads them from the part.
        """
        with _attach(self._db, path) as there:
            self._documents(places)
            if "vectors" in there:
                self._vectors()
            if "replies" in there:
                self._replies(path)

    def _documents(self, places: Iterable[Place]) -> None:
        db = self._db
        db.execute(
            "CREATE TEMP TABLE wanted (key INTEGER, source INTEGER, place INTEGER,"
            " PRIMARY KEY (source, place)) WITHOUT ROWID"
        )
        db.executemany("INSERT INTO temp.wanted VALUES (?, ?, ?)", places)
        db.execute(
            "INSERT INTO main.documents (id, source, place, content, title, metadata, chars)"
            " SELECT id, w.source, w.place, content, title, metadata, chars"
            " FROM temp.wanted w CROSS JOIN part.documents d ON d.key = w.key ORDER BY w.source, w.place"
        )
        self._texts()
        db.execute(
            "INSERT INTO main.locators (document, data) SELECT own.key, l.data FROM temp.wanted w"
            " JOIN part.locators l ON l.document = w.key JOIN part.documents d ON d.key = w.key"
            " JOIN main.documents own ON own.id = d.id"
        )
        db.execute("DROP TABLE temp.wanted")

    def _texts(self) -> None:
        """Copy the texts that are in the part's tables; all other texts are in the part's generations."""
        self._db.execute(
            "INSERT INTO main.texts SELECT own.key, t.text FROM temp.wanted w"
            " JOIN part.texts t ON t.document = w.key JOIN part.documents d ON d.key = w.key"
            " JOIN main.documents own ON own.id = d.id ORDER BY own.key"
        )

    def _vectors(self) -> None:
        self._db.execute(
            "INSERT INTO main.vector_models (fingerprint, dimension, longest, spec, engine)"
            " SELECT fingerprint, dimension, longest, spec, engine FROM part.vector_models WHERE true"
            " ON CONFLICT (fingerprint) DO UPDATE SET longest = excluded.longest, spec = excluded.spec,"
            " engine = excluded.engine WHERE (excluded.spec, excluded.engine) < (spec, engine)"
        )
        self._db.execute(
            "INSERT INTO main.vectors (model, role, text, vector) SELECT own.number, v.role, v.text, v.vector"
            " FROM part.vectors v JOIN part.vector_models m ON m.number = v.model"
            " JOIN main.vector_models own ON own.fingerprint = m.fingerprint AND own.dimension = m.dimension"
            " WHERE true"
            " ON CONFLICT (model, role, text) DO UPDATE SET vector = excluded.vector"
            " WHERE excluded.vector < vector"
        )

    def _replies(self, path: Path) -> None:
        db = self._db
        pairs = db.execute(
            "SELECT p.number, own.number FROM part.readers p JOIN main.readers own ON own.key = p.key"
        ).fetchall()
        for reader, own in pairs:
            query = (
                f"SELECT {_COLUMNS}, seal FROM part.replies WHERE reader = ? ORDER BY chunk, turn, attempt"  # noqa: S608
            )
            for chunk, group in groupby(db.execute(query, (reader,)), key=lambda row: row[0]):
                rows = [tuple(row) for row in group]
                if not all(is_right(reader, (*_seal_row(row), row[-1])) for row in rows):
                    raise IndexDamaged(
                        f"{path} is damaged: cached replies are altered",
                        hint="run `ketrag index` in that folder twice: the first run deletes them, "
                        "the second requests them again",
                    )
                self._keep(own, chunk, rows)

    def _keep(self, reader: int, chunk: bytes, rows: Sequence[tuple[Any, ...]]) -> None:
        db = self._db
        which = "WHERE reader = ? AND chunk = ?"
        query = f"SELECT {_COLUMNS} FROM main.replies {which} ORDER BY turn, attempt"  # noqa: S608
        there = db.execute(query, (reader, chunk)).fetchall()
        if there:
            if _rank(rows) >= _rank(there):
                return
            db.execute(f"DELETE FROM main.replies {which}", (reader, chunk))  # noqa: S608
        db.executemany(
            f"INSERT INTO main.replies (reader, {_COLUMNS}, seal) VALUES ({', '.join('?' * 16)})",  # noqa: S608
            ((reader, *row[:14], seal_of(reader, _seal_row(row))) for row in rows),
        )

    def add_removed(self, parts: Sequence[Path]) -> None:
        """Add the removed ids of all parts, except those that another part contains."""
        gone: set[str] = set()
        for path in parts:
            with _attach(self._db, path):
                gone |= {name for (name,) in self._db.execute("SELECT id FROM part.removed")}
        if gone:
            ids = [name for (name,) in self._db.execute("SELECT id FROM main.documents")]
            gone -= {*ids, *map(hash_purged_id, ids)}
            self._db.executemany("INSERT INTO main.removed VALUES (?)", ((name,) for name in sorted(gone)))

    def add_failures(self, parts: Sequence[Path]) -> None:
        """Add documents that no part could read. Failed chunks are not copied; the build finds them again."""
        found: set[tuple[str, str, str]] = set()
        for path in parts:
            with _attach(self._db, path):
                query = "SELECT document, code, message FROM part.failures WHERE code != 'chunk'"
                found |= set(self._db.execute(query))
        ids = {name for (name,) in self._db.execute("SELECT id FROM main.documents")} if found else set()
        rows = sorted(row for row in found if row[0] not in ids)
        self._db.executemany("INSERT INTO main.failures VALUES (?, ?, ?)", rows)


def _seal_row(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(row[place] for place in _PLACES)


def _rank(rows: Sequence[Sequence[Any]]) -> tuple[bool, str]:
    """Return a sort key that puts usable replies first, then orders them deterministically."""
    usable = any(row[_USABLE] != "unusable" for row in rows)
    return not usable, repr([_seal_row(row) for row in rows])


@contextmanager
def _attach(db: Connection, path: Path) -> Iterator[set[str]]:
    """Attach the file of a part as `part`, and yield the names of its tables."""
    with _outside(db):
        db.execute("ATTACH ? AS part", (reading_uri(path),))
    yield {str(row[0]) for row in db.execute("SELECT name FROM part.sqlite_schema WHERE type = 'table'")}
    with _outside(db):  # after an error the connection is not used again
        db.execute("DETACH part")


@contextmanager
def _outside(db: Connection) -> Iterator[None]:
    """Commit the open transaction, because SQLite cannot attach a file inside a transaction."""
    if db.in_transaction:
        db.execute("COMMIT")
    yield
    db.execute("BEGIN")


_SLICE: Final = 256
"""Rows between two checks."""
_KEPT: Final = ("vector_models", "vectors", "readers", "replies")
"""Tables of model results. Their keys are hashes of requests, so the copy includes rows of other documents;
the following build purges the rows that it does not request.
"""

_TEXTS: Final = (
    "SELECT content, CAST(text AS BLOB), key FROM documents LEFT JOIN texts ON document = key"
    " ORDER BY source, place"
)
_Checked = Callable[[Iterable[Any]], Iterator[Any]]


def copy_subset(
    source: Path, target: Path, wanted: Collection[str], check: Callable[[], object] = lambda: None
) -> str:
    """Copy the documents with these ids and all model results to `target`.

    Returns the fingerprint of all documents of `source` at that moment, as in a generation's manifest.
    `check` is called every few rows, and raises to stop.
    """
    ids = frozenset(wanted)

    def checked(rows: Iterable[Any]) -> Iterator[Any]:
        for number, row in enumerate(rows):
            if number % _SLICE == 0:
                check()
            yield row

    _create_tables(target)
    with Tables(source, read_only=True) as there, Tables(target) as made, writing(target):
        old, new = connect(source, None), made._db
        try:
            old.execute("BEGIN")
            with made.transaction():
                keys = _documents(old, new, ids, checked)
                rows = checked(old.execute("SELECT document, data FROM locators"))
                new.executemany(
                    "INSERT INTO locators VALUES (?, ?)",
                    ((keys[key], data) for key, data in rows if key in keys),
                )
                rows = checked(old.execute(_TEXTS))
                wanted_rows = (row for row in rows if row[2] in keys)
                new.executemany(
                    "INSERT INTO texts VALUES (?, CAST(? AS TEXT))",
                    _texts(there.texts.fill(wanted_rows, 0, 1), keys, source),
                )
                for name in _KEPT:
                    if name in there.tables():
                        found = old.execute(f"SELECT * FROM {name}")  # noqa: S608 - ours
                        marks = ", ".join("?" * len(found.description))
                        new.executemany(f"INSERT INTO {name} VALUES ({marks})", checked(found))  # noqa: S608
            every = old.execute("SELECT content FROM documents ORDER BY source, place")
            return fingerprint_of(hashes_of((content for (content,) in checked(every)), source))
        finally:
            old.close()


def _documents(old: Any, new: Any, ids: frozenset[str], checked: _Checked) -> dict[int, int]:
    """Copy documents; return a map from old to new keys, renumbered so that gaps reveal nothing."""
    query = "SELECT key, id, source, content, title, metadata, chars FROM documents ORDER BY source, place"
    sources: dict[int, int] = {}
    keys: dict[int, int] = {}

    def rows() -> Iterator[tuple[Any, ...]]:
        for key, name, source, *payload in checked(old.execute(query)):
            if name in ids:
                keys[key] = len(keys) + 1
                own = sources.setdefault(source, len(sources) + 1)
                yield keys[key], name, own, len(keys), *payload

    new.execute("PRAGMA defer_foreign_keys = ON")
    new.executemany(
        "INSERT INTO documents (key, id, source, place, content, title, metadata, chars)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows(),
    )
    for number, kind, label, spec in old.execute("SELECT number, kind, label, spec FROM sources"):
        if number in sources:
            new.execute("INSERT INTO sources VALUES (?, ?, ?, ?)", (sources[number], kind, label, spec))
    seal_sources(new)
    return keys


def _texts(rows: Iterable[Sequence[Any]], keys: Mapping[int, int], path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the keys and texts of the copy."""
    for _, text, key in rows:
        if text is None:
            raise tables_damaged(path, "the text of a document is in no generation")
        yield keys[key], text
