"""The journal: every reply of a language model as received, stored under the request and the model.

A stored reply is never requested again, even after a kill, with another core ratio or in another system. The
raw reply is stored with the parser's result, so that a better parser needs no new call. The tables are in
the index's SQLite file; the holder of the builder's lock is the only writer.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn, Protocol

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.records import dataclass
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.database import Database, select_in
from ketrag_fast.storage.io_errors import json_of, tables_damaged, writing

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS readers (
  number INTEGER PRIMARY KEY,
  key      TEXT NOT NULL UNIQUE,         -- hash of model, prompt, schema and parameters
  spec     TEXT NOT NULL,                -- as it was named last
  identity TEXT NOT NULL,                -- JSON, of the model as its first use found it
  used     INTEGER NOT NULL,             -- the greatest was asked last
  hits     INTEGER NOT NULL              -- chunks that a build found read, and need not ask for
) STRICT;
CREATE TABLE IF NOT EXISTS replies (
  reader  INTEGER NOT NULL REFERENCES readers (number),
  chunk   BLOB NOT NULL,                 -- 16 bytes of BLAKE2b over what was read
  turn    INTEGER NOT NULL,              -- 0 is the first reply, then come the gleanings
  attempt INTEGER NOT NULL,              -- from 1
  text    BLOB NOT NULL,                 -- UTF-8, as it arrived
  finish  TEXT NOT NULL, error TEXT,
  tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, tokens_shared INTEGER NOT NULL,
  seconds REAL NOT NULL,
  verdict TEXT NOT NULL,                 -- 'clean', 'repaired' or 'unusable', by the parser of that number
  entities INTEGER NOT NULL, parser INTEGER NOT NULL,
  records BLOB NOT NULL,                 -- what that parser made of a model's words; else empty
  seal    BLOB NOT NULL,                 -- checksum of the row without its counts
  PRIMARY KEY (reader, chunk, turn, attempt)
) STRICT, WITHOUT ROWID;
"""
SEALED: Final = "chunk, turn, attempt, text, finish, error, verdict, entities, parser, records"
"""The columns that a row's checksum covers, in the order in which they are hashed."""
_SEAL: Final = "seal"
"""Key of the checksum of a reader's row in its `identity`."""
_AT: Final = "WHERE reader = ? AND chunk = ? AND turn = ? AND attempt = ?"
_AT_ONCE: Final = 400
"""Number of chunks whose replies are held at a time."""
LONGEST: Final = 1_000_000
"""Maximum size of a stored reply in bytes; no valid reply to one chunk is longer."""

Verdict = Literal["clean", "repaired", "unusable"]


class Counts(Protocol):
    """The cost of a reply, as the language model reports it."""

    @property
    def tokens_in(self) -> int:
        """Tokens of the prompt."""

    @property
    def tokens_out(self) -> int:
        """Tokens of the reply."""

    @property
    def tokens_shared(self) -> int:
        """Prompt tokens that were evaluated once and shared by many prompts."""

    @property
    def seconds(self) -> float:
        """Seconds from the start of the prompt to the end of the reply."""


class KeptReply(NamedTuple):
    """One stored reply. `text` may have been cut inside a character; it is decoded with errors replaced.

    `records` is the result of the parser with number `parser`, so that it need not be parsed again;
    `entities` is the number of entities in it.
    """

    turn: int
    attempt: int
    text: str
    finish: str
    error: str | None
    verdict: str
    entities: int
    parser: int
    records: str = ""

    @property
    def usable(self) -> bool:
        """Whether the parser could use the reply."""
        return self.verdict != "unusable"


@dataclass(frozen=True, slots=True)
class StoredReader:
    """One model with one prompt; its replies are stored under `number`."""

    number: int
    key: str
    spec: str
    identity: Mapping[str, Any]
    hits: int


def reply_key(*parts: str) -> bytes:
    """Return the 16-byte key of a request, such as a chunk's title and text."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.digest()


def seal_of(reader: int, values: Sequence[Any]) -> bytes:
    """Return an 8-byte checksum of a row's columns. An altered file may give them any type."""
    state = hashlib.blake2b(repr(reader).encode(), digest_size=8)
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
        state.update(b"%d " % len(data) + data)
    return state.digest()


def _prepare(db: sqlite3.Connection) -> None:
    for statement in _SCHEMA.split(";\n"):
        db.execute(statement)


def _require_readable(db: sqlite3.Connection) -> None:
    """Do nothing, because readers create no tables."""


class Journal(Database):
    """The stored replies of an index.

    Write many rows in one `transaction` only for extractors that cost nothing, whose rows are cheap to lose.
    """

    used: set[bytes] | None = None
    """If set, collects the keys of all requests."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        # A reply may have cost money and minutes: it must survive a power cut.
        super().__init__(path, None if read_only else "FULL", _require_readable if read_only else _prepare)

    def reader(self, key: str, spec: str, identity: Mapping[str, Any]) -> StoredReader:
        """Return the reader with this key, and mark it as the last used."""
        sealed = {**identity, _SEAL: _seal_of_reader(key, identity)}
        with writing(self.path):
            self._db.execute(
                "INSERT INTO readers (key, spec, identity, used, hits)"
                " VALUES (?, ?, ?, (SELECT coalesce(max(used), 0) + 1 FROM readers), 0)"
                " ON CONFLICT (key) DO UPDATE SET spec = excluded.spec, used = excluded.used",
                (key, spec, json.dumps(sealed, sort_keys=True)),
            )
        found = self._reader("WHERE key = ?", (key,))
        if found is None:  # inserted above
            raise tables_damaged(self.path, "the table of readers and its index disagree")
        return found

    def require_sound(self) -> None:
        """Raise IndexDamaged if the table and its index disagree: builds would miss stored replies."""
        found = [str(row[0]) for row in self._db.execute("PRAGMA integrity_check(replies)")]
        if found != ["ok"]:
            raise tables_damaged(self.path, "; ".join(found)[:300])

    def known(self, key: str) -> StoredReader | None:
        """Return the reader with this key, or None if no such reader is stored."""
        return self._reader("WHERE key = ?", (key,))

    def latest(self, spec: str | None = None) -> StoredReader | None:
        """Return the last used reader of chunks, optionally only among those with this name."""
        return self._latest("NOT LIKE", spec)

    def model(self, fingerprint: str, spec: str, identity: Mapping[str, Any]) -> StoredReader:
        """Return the reader of a model whose prompts are part of the keys of its replies."""
        return self.reader(f"model {fingerprint}", spec, identity)

    def latest_model(self, spec: str | None = None) -> StoredReader | None:
        """Return the last used reader of `model`, optionally only among those with this name."""
        return self._latest("LIKE", spec)

    def _latest(self, like: str, spec: str | None) -> StoredReader | None:
        which = f"WHERE key {like} 'model %' AND spec = coalesce(?, spec) ORDER BY used DESC LIMIT 1"
        return self._reader(which, (spec,))

    def results(self, reader: int, parser: int) -> Iterator[tuple[bytes, str]]:
        """Yield the key and the result of each usable reply that this parser read, without altered rows."""
        query = (
            f"SELECT {SEALED}, seal FROM replies WHERE reader = ? AND parser = ? AND verdict != 'unusable'"  # noqa: S608
        )
        for row in self._db.execute(query, (reader, parser)):
            if is_right(reader, row):
                yield row[0], row[9].decode("utf-8", "replace")

    def speed(self, spec: str) -> float | None:
        """Return seconds per input and output token over all replies of a model; None without replies."""
        query = (
            "SELECT sum(seconds), sum(tokens_in - tokens_shared + tokens_out) FROM replies"
            " JOIN readers ON reader = number WHERE spec = ?"
        )
        seconds, tokens = self._db.execute(query, (spec,)).fetchone()
        return seconds / tokens if seconds and tokens else None

    def _reader(self, which: str, values: tuple[str | None, ...]) -> StoredReader | None:
        query = f"SELECT number, key, spec, identity, hits FROM readers {which}"  # noqa: S608 - ours, above
        row = self._db.execute(query, values).fetchone()
        if not row:
            return None
        identity = json_of(row[3], self.path, f"the identity of the reader {row[2]!r}")
        if not (isinstance(identity, dict) and isinstance(row[1], str) and isinstance(row[2], str)):
            raise tables_damaged(self.path, f"the row of the reader {row[2]!r} is invalid")
        seal = identity.pop(_SEAL, None)  # an earlier version stored none
        if seal not in (None, _seal_of_reader(row[1], identity)):
            raise tables_damaged(self.path, f"the row of the reader {row[2]!r} is altered")
        return StoredReader(row[0], row[1], row[2], identity, row[4])

    def add_hits(self, reader: int, count: int) -> None:
        """Add to the number of chunks answered from stored replies."""
        with writing(self.path):
            self._db.execute("UPDATE readers SET hits = hits + ? WHERE number = ?", (count, reader))

    def put(self, reader: int, chunk: bytes, row: KeptReply, reply: Counts | None = None) -> None:
        """Store one reply immediately, with the counts of `reply`.

        A stored reply of the same turn and attempt is replaced.
        """
        text = row.text.encode("utf-8", "replace")[:LONGEST]
        counts = (reply.tokens_in, reply.tokens_out, reply.tokens_shared) if reply else (0, 0, 0)
        seconds = reply.seconds if reply else 0.0
        place = (reader, chunk, row.turn, row.attempt)
        judged = (row.verdict, row.entities, row.parser, row.records.encode("utf-8", "replace"))
        seal = seal_of(reader, (*place[1:], text, row.finish, row.error, *judged))
        with writing(self.path):
            self._db.execute(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*place, text, row.finish, row.error, *counts, seconds, *judged, seal),
            )

    def judge(self, reader: int, chunk: bytes, row: KeptReply) -> None:
        """Store the result of a newer parser for a stored reply."""
        place = (reader, chunk, row.turn, row.attempt)
        judged = (row.verdict, row.entities, row.parser, row.records.encode("utf-8", "replace"))
        with writing(self.path):
            self._db.execute(
                f"UPDATE replies SET verdict = ?, entities = ?, parser = ?, records = ? {_AT}",  # noqa: S608
                (*judged, *place),
            )
            stored = self._db.execute(f"SELECT {SEALED} FROM replies {_AT}", place).fetchone()  # noqa: S608
            if stored is not None:
                seal = seal_of(reader, stored)
                self._db.execute(f"UPDATE replies SET seal = ? {_AT}", (seal, *place))  # noqa: S608

    def rows(
        self, reader: int, chunks: Sequence[bytes], *, text: bool = True
    ) -> Iterator[tuple[int, list[KeptReply]]]:
        """Yield (position, replies by turn and attempt) for each of the chunks, in order.

        Without `text` the texts and records are empty, which is faster for callers that only need to know
        what exists. With it each row is compared with its seal: altered rows are deleted, so that the next
        build requests them again, and IndexDamaged is raised.
        """
        if self.used is not None:
            self.used.update(chunks)
        columns = f"{SEALED}, seal" if text else SEALED.replace("text", "x''").replace("records", "x''")
        query = (
            f"SELECT {columns} FROM replies WHERE reader = ? AND chunk IN (KEYS)"  # noqa: S608
            " ORDER BY chunk, turn, attempt"
        )
        for start in range(0, len(chunks), _AT_ONCE):
            some = chunks[start : start + _AT_ONCE]
            found: dict[bytes, list[KeptReply]] = {}
            altered = []
            for row in chain.from_iterable(select_in(self._db, query, (reader,), [*dict.fromkeys(some)])):
                if text and not is_right(reader, row):
                    altered.append((reader, *row[:3]))
                    continue
                key, turn, attempt, blob, *rest = row[:10]
                rest[-1] = rest[-1].decode("utf-8", "replace")
                kept = KeptReply(turn, attempt, blob.decode("utf-8", "replace"), *rest)
                found.setdefault(key, []).append(kept)
            if altered:
                self._forget(altered)
            for place, key in enumerate(some, start):
                yield place, found.get(key, [])

    def _forget(self, places: Sequence[tuple[Any, ...]]) -> NoReturn:
        """Delete altered replies, which cannot be recovered, and raise IndexDamaged."""
        with self.transaction():
            self._db.executemany(f"DELETE FROM replies {_AT}", places)  # noqa: S608
        raise IndexDamaged(
            f"{self.path} is damaged: {len(places):,} cached replies were altered and have been deleted",
            hint="run the same command again: only these replies are requested again",
        )

    def check(self) -> None:
        """Raise IndexDamaged if the row of a reader or a reply is altered."""
        for (key,) in self._db.execute("SELECT key FROM readers").fetchall():
            self._reader("WHERE key = ?", (key,))
        rows = self._db.execute(f"SELECT reader, {SEALED}, seal FROM replies")  # noqa: S608 - ours
        wrong = sum(not is_right(reader, row) for reader, *row in rows)
        if wrong:
            raise IndexDamaged(
                f"{self.path} is damaged: {wrong:,} cached replies are altered",
                hint="`ketrag index` deletes and reports them; the next one requests them again",
            )

    def totals(self, reader: int, chunks: Iterable[bytes]) -> dict[str, float]:
        """Return the total calls, tokens and seconds spent on these chunks over all builds."""
        query = (
            "SELECT count(*), sum(tokens_in), sum(tokens_out), sum(tokens_shared), sum(seconds)"
            " FROM replies WHERE reader = ? AND chunk IN (KEYS)"
        )
        sums = [0, 0, 0, 0, 0.0]
        for (found,) in select_in(self._db, query, (reader,), [*dict.fromkeys(chunks)]):
            sums = [total + (more or 0) for total, more in zip(sums, found, strict=True)]
        names = ("calls", "tokens_in", "tokens_out", "tokens_shared", "seconds")
        return dict(zip(names, sums, strict=True))


def _seal_of_reader(key: str, identity: Mapping[str, Any]) -> str:
    """Return a checksum of what never changes in the row of a reader."""
    return text_digest([key, json.dumps(identity, sort_keys=True)])


def is_right(reader: int, row: Sequence[Any]) -> bool:
    """Return whether a row's columns match its checksum."""
    *values, seal = row
    return bool(seal == seal_of(reader, values))
