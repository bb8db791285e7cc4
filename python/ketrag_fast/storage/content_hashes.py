"""Totals over all documents, cached in memory so that a small change does not read every document again."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.storage.document_hashes import fingerprint_of
from ketrag_fast.storage.document_texts import HASH_BYTES
from ketrag_fast.storage.io_errors import tables_damaged


@dataclass
class DocumentTotals:
    """Content hashes of all documents in order, a hash over them, and the total number of characters.

    `characters` is None until it is needed.
    """

    hashes: NDArray[np.uint8]
    fingerprint: str
    characters: int | None = None


_known: dict[bytes, DocumentTotals] = {}
"""Cached totals of the tables that this process read or changed last, under their token."""


class ContentHashes:
    """The content hashes of all documents in one SQLite file, and totals over these documents.

    The table `document_state` has a random token, which is replaced whenever documents change. Totals are
    cached under this token, so cached totals always match the current documents.
    """

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def read(self) -> NDArray[np.uint8]:
        """Return the hashes in document order: uint8[documents, 32]."""
        return self._totals().hashes

    def fingerprint(self) -> str:
        """Return a hash over the content hashes of all documents."""
        return self._totals().fingerprint

    def count(self) -> int:
        """Return the number of documents."""
        found = _known.get(self._token())
        if found is not None:
            return len(found.hashes)
        return int(self._db.execute("SELECT count(*) FROM documents").fetchone()[0])

    def characters(self) -> int:
        """Return the total number of code points in all documents."""
        found = _known.get(self._token())
        if found is not None and found.characters is not None:
            return found.characters
        characters = int(self._db.execute("SELECT coalesce(sum(chars), 0) FROM documents").fetchone()[0])
        if found is not None:
            found.characters = characters
        return characters

    def known_characters(self) -> int | None:
        """Return the total number of code points, or None if computing it would read all documents."""
        found = _known.get(self._token())
        return None if found is None else found.characters

    def remember(self, totals: DocumentTotals) -> None:
        """Cache the totals of the current documents."""
        totals.hashes.setflags(write=False)
        _known.clear()  # cache only one list
        _known[self._token()] = totals

    def _totals(self) -> DocumentTotals:
        found = _known.get(self._token())
        if found is None:
            _known.clear()  # free the old list first
            hashes = self._read()
            found = DocumentTotals(hashes, fingerprint_of(hashes))
            self.remember(found)
        return found

    def mark(self) -> None:
        """Replace the token because documents change; runs in the caller's transaction."""
        self._db.execute("UPDATE document_state SET token = randomblob(16)")

    def _token(self) -> bytes:
        rows = self._db.execute("SELECT token FROM document_state").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise tables_damaged(self._path, "the state of the documents is invalid")
        return rows[0][0]

    def _read(self) -> NDArray[np.uint8]:
        query = (
            "SELECT count(*), sum(typeof(content) = 'blob' AND length(content) = ?),"
            " group_concat(content, '') FROM (SELECT content FROM documents ORDER BY source, place)"
        )
        # The hashes are fetched as one concatenated blob: fetching a row per hash takes three times as long.
        before, self._db.text_factory = self._db.text_factory, bytes
        try:
            count, valid, hashes = self._db.execute(query, (HASH_BYTES,)).fetchone()
        finally:
            self._db.text_factory = before
        if count and (valid != count or len(hashes) != HASH_BYTES * count):
            raise tables_damaged(self._path, "the hash of a document is invalid")
        return np.frombuffer(hashes or b"", np.uint8).reshape(-1, HASH_BYTES)
