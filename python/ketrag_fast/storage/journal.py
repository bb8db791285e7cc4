"""The journal: each reply of a language model as it arrived, under what was asked of which model.

Nothing that lies here is asked for again: after a kill, with another core ratio, in another system. Replies
are kept raw beside what the parser made of them, so that a better parser needs no new call. The tables lie
in the index's SQLite file; one writer, the holder of the builder's lock.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

from ketrag_fast.storage.database import Database
from ketrag_fast.storage.faults import writing

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
  PRIMARY KEY (reader, chunk, turn, attempt)
) STRICT, WITHOUT ROWID;
"""
_AT_ONCE: Final = 400
"""Keys of one query; SQLite takes a bounded number."""
LONGEST: Final = 1_000_000
"""Bytes of a reply that are kept; a greater one is no answer to one chunk."""

Verdict = Literal["clean", "repaired", "unusable"]


class Counts(Protocol):
    """What a reply took, as a language model's reply counts it."""

    @property
    def tokens_in(self) -> int:
        """Of the prompt."""

    @property
    def tokens_out(self) -> int:
        """Of the reply."""

    @property
    def tokens_shared(self) -> int:
        """Of the prompt, those that were evaluated once for many."""

    @property
    def seconds(self) -> float:
        """From the prompt's beginning to the reply's end."""


class KeptReply(NamedTuple):
    """One kept reply. `text` may have been cut inside a character, and is decoded with replacement.

    `records` is what the parser of that number made of it, so that nobody need parse it again; `entities`
    counts what is in them.
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
        """Whether the parser made something of it."""
        return self.verdict != "unusable"


@dataclass(frozen=True, slots=True)
class StoredReader:
    """One model under one prompt: replies are kept under its `number`."""

    number: int
    key: str
    spec: str
    identity: Mapping[str, Any]
    hits: int


def reply_key(*parts: str) -> bytes:
    """16 bytes that stand for what was asked about: a chunk's title and text, say."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.digest()


def _prepare(db: sqlite3.Connection) -> None:
    for statement in _SCHEMA.split(";\n"):
        db.execute(statement)


class Journal(Database):
    """See the module. Many rows in one `transaction` are for readers that cost nothing: they may be lost."""

    def __init__(self, path: Path) -> None:
        # A reply may have cost money and minutes: it survives a power cut too.
        super().__init__(path, "FULL", _prepare)

    def reader(self, key: str, spec: str, identity: Mapping[str, Any]) -> StoredReader:
        """The reader of that key, from now on the one that was used last."""
        with writing(self.path):
            self._db.execute(
                "INSERT INTO readers (key, spec, identity, used, hits)"
                " VALUES (?, ?, ?, (SELECT coalesce(max(used), 0) + 1 FROM readers), 0)"
                " ON CONFLICT (key) DO UPDATE SET spec = excluded.spec, used = excluded.used",
                (key, spec, json.dumps(dict(identity), sort_keys=True)),
            )
        found = self._reader("WHERE key = ?", (key,))
        assert found is not None  # noqa: S101 - it was put there above
        return found

    def known(self, key: str) -> StoredReader | None:
        """The reader of that key, if it ever read anything."""
        return self._reader("WHERE key = ?", (key,))

    def latest(self, spec: str | None = None) -> StoredReader | None:
        """The reader of chunks that was used last, or used last under that name."""
        if spec is None:
            return self._reader("WHERE key NOT LIKE 'model %' ORDER BY used DESC LIMIT 1", ())
        return self._reader("WHERE key NOT LIKE 'model %' AND spec = ? ORDER BY used DESC LIMIT 1", (spec,))

    def model(self, fingerprint: str, spec: str, identity: Mapping[str, Any]) -> StoredReader:
        """A model that is asked by tasks whose prompts are a part of their replies' keys."""
        return self.reader(f"model {fingerprint}", spec, identity)

    def _reader(self, which: str, values: tuple[str, ...]) -> StoredReader | None:
        query = f"SELECT number, key, spec, identity, hits FROM readers {which}"  # noqa: S608 - ours, above
        row = self._db.execute(query, values).fetchone()
        return StoredReader(row[0], row[1], row[2], json.loads(row[3]), row[4]) if row else None

    def add_hits(self, reader: int, count: int) -> None:
        """Chunks that need not be asked for."""
        with writing(self.path):
            self._db.execute("UPDATE readers SET hits = hits + ? WHERE number = ?", (count, reader))

    def put(self, reader: int, chunk: bytes, row: KeptReply, reply: Counts | None = None) -> None:
        """Keeps one reply, at once; the counts come from `reply`. The same turn and attempt is replaced."""
        text = row.text.encode("utf-8", "replace")[:LONGEST]
        counts = (reply.tokens_in, reply.tokens_out, reply.tokens_shared) if reply else (0, 0, 0)
        seconds = reply.seconds if reply else 0.0
        place = (reader, chunk, row.turn, row.attempt)
        judged = (row.verdict, row.entities, row.parser, row.records.encode("utf-8", "replace"))
        with writing(self.path):
            self._db.execute(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*place, text, row.finish, row.error, *counts, seconds, *judged),
            )

    def judge(self, reader: int, chunk: bytes, row: KeptReply) -> None:
        """What another parser makes of a kept reply."""
        with writing(self.path):
            self._db.execute(
                "UPDATE replies SET verdict = ?, entities = ?, parser = ?, records = ?"
                " WHERE reader = ? AND chunk = ? AND turn = ? AND attempt = ?",
                (
                    row.verdict,
                    row.entities,
                    row.parser,
                    row.records.encode("utf-8", "replace"),
                    reader,
                    chunk,
                    row.turn,
                    row.attempt,
                ),
            )

    def rows(
        self, reader: int, chunks: Sequence[bytes], *, text: bool = True
    ) -> Iterator[tuple[int, list[KeptReply]]]:
        """(place, its replies in order of turn and attempt) for each of the chunks, in their order.

        Without `text` the texts and records are empty: who only wants to know what is there need not read
        it all.
        """
        columns = ("text", "records") if text else ("x''", "x''")
        for start in range(0, len(chunks), _AT_ONCE):
            some = chunks[start : start + _AT_ONCE]
            found: dict[bytes, list[KeptReply]] = {}
            distinct = list(dict.fromkeys(some))
            marks = ",".join("?" * len(distinct))
            query = (
                f"SELECT chunk, turn, attempt, {columns[0]}, finish, error, verdict, entities, parser,"  # noqa: S608
                f" {columns[1]} FROM replies WHERE reader = ? AND chunk IN ({marks})"
                " ORDER BY chunk, turn, attempt"
            )
            for key, turn, attempt, blob, *rest in self._db.execute(query, (reader, *distinct)):
                rest[-1] = rest[-1].decode("utf-8", "replace")
                row = KeptReply(turn, attempt, blob.decode("utf-8", "replace"), *rest)
                found.setdefault(key, []).append(row)
            for place, key in enumerate(some, start):
                yield place, found.get(key, [])

    def totals(self, reader: int, chunks: Iterable[bytes]) -> dict[str, float]:
        """What was spent on these chunks, in whatever build: calls, tokens and seconds."""
        sums = [0, 0, 0, 0, 0.0]
        distinct = list(dict.fromkeys(chunks))
        for start in range(0, len(distinct), _AT_ONCE):
            some = distinct[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            query = (
                "SELECT count(*), sum(tokens_in), sum(tokens_out), sum(tokens_shared), sum(seconds)"  # noqa: S608
                f" FROM replies WHERE reader = ? AND chunk IN ({marks})"
            )
            found = self._db.execute(query, (reader, *some)).fetchone()
            sums = [total + (more or 0) for total, more in zip(sums, found, strict=True)]
        names = ("calls", "tokens_in", "tokens_out", "tokens_shared", "seconds")
        return dict(zip(names, sums, strict=True))
