"""Vectors stored in SQLite: those that no generation stores, and the codes of an unfinished build.

Vectors of entities and of other generated texts stay in the tables of the index, under (model, role, text).
Vectors of units and sentences are in the published generation; during a build they are in its journal.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.database import connect, select_in, transaction
from ketrag_fast.storage.io_errors import json_of, tables_damaged, writing

Vectors = NDArray[np.float32]

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS vector_models (
  number INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL,
  longest INTEGER, spec TEXT NOT NULL, engine TEXT NOT NULL             -- JSON, of the engine that came first
) STRICT;
CREATE TABLE IF NOT EXISTS vectors (
  model INTEGER NOT NULL REFERENCES vector_models (number),
  role TEXT NOT NULL, text BLOB NOT NULL,              -- 16 bytes of BLAKE2b
  vector BLOB NOT NULL                                 -- f32, little-endian, length 1; then a checksum
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS vectors_key ON vectors (model, role, text);
"""
_SEAL: Final = "seal"
"""Key of the checksum of a model's row in its `engine`."""
_SUM: Final = 4
"""Bytes of a vector's checksum."""


def text_hash(text: str) -> bytes:
    """Return the 16-byte key of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _sum(role: str, key: bytes, vector: bytes) -> bytes:
    """Return the 4-byte checksum that is stored after a vector."""
    return zlib.crc32(vector, zlib.crc32(key, zlib.crc32(role.encode()))).to_bytes(4, "little")


def _places(keys: Sequence[bytes]) -> dict[bytes, list[int]]:
    """Return where each key is."""
    places: dict[bytes, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return places


def scratch_rows(count: int, row_type: np.dtype[Any], folder: Path) -> NDArray[Any]:
    """Return `count` rows of zeros in an unnamed file of that folder.

    Raises StorageFull if there is no room: it is reserved now, because a mapping that runs out of disk
    later kills the process by a signal.
    """
    if not count:
        return np.zeros(0, row_type)
    with writing(folder), tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, count * row_type.itemsize)
        return np.memmap(file, row_type.base, "w+", shape=(count, *row_type.shape))


class VectorTable:
    """The cached vectors. Takes a path, or an open connection, which it neither configures nor closes."""

    used: set[tuple[int, str, bytes]] | None = None
    """If set, collects the keys of all requests."""

    def __init__(self, place: Path | sqlite3.Connection) -> None:
        self.altered = 0
        """Number of altered vectors found so far."""
        self._own = not isinstance(place, sqlite3.Connection)
        if isinstance(place, sqlite3.Connection):
            self._db = place
            self._path = getattr(place, "path", Path())
        else:
            self._path = place
            self._db = connect(place, "NORMAL")
        for statement in _SCHEMA.split(";\n"):
            self._db.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection if this object opened it."""
        if self._own:
            self._db.close()

    def add(
        self, fingerprint: str, dimension: int, longest: int | None, spec: str, engine: Mapping[str, Any]
    ) -> None:
        """Add a new model."""
        plain = json.dumps(engine, sort_keys=True)
        sealed = {**engine, _SEAL: text_digest([fingerprint, f"{dimension} {longest}", spec, plain])}
        row = (fingerprint, dimension, longest, spec, json.dumps(sealed, sort_keys=True))
        self._db.execute(
            "INSERT INTO vector_models (fingerprint, dimension, longest, spec, engine)"
            " VALUES (?, ?, ?, ?, ?)",
            row,
        )

    def record(self, fingerprint: str) -> tuple[int, int, int | None, dict[str, Any]] | None:
        """Return (number, dimension, longest, engine) of a model as stored on first use."""
        query = "SELECT number, dimension, longest, engine FROM vector_models WHERE fingerprint = ?"
        found = self._db.execute(query, (fingerprint,)).fetchone()
        if not found:
            return None
        engine = json_of(found[3], self._path, "a model of vectors")
        return int(found[0]), int(found[1]), found[2], {key: engine[key] for key in engine if key != _SEAL}

    def dimension(self, fingerprint: str) -> int | None:
        """Return the dimension of a model's vectors, or None if it has no vectors."""
        query = "SELECT dimension FROM vector_models WHERE fingerprint = ?"
        found = self._db.execute(query, (fingerprint,)).fetchone()
        return int(found[0]) if found else None

    def get(self, model: int, role: str, keys: Sequence[bytes], out: Vectors) -> NDArray[np.bool_]:
        """Fill the rows of `out` [len(keys), d] whose text is cached; return a mask of the filled rows."""
        if self.used is not None:
            self.used.update((model, role, key) for key in keys)
        known, places, size = np.zeros(len(keys), bool), _places(keys), 4 * out.shape[1]
        query = "SELECT text, vector FROM vectors WHERE model = ? AND role = ? AND text IN (KEYS)"
        for found in select_in(self._db, query, (model, role), [*places]):
            # If the table and its index disagree, a key may be returned that was not requested.
            right = [(k, blob) for k, blob in found if self._is_right(role, k, blob, size, k in places)]
            rows = [row for key, _ in right for row in places[key]]
            blob = b"".join(blob[:size] for key, blob in right for _ in places[key])
            out[rows] = np.frombuffer(blob, "<f4").reshape(len(rows), out.shape[1])
            known[rows] = True
        return known

    def _is_right(self, role: str, key: bytes, blob: Any, size: int, known: bool = True) -> bool:
        """Return whether a row matches its checksum; otherwise its text is embedded again."""
        right = known and isinstance(blob, bytes) and len(blob) == size + _SUM
        right = right and blob[size:] == _sum(role, key, blob[:size])
        self.altered += not right
        return right

    def check(self, path: Path) -> None:
        """Raise IndexDamaged if the row of a model or a vector is altered."""
        wrong = 0
        models = "SELECT number, fingerprint, dimension, longest, spec, engine FROM vector_models"
        for number, fingerprint, dimension, longest, spec, text in self._db.execute(models).fetchall():
            engine = json_of(text, path, f"the model of vectors {number}")
            seal = engine.pop(_SEAL, None) if isinstance(engine, dict) else ""  # earlier versions stored none
            plain = json.dumps(engine, sort_keys=True)
            if seal not in (None, text_digest([fingerprint, f"{dimension} {longest}", spec, plain])):
                raise tables_damaged(path, f"the row of the model of vectors {number} is altered")
            query = "SELECT role, text, vector FROM vectors WHERE model = ?"
            for role, key, blob in self._db.execute(query, (number,)):
                wrong += not self._is_right(role, key, blob, 4 * dimension)
        if wrong:
            raise tables_damaged(
                path, f"{wrong:,} cached vectors are altered; a build embeds these texts again"
            )

    def put(self, model: int, role: str, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Store vectors in one transaction, replacing those of texts that are already cached."""
        wide = np.ascontiguousarray(vectors, "<f4")
        blobs = ((key, wide[place].tobytes()) for place, key in enumerate(keys))
        rows = ((model, role, key, blob + _sum(role, key, blob)) for key, blob in blobs)
        query = "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)"
        if self._db.in_transaction:  # of the caller
            self._db.executemany(query, rows)
            return
        with transaction(self._db):
            self._db.executemany(query, rows)

    def count(self, fingerprint: str) -> int:
        """Return the number of vectors of a model."""
        query = "SELECT count(*) FROM vectors JOIN vector_models ON model = number WHERE fingerprint = ?"
        return int(self._db.execute(query, (fingerprint,)).fetchone()[0])

    def forget(self, fingerprint: str) -> int:
        """Delete a model with all its vectors in one transaction; return their number."""
        vectors = "DELETE FROM vectors WHERE model = (SELECT number FROM vector_models WHERE fingerprint = ?)"
        with transaction(self._db):
            count = self._db.execute(vectors, (fingerprint,)).rowcount
            self._db.execute("DELETE FROM vector_models WHERE fingerprint = ?", (fingerprint,))
        return count


_JOURNAL_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS formats (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS codes (
  format INTEGER NOT NULL, text BLOB NOT NULL,         -- 16 bytes of BLAKE2b
  row BLOB NOT NULL,                                   -- codes, then a checksum
  PRIMARY KEY (format, text)
) STRICT, WITHOUT ROWID;
"""


class CodeJournal:
    """Vectors that a build has encoded so far, as codes; after a kill the next build continues from them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._numbers: dict[str, int] = {}

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = connect(self._path, "NORMAL")
            for statement in _JOURNAL_SCHEMA.strip().split(";\n"):
                self._db.execute(statement)
        return self._db

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            db = self._open()
            db.execute("INSERT OR IGNORE INTO formats (name) VALUES (?)", (name,))
            found = db.execute("SELECT number FROM formats WHERE name = ?", (name,)).fetchone()
            self._numbers[name] = int(found[0])
        return self._numbers[name]

    def get(self, name: str, keys: Sequence[bytes], out: NDArray[Any]) -> NDArray[np.bool_]:
        """Fill the rows of `out` whose text is stored under this name; return a mask of the filled rows."""
        known = np.zeros(len(keys), np.bool_)
        if self._db is None and not self._path.is_file():
            return known
        places, query = _places(keys), "SELECT text, row FROM codes WHERE format = ? AND text IN (KEYS)"
        found = select_in(self._open(), query, (self._number(name),), [*places])
        for key, blob in chain.from_iterable(found):
            row, seal = blob[:-_SUM], blob[-_SUM:]
            if len(row) == out[0].nbytes and seal == _sum(name, key, row):
                out[places[key]] = np.frombuffer(row, out.dtype).reshape(out.shape[1:])
                known[places[key]] = True
        return known

    def put(self, name: str, keys: Sequence[bytes], rows: NDArray[Any]) -> None:
        """Store rows under this name in one transaction."""
        db, number = self._open(), self._number(name)
        blobs = ((key, row.tobytes()) for key, row in zip(keys, rows, strict=True))
        sealed = ((number, key, blob + _sum(name, key, blob)) for key, blob in blobs)
        with transaction(db):
            db.executemany("INSERT OR REPLACE INTO codes VALUES (?, ?, ?)", sealed)

    def close(self) -> None:
        """Close the file without deleting it."""
        if self._db is not None:
            self._db.close()
        self._db, self._numbers = None, {}
