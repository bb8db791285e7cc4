"""Record the guessed encoding of a document in its metadata, and report an uncertain guess."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ketrag_fast.readers.protocol import Items, SourceFile
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import ENCODING
from ketrag_fast.types.locations import Locator


def with_encoding(file: SourceFile, items: Iterator[Items]) -> Iterator[Items]:
    """Yield the items of a file, documents with the encoding that was assumed for their text.

    A guess that may be wrong is reported once, after the items.
    """
    for item in items:
        name = file.assumed.encoding
        yield noted(item, name) if name is not None and isinstance(item, Document) else item
    if file.assumed.guess is not None:
        yield unsure(file, file.assumed.guess)


def noted(document: Document, name: str) -> Document:
    """Return a document with an encoding in its metadata, unless they have a field of this name."""
    metadata: dict[str, Any] = {ENCODING: name, **document.metadata}
    where = Locator(0, len(document.text), ENCODING, name)
    return replace(document, metadata=metadata, locators=(*document.locators, where))


def unsure(file: SourceFile, name: str) -> Failure:
    """Return a failure which reports that the guessed encoding of a file may be wrong."""
    return Failure(file.id, ENCODING, f"read as {name}, which may be wrong")
