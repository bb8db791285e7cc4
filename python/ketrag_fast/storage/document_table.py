"""The documents of an index in its tables: rows, texts, locators and hashes, in the order of the sources."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ketrag_fast import _core
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.records import dataclass
from ketrag_fast.storage.checksum import HASH_BYTES, fingerprint_of, hashes_of, metadata_json, raw_digest
from ketrag_fast.storage.database import in_batches
from ketrag_fast.storage.document_texts import DocumentTexts
from ketrag_fast.storage.io_errors import json_of, tables_damaged
from ketrag_fast.storage.known_files import KnownFile
from ketrag_fast.storage.layout import SHORT_HASH
from ketrag_fast.storage.source_table import SourceTable
from ketrag_fast.types import Document
from ketrag_fast.types.documents import DocumentBatch
from ketrag_fast.types.locations import Locator, from_rows, to_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STORED: Final = "FROM documents LEFT JOIN texts AS stored ON stored.document = key"
_LOCATED: Final = f"{_STORED} LEFT JOIN locators AS located ON located.document = key"
_PAYLOAD: Final = (
    "content, CAST(id AS BLOB), CAST(title AS BLOB), CAST(text AS BLOB), CAST(metadata AS BLOB),"
    f" CAST(data AS BLOB) {_LOCATED}"
)
_TEXT: Final = 2
"""Index of the text among the hashed columns of `_PAYLOAD`."""
_IN_ORDER: Final = "ORDER BY source, place"
_FEW: Final = 8
"""Documents that are found by their number one by one; for more, the order of all is read."""
_INSERT: Final = (
    "INSERT INTO documents (key, id, source, place, content, title, metadata, chars)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_LOCATORS: Final = "INSERT INTO locators (document, data) VALUES (?, ?)"


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


@dataclass(frozen=True, slots=True)
class DocumentTotals:
    """Content hashes of all documents in order, a hash over them, and the total number of characters."""

    hashes: bytes
    fingerprint: str
    characters: int


_known: dict[bytes, DocumentTotals] = {}
"""Totals of the tables that this process read or changed last, under the token of their documents."""


def _remember(token: bytes, totals: DocumentTotals) -> None:
    _known.clear()  # cache only one list
    _known[token] = totals


class DocumentTable(SourceTable):
    """The part of the open tables that holds documents.

    The table `document_state` has a random token, which is replaced whenever documents change. Totals over
    all documents are cached in memory under this token, so that a small change does not read them all again.
    """

    def __init__(
        self,
        path: Path,
        synchronous: Literal["NORMAL", "FULL"] | None,
        prepare: Callable[[sqlite3.Connection], None],
    ) -> None:
        self._verified = -1
        self._keys: tuple[int, array[int]] | None = None
        super().__init__(path, synchronous, prepare)
        self.texts = DocumentTexts(self._db, path)

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

    def known_between(self, source: int, place: int, end: int | None) -> dict[str, Known]:
        """Return the documents of a source from a position to another by id, in order."""
        query = (
            "SELECT id, key, source, place, lower(hex(content)) FROM documents"
            " WHERE source = ? AND place >= ? AND place < ? ORDER BY place"
        )
        rows = self._db.execute(query, (source, place, 2**63 - 1 if end is None else end))
        return {name: Known(*rest) for name, *rest in in_batches(rows)}

    def _rows_of(self, query: str, ids: Iterable[str]) -> Iterator[Any]:
        for name in ids:
            yield from self._db.execute(f"{query} WHERE id = ?", (name,))

    def insert(self, new: Sequence[tuple[Document, int, int, str]]) -> None:
        """Insert documents with their sources, positions and content hashes; batches are twice as fast."""
        first = self._begin_insert()
        self._db.executemany(
            _INSERT,
            (
                (key, document.id, source, place, bytes.fromhex(content), *_payload(document))
                for key, (document, source, place, content) in enumerate(new, first)
            ),
        )
        self._set_parts(enumerate((document for document, *_ in new), first))

    def insert_batch(self, batch: DocumentBatch, contents: Sequence[bytes], source: int, place: int) -> None:
        """Insert the documents of a batch in adjacent positions."""
        first, count = self._begin_insert(), len(batch)
        keys = range(first, first + count)
        columns: tuple[Iterable[Any], ...] = (
            *(keys, batch.ids, repeat(source, count), range(place, place + count), contents),
            *(batch.titles, batch.metadata or repeat("{}", count), map(len, batch.texts)),
        )
        self._db.executemany(_INSERT, zip(*columns, strict=True))
        self.texts.put(zip(keys, batch.texts, strict=True))
        located = ((key, data) for key, data in zip(keys, batch.locators, strict=False) if data)
        self._db.executemany(_INSERT_LOCATORS, located)

    def _begin_insert(self) -> int:
        """Return the first key of new documents."""
        self._mark_changed()
        return int(self._db.execute("SELECT coalesce(max(key), 0) FROM documents").fetchone()[0]) + 1

    def _set_parts(self, documents: Iterable[tuple[int, Document]]) -> None:
        every = list(documents)
        self.texts.put((key, document.text) for key, document in every)
        located = [(key, to_text(document.locators)) for key, document in every if document.locators]
        self._db.executemany(_INSERT_LOCATORS, located)

    def update(self, key: int, document: Document, source: int, place: int, content: str) -> None:
        """Replace a document whose content changed."""
        self._mark_changed()
        self._db.execute(
            "UPDATE documents SET source = ?, place = ?, content = ?,"
            " title = ?, metadata = ?, chars = ? WHERE key = ?",
            (source, place, bytes.fromhex(content), *_payload(document), key),
        )
        self._db.execute("DELETE FROM locators WHERE document = ?", (key,))
        self._set_parts([(key, document)])

    def move(self, key: int, source: int, place: int) -> None:
        """Change the position of a document."""
        self._mark_changed()
        self._db.execute("UPDATE documents SET source = ?, place = ? WHERE key = ?", (source, place, key))

    def remove(self, keys: Iterable[int]) -> None:
        """Delete documents."""
        self._mark_changed()
        self._db.executemany("DELETE FROM documents WHERE key = ?", ((key,) for key in keys))

    def hand_over(self, generation: int) -> None:
        """Delete the texts that a published generation has."""
        keys = self.texts.published_in(generation)
        if keys:
            with self.transaction():
                self.texts.drop(keys)
            self.texts.compact()

    def contents(self) -> NDArray[np.uint8]:
        """Return the content hashes in document order: uint8[documents, 32], read once for each change."""
        import numpy as np

        return np.frombuffer(self._totals().hashes, np.uint8).reshape(-1, HASH_BYTES)

    def content_bytes(self) -> bytes:
        """Return the content hashes in document order, one after another."""
        return self._totals().hashes

    def fingerprint(self) -> str:
        """Return a hash of all documents and their order."""
        return self._totals().fingerprint

    def characters(self) -> int:
        """Return the code points of all documents' texts."""
        return self._totals().characters

    def count(self) -> int:
        """Return the number of documents."""
        found = _known.get(self._token())
        if found is not None:
            return len(found.hashes) // HASH_BYTES
        return int(self._db.execute("SELECT count(*) FROM documents").fetchone()[0])

    def set_totals(self, totals: DocumentTotals) -> None:
        """Cache the totals of the current documents."""
        _remember(self._token(), totals)

    def _totals(self) -> DocumentTotals:
        found = _known.get(self._token())  # one look: another thread may replace what is cached at any time
        if found is None:
            _known.clear()  # free the old list first
            token, found = self._read_totals()
            _remember(token, found)
        return found

    def _read_totals(self) -> tuple[bytes, DocumentTotals]:
        """Return the totals, and the token of the documents that they belong to."""
        query = (
            "SELECT count(*), sum(typeof(content) = 'blob' AND length(content) = ?), coalesce(sum(chars), 0),"
            " group_concat(content, ''), (SELECT token FROM document_state)"
            " FROM (SELECT content, chars FROM documents ORDER BY source, place)"
        )
        # The hashes are fetched as one concatenated blob: fetching a row per hash takes three times as long.
        before, self._db.text_factory = self._db.text_factory, bytes
        try:
            count, valid, characters, data, token = self._db.execute(query, (HASH_BYTES,)).fetchone()
        finally:
            self._db.text_factory = before
        if count and (valid != count or len(data) != HASH_BYTES * count):
            raise tables_damaged(self.path, "the hash of a document is invalid")
        hashes = data or b""
        return token, DocumentTotals(hashes, fingerprint_of(hashes), int(characters))

    def _mark_changed(self) -> None:
        """Replace the token because documents change; runs in the caller's transaction."""
        self._db.execute("UPDATE document_state SET token = randomblob(16)")

    def _token(self) -> bytes:
        rows = self._db.execute("SELECT token FROM document_state").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise tables_damaged(self.path, "the state of the documents is invalid")
        return rows[0][0]

    def characters_of(self, keys: Iterable[int]) -> int:
        """Return the number of code points of the given documents."""
        query = "SELECT chars FROM documents WHERE key = ?"
        return sum(int(self._db.execute(query, (key,)).fetchone()[0]) for key in keys)

    def short_hashes(self, ids: Iterable[str]) -> bytes:
        """Return the first 16 bytes of the content hash of each document, one after another."""
        rows = self._rows_of("SELECT content FROM documents", ids)
        found = hashes_of((content for (content,) in rows), self.path)
        return b"".join(found[at : at + SHORT_HASH] for at in range(0, len(found), HASH_BYTES))

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
            rows = self._db.execute(f"SELECT key FROM documents {_IN_ORDER}")  # noqa: S608 - ours
            self._keys = changes, array("q", (key for (key,) in rows))
        return self._keys[1]

    def ids_at(self, numbers: Iterable[int]) -> list[str]:
        """Return the ids of documents by their numbers in document order."""
        numbers = list(numbers)
        if len(numbers) <= _FEW:
            query = f"SELECT id FROM documents {_IN_ORDER} LIMIT 1 OFFSET ?"  # noqa: S608 - ours
            return [self._db.execute(query, (number,)).fetchone()[0] for number in numbers]
        keys = self._ordered_keys()
        query = "SELECT id FROM documents WHERE key = ?"
        return [self._db.execute(query, (keys[number],)).fetchone()[0] for number in numbers]

    def some(self, numbers: Sequence[int]) -> Iterator[StoredDocument]:
        """Yield the documents with these numbers in document order. Raises IndexDamaged if one is altered."""
        keys = self._ordered_keys() if numbers else ()
        query = f"SELECT {_PAYLOAD} WHERE key = ?"
        rows = (self._db.execute(query, (keys[number],)).fetchone() for number in numbers)
        yield from map(self._stored, self.texts.fill(rows, 0, 3))

    def stored(self, ids: Iterable[str]) -> Iterator[StoredDocument]:
        """Yield the documents with these ids, in their order. Raises IndexDamaged if one is altered."""
        rows = self._rows_of(f"SELECT {_PAYLOAD}", ids)
        yield from map(self._stored, self.texts.fill(rows, 0, 3))

    def document_of_file(self, file: KnownFile) -> tuple[Known, Document] | None:
        """Return the document of a file that has only one, with the id of the file; else None."""
        known = self.known([file.file]).get(file.file) if file.documents == 1 else None
        if known is None or (known.source, known.place) != (file.source, file.place):
            return None
        for stored in self.stored([file.file]):
            title, text = (stored.columns[name].decode("utf-8") for name in ("title", "text"))
            about = json_of(stored.columns["metadata"], self.path, f"the metadata of {file.file!r}")
            return known, Document(file.file, text, title, about, stored.locators)
        return None

    def blocks(self, size: int) -> Iterator[list[StoredDocument]]:
        """Yield all documents in order, in blocks of about `size` bytes.

        Raises IndexDamaged if one is altered.
        """
        changes = self._db.total_changes
        if self._verified != changes:
            self.check("documents")
        block: list[StoredDocument] = []
        held = 0
        rows = self._db.execute(f"SELECT {_PAYLOAD} {_IN_ORDER}")
        for stored in map(self._stored, self.texts.fill(rows, 0, 3)):
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
        columns = {"id": name, "title": title, "text": text, "metadata": metadata}
        return StoredDocument(columns, self._locators(data))

    def _locators(self, data: Any) -> tuple[Locator, ...]:
        return from_rows(json_of(data, self.path, "the locators of a document")) if data else ()

    def column(self, name: str) -> Iterator[bytes]:
        """Yield one text column (`id`, `title`, `text` or `metadata`) as UTF-8, in document order."""
        if name not in ("id", "title", "text", "metadata"):
            raise ValueError(f"unknown column {name!r} of documents")
        self.verify()
        if name == "text":
            rows = self._db.execute(f"SELECT content, CAST(text AS BLOB) {_STORED} {_IN_ORDER}")
            yield from (text for _, text in self.texts.fill(rows, 0, 1))
            return
        query = f"SELECT CAST({name} AS BLOB) FROM documents {_IN_ORDER}"  # noqa: S608 - checked above
        yield from (value for (value,) in self._db.execute(query))

    def documents(self) -> Iterator[Document]:
        """Yield all documents in order. Raises IndexDamaged if one is altered."""
        self.verify()
        query = f"SELECT content, CAST(text AS BLOB), id, title, metadata, data {_LOCATED} {_IN_ORDER}"
        for _, text, name, title, metadata, data in self.texts.fill(self._db.execute(query), 0, 1):
            about = json_of(metadata, self.path, f"the metadata of {name!r}")
            yield Document(name, text.decode("utf-8"), title, about, self._locators(data))

    def located(self) -> Iterator[tuple[int, tuple[Locator, ...]]]:
        """Yield (number in document order, locators) of the documents that have any."""
        if not self.has_locators():
            return
        query = f"SELECT data FROM documents LEFT JOIN locators ON document = key {_IN_ORDER}"  # noqa: S608
        for place, (data,) in enumerate(self._db.execute(query)):
            if data is None:
                continue
            try:
                yield place, self._locators(data)
            except (TypeError, ValueError) as error:
                raise tables_damaged(self.path, f"the locators of document {place} are invalid") from error

    def has_locators(self) -> bool:
        """Return whether a document has locators."""
        return self._db.execute("SELECT 1 FROM locators LIMIT 1").fetchone() is not None

    def altered(self) -> dict[int, str]:
        """Map the keys of documents whose stored content does not match their hash to their ids."""
        rows = self._db.execute(f"SELECT key, id, {_PAYLOAD} {_IN_ORDER}")
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

    def verify(self) -> None:
        """Raise IndexDamaged if the text of a document is altered. Checked once after each change."""
        if self._verified == self._db.total_changes:
            return
        changes = self._db.total_changes
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

    def set_verified(self) -> None:
        """Record that the current documents were verified by other means than `verify`."""
        self._verified = self._db.total_changes

    def verify_unchanged(self, units: Mapping[str, NDArray[Any]], rows: NDArray[np.int64]) -> None:
        """Raise IndexDamaged if a document is altered. Mostly reads no text.

        Args:
            units: the intact arrays of the stage "units" of a generation.
            rows: the row of each current document in `units`; -1 for a new one, verified when it is read.
        """
        if self._verified == self._db.total_changes:
            return
        if self.are_as_published(units, rows):
            self.set_verified()
        else:
            self.verify()

    def are_as_published(self, units: Mapping[str, NDArray[Any]], rows: NDArray[np.int64]) -> bool:
        """Return whether the unchanged documents have the id, title and metadata that were published.

        For a document that has not changed since, the arrays hold what was hashed, and their checksums are
        verified, so this is enough. Texts in the tables are verified by their hashes. Documents with sections
        or locators return False, because the arrays lack a part of what was hashed.
        """

        import numpy as np

        if len(units["document_ids_offsets"]) - 1 != int(units["document_count"][0]) or self.has_locators():
            return False
        self.check("documents")
        query = (
            "SELECT CAST(id AS BLOB), CAST(title AS BLOB), CAST(metadata AS BLOB), stored.document NOT NULL "
            f"{_STORED} {_IN_ORDER}"
        )
        described = list(in_batches(self._db.execute(query)))
        if len(described) != len(rows):
            return False
        numbers = np.flatnonzero(rows >= 0)
        described = [described[number] for number in numbers.tolist()]
        in_tables = [number for number, one in zip(numbers.tolist(), described, strict=True) if one[3]]
        for _ in self.some(in_tables):
            pass
        published = rows[numbers].astype(np.uint32)
        has_metadata = "document_metadata_offsets" in units
        if not has_metadata and any(one[2] != b"{}" for one in described):
            return False
        columns = ("document_ids", "document_titles", "document_metadata")[: 2 + has_metadata]
        return all(
            _is_column(units, name, published, [one[at] for one in described])
            for at, name in enumerate(columns)
        )


def _is_column(
    units: Mapping[str, NDArray[Any]], name: str, rows: NDArray[np.uint32], values: Sequence[bytes]
) -> bool:
    """Return whether the given rows of a published string column equal these values."""

    import numpy as np

    blob, offsets = _core.take_strings((units[f"{name}_blob"], units[f"{name}_offsets"]), rows)
    lengths = np.fromiter(map(len, values), np.uint64, len(values))
    return bool((np.diff(offsets) == lengths).all()) and blob.tobytes() == b"".join(values)


def _payload(document: Document) -> tuple[str, str, int]:
    return document.title, metadata_json(document), len(document.text)


def _is_unaltered(content: object, *parts: bytes | None) -> bool:
    """Return whether the columns of `_PAYLOAD` match the content hash; the text is None if it is lost."""
    return parts[_TEXT] is not None and raw_digest(part for part in parts if part is not None) == content
