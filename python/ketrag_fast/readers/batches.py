"""Documents of a reader process, put together: the steps of a build cost less for many documents at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.readers.protocol import Items
from ketrag_fast.types import Document
from ketrag_fast.types.documents import DocumentBatch, metadata_text
from ketrag_fast.types.locations import Locator, from_rows, problem_of, to_text

_MOST: Final = 256
"""Documents of a batch: enough that the steps for each batch cost little, few enough to keep memory small."""
_CHARACTERS: Final = 1 << 18
Row = list[str]
"""Id, text, title, metadata and locators of a document, the last two in JSON; "" for no locators."""


def row_of(document: Document) -> Row:
    """Return a document as a row.

    Raises TypeError, ValueError or RecursionError for metadata that JSON cannot express.
    """
    try:
        metadata = metadata_text(document.metadata)
    except TypeError:  # a value that JSON does not have becomes a text
        metadata = metadata_text(json.loads(json.dumps(dict(document.metadata), default=str)))
    return [document.id, document.text, document.title, metadata, to_text(document.locators)]


class Batches:
    """Passes rows on in batches, in order; `flush` passes on the last ones."""

    def __init__(self, put: Callable[[Items], object]) -> None:
        self._put = put
        self._rows: list[Row] = []
        self._characters = 0

    def add(self, row: Row) -> None:
        """Add a document. Raises ValueError if it is not a row."""
        if len(row) != 5 or not all(type(value) is str for value in row):
            raise ValueError("not the row of a document")
        self._rows.append(row)
        self._characters += len(row[1])
        if len(self._rows) >= _MOST or self._characters >= _CHARACTERS:
            self.flush()

    def flush(self) -> None:
        """Pass on what was added."""
        rows, self._rows, self._characters = self._rows, [], 0
        if len(rows) == 1:
            self._put(_document(rows[0]))
        elif rows and (batch := batch_of(rows)) is not None:
            self._put(batch)
        else:
            for row in rows:
                self._put(_document(row))


def in_batches(items: Iterable[Items]) -> Iterator[Items]:
    """Yield items in order, adjacent documents in batches if they can be stored as they are."""
    held: list[Document] = []
    characters = 0
    for item in items:
        if isinstance(item, Document):
            held.append(item)
            characters += len(item.text)
            if len(held) < _MOST and characters < _CHARACTERS:
                continue
        yield from _together(held)
        held, characters = [], 0
        if not isinstance(item, Document):
            yield item
    yield from _together(held)


def _together(documents: list[Document]) -> Iterable[Items]:
    """Return documents as one batch, or as they are if there is only one or one must be changed."""
    if len(documents) < 2:
        return documents
    try:
        batch = batch_of([row_of(document) for document in documents])
    except (TypeError, ValueError, RecursionError):
        return documents  # the build reports which one cannot be stored
    return documents if batch is None else (batch,)


def batch_of(rows: list[Row]) -> DocumentBatch | None:
    """Return documents as a batch, or None if one of them must be changed, or refused, before it is stored.

    Raises ValueError or TypeError for invalid metadata or locators.
    """
    ids, texts, titles, metadata, locators = map(list, zip(*rows, strict=True))
    try:
        made = _core.pack_documents(ids, titles, texts, metadata, locators)
    except UnicodeEncodeError:  # half of a character
        return None
    if made is None:
        return None
    for value in metadata:
        _fields(value)
    located = {at: _located(value) for at, value in enumerate(locators) if value}
    if any(problem_of(own, len(texts[at])) is not None for at, own in located.items()):
        return None
    packed = dict(zip(("id", "title", "text", "metadata"), made[0], strict=True))
    if all(value == "{}" for value in metadata):
        del packed["metadata"]
    return DocumentBatch(ids, titles, texts, made[1], packed, metadata, locators, located)


def _document(row: Row) -> Document:
    name, text, title, metadata, locators = row
    return Document(name, text, title, _fields(metadata), _located(locators))


def _fields(metadata: str) -> dict[str, Any]:
    found = json.loads(metadata) if metadata != "{}" else {}
    if type(found) is not dict:
        raise ValueError("the metadata of a document is not an object")
    return found


def _located(locators: str) -> tuple[Locator, ...]:
    return from_rows(json.loads(locators)) if locators else ()
