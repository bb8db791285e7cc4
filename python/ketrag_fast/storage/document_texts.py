"""Document texts: stored in the table `texts` until a generation that contains them is published.

A text is stored once. The rows of `texts` make a build restartable. After publication each row is compared
with the text in the generation and deleted; from then on the text is read from the generation.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.errors import StorageFull
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.published_texts import PublishedTexts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TEXTS_SCHEMA: Final = """
CREATE TABLE texts (                     -- of documents that no published generation has yet
  document INTEGER PRIMARY KEY REFERENCES documents (key) ON DELETE CASCADE,
  text     TEXT NOT NULL
) STRICT;
"""
HASH_BYTES: Final = 32
"""Length of the content hash of a document."""
_BATCH: Final = 512
_HEAD: Final = 8
"""Length in bytes of a hash prefix that distinguishes documents well enough to find missing texts."""
_MUCH: Final = 2
"""The tables are compacted if more than 1/`_MUCH` of their pages are free."""


class DocumentTexts:
    """The texts of the documents of an index whose tables are in the file `path`."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._layout = Layout(path.parent)
        self._published = PublishedTexts(self._layout)

    def read_also(self, others: Sequence[Layout]) -> None:
        """Set other indexes whose generations are searched for texts that this index lacks."""
        self._published = PublishedTexts(self._layout, others)

    def put(self, texts: Iterable[tuple[int, str]]) -> None:
        """Store the texts of new or changed documents; each is paired with the document's key."""
        self._db.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?)", texts)

    def fill(self, rows: Iterable[Sequence[Any]], content: int, text: int) -> Iterator[Sequence[Any]]:
        """Yield rows with their texts filled in (UTF-8); a lost text stays None.

        `content` and `text` are columns: the hash of the document, and its text in the tables or None.
        """
        rest = iter(rows)
        while batch := list(islice(rest, _BATCH)):
            absent = [at for at, row in enumerate(batch) if row[text] is None and is_hash(row[content])]
            if absent:
                found = self._published.find([batch[at][content] for at in absent])
                for at, value in zip(absent, found, strict=True):
                    row = batch[at]
                    batch[at] = (*row[:text], value, *row[text + 1 :])
            yield from batch

    def all_here(self) -> bool:
        """Return whether the tables contain all texts, so that no generation is needed."""
        return not self._absent("SELECT 1", 1)

    def are_in(self, hashes: NDArray[np.uint8]) -> bool:
        """Return whether a generation with these `document_hashes` has every text that the tables lack."""

        import numpy as np

        absent = b"".join(
            content[:_HEAD] for (content,) in self._absent("SELECT content") if is_hash(content)
        )
        known = np.ascontiguousarray(hashes[:, :_HEAD]).view(np.uint64).reshape(-1)
        return bool(np.isin(np.frombuffer(absent, np.uint64), known).all())

    def _absent(self, select: str, most: int = -1) -> list[tuple[Any, ...]]:
        """Select from the documents whose text is not in the tables."""
        query = f"{select} FROM documents WHERE key NOT IN (SELECT document FROM texts) LIMIT ?"  # noqa: S608
        return self._db.execute(query, (most,)).fetchall()

    def published_in(self, generation: int) -> list[int]:
        """Return the keys of the texts that a published generation returns unchanged."""
        published = self._published.only(generation)
        self._published = PublishedTexts(self._layout)
        rows = self._db.execute(
            "SELECT document, content, CAST(text AS BLOB) FROM texts JOIN documents ON key = document"
            " ORDER BY source, place"
        )
        same: list[int] = []
        from concurrent.futures import Future, ThreadPoolExecutor  # imported here because an edit needs none

        with ThreadPoolExecutor(1, thread_name_prefix="ketrag-texts") as pool:
            before: tuple[list[Any], Future[list[bytes | None]]] | None = None
            more = True
            while more:
                batch = list(islice(rows, _BATCH))  # runs while the texts of the previous batch are unpacked
                more = bool(batch)
                found = pool.submit(published.find, [content for _, content, _ in batch])
                if before is not None:
                    pairs = zip(*before[:1], before[1].result(), strict=True)
                    same += [key for (key, _, text), there in pairs if there == text]
                before = batch, found
        return same

    def drop(self, keys: Sequence[int]) -> None:
        """Delete texts from the tables; runs in the caller's transaction."""
        if len(keys) == self._db.execute("SELECT count(*) FROM texts").fetchone()[0]:
            self._db.execute("DELETE FROM texts")  # without reading the rows
        else:
            self._db.executemany("DELETE FROM texts WHERE document = ?", ((key,) for key in keys))

    def compact(self) -> None:
        """Compact the file if deleted texts leave much of it free."""
        free, pages = (
            int(self._db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("freelist_count", "page_count")
        )
        if _MUCH * free > pages:
            with suppress(StorageFull, sqlite3.OperationalError):  # a larger file still works
                self._db.execute("VACUUM")


def is_hash(content: object) -> bool:
    """Return whether a value is the content hash of a document."""
    return isinstance(content, bytes) and len(content) == HASH_BYTES
