"""What a reader makes of the bytes of a file, in this process."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers import SourceFile, items_of, known_kind
from ketrag_fast.types import Document, Failure


def read_all(name: str, data: bytes) -> tuple[list[Document], list[str]]:
    """The documents, and the reasons of what failed."""
    file = SourceFile(Path(name), name, data=data)
    try:
        kind = known_kind(file)
    except DocumentError as error:
        return [], [str(error)]
    items = list(items_of(file, kind)) if kind is not None else [file.failure("no reader")]
    documents = [item for item in items if isinstance(item, Document)]
    return documents, [f"{item.document}: {item.message}" for item in items if isinstance(item, Failure)]


def read_one(name: str, data: bytes) -> Document:
    """The only document, without a failure."""
    documents, failures = read_all(name, data)
    assert failures == []
    assert len(documents) == 1
    return documents[0]


def at(document: Document, kind: str) -> list[tuple[object, str]]:
    """The stretches of a kind: (value, text)."""
    found = [one for one in document.locators if one.kind == kind]
    return [(one.value, document.text[one.start : one.end]) for one in found]
