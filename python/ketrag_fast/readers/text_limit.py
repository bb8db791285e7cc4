"""Limit the text read from one file: a small file can repeat a text until it fills the disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ketrag_fast.readers.protocol import Items, SourceFile
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import DocumentBatch

MILLION: Final = 1_000_000
READ_TEXT: Final = 200
"""Default of the setting read_text, in millions of characters."""
_TIMES: Final = 4
"""A file larger than a quarter of the limit may give this many characters per byte."""
_ENTRY: Final = 16
"""Characters counted for a number, a name or a locator, in addition to its texts."""


def within(file: SourceFile, items: Iterable[Items], millions: int) -> Iterator[Items]:
    """Yield the items of a file until they exceed a limit; then yield a Failure and stop.

    The limit for text, metadata and locators is `millions` of characters or 4 times the file size, whichever
    is larger.
    """
    limit = max(millions * MILLION, _TIMES * file.size())
    produced = 0
    for item in items:
        for one in _fitting(item, limit - produced):
            produced += characters_of(one)
            if produced > limit:
                yield file.failure(
                    f"the file gives more than {limit:,} characters (setting read_text: {millions:,} million"
                    f", or {_TIMES} times the file size); the text before that is kept"
                )
                return
            yield one


def _fitting(item: Items, left: int) -> Iterable[Items]:
    """Return the item, or its documents if it is a batch with more than `left` characters."""
    is_large = isinstance(item, DocumentBatch) and item.characters > left
    return item.documents() if is_large and isinstance(item, DocumentBatch) else (item,)


def characters_of(item: Items) -> int:
    """Return the characters of documents with metadata and locators, or of a failure."""
    if isinstance(item, DocumentBatch):
        return item.characters
    if isinstance(item, Failure):
        return len(item.document) + len(item.message)
    found = len(item.id) + len(item.text) + len(item.title)
    if not item.metadata and not item.locators:
        return found + _ENTRY
    found += _characters(item.metadata)
    return found + sum(len(one.kind) + _of_value(one.kind, one.value) + 2 * _ENTRY for one in item.locators)


def _of_value(kind: str, value: Any) -> int:
    """Return the characters of a locator's value; most are boxes, lists of four numbers."""
    return 5 * _ENTRY if kind == "box" and len(value) == 4 else _characters(value)


def _characters(value: Any) -> int:
    found = 0
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            found += len(one)
        elif isinstance(one, Mapping):
            found += sum(len(str(name)) for name in one)
            pending.extend(one.values())
        elif isinstance(one, (list, tuple)):
            pending.extend(one)
        found += _ENTRY
    return found
