"""The content hashes of all documents, which a program that makes many changes in a row reads once."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.storage.document_hashes import fingerprint_of
from ketrag_fast.storage.document_texts import HASH_BYTES
from ketrag_fast.storage.io_errors import tables_damaged

_known: dict[bytes, tuple[NDArray[np.uint8], str]] = {}
"""The hashes of the tables that were read or changed last, and their fingerprint, by their token."""


class ContentHashes:
    """The content hashes in one SQLite file.

    Its table `document_state` has a random token, a new one whenever documents change, so hashes known
    under the token of a file are those of its documents.
    """

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def read(self) -> NDArray[np.uint8]:
        """Return the hashes in document order: uint8[documents, 32]."""
        return self._state()[0]

    def fingerprint(self) -> str:
        """Return a hash of all of them."""
        return self._state()[1]

    def remember(self, hashes: NDArray[np.uint8]) -> str:
        """Keep what `read` would return for the documents as they are now, and return its fingerprint."""
        hashes.setflags(write=False)
        _known.clear()  # first, so that two lists are never kept
        made = fingerprint_of(hashes)
        _known[self._token()] = hashes, made
        return made

    def _state(self) -> tuple[NDArray[np.uint8], str]:
        found = _known.get(self._token())
        if found is None:
            hashes = self._read()
            found = hashes, self.remember(hashes)
        return found

    def mark(self) -> None:
        """Note that documents change, in the caller's transaction."""
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
        # The hashes arrive as one value, whose bytes are not text: a row for each takes three times as long.
        before, self._db.text_factory = self._db.text_factory, bytes
        try:
            count, valid, hashes = self._db.execute(query, (HASH_BYTES,)).fetchone()
        finally:
            self._db.text_factory = before
        if count and (valid != count or len(hashes) != HASH_BYTES * count):
            raise tables_damaged(self._path, "the hash of a document is invalid")
        return np.frombuffer(hashes or b"", np.uint8).reshape(-1, HASH_BYTES)
