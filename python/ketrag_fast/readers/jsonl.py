"""JSON lines: one document per line. A malformed line is a failure; the other lines are read."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.citation_table import table_of, with_citations
from ketrag_fast.readers.decode import CONTROLS, decode, mark_of
from ketrag_fast.readers.protocol import Item, Items, SourceFile
from ketrag_fast.readers.record import parse_line
from ketrag_fast.types.document_batch import DocumentBatch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK: Final = 1 << 18
"""Bytes that are read together: little work between two looks at the clock."""
_MARK: Final = codecs.BOM_UTF8
_NO_METADATA: Final[dict[str, Any]] = {}


def read_jsonl(file: SourceFile) -> Iterator[Item]:
    """Yield a document for each line, {_id, title, text, metadata}; skip blank lines.

    Citations in a table next to a corpus are added to the metadata.
    """
    return with_citations(file, _lines(file))


def read_jsonl_batches(file: SourceFile) -> Iterator[Items]:
    """Yield the same documents and failures, plain documents in batches.

    Lines with errors, metadata or another encoding are parsed one by one, as `read_jsonl` does.
    """
    table = table_of(file)
    head = mark_of(file.head(4))
    if head[1] not in (None, "utf-8") or (table is not None and os.path.lexists(table)):
        yield from read_jsonl(file)
        return
    with file.open() as stream:
        stream.seek(head[0])
        first = 1
        while block := stream.read(_BLOCK):
            block += stream.readline()
            plain = PlainLines()
            *lines, last = block.split(b"\n")
            lines = [*(line + b"\n" for line in lines), *([last] if last else [])]
            texts = _decoded(block)
            for at, data in enumerate(lines):
                if not data.strip():
                    continue
                number = first + at
                if texts is None or not plain.add(texts[at], f"{file.id}:{number}"):
                    if len(plain):
                        yield plain.batch()
                        plain = PlainLines()
                    yield _parsed(file, number, data)
            if len(plain):
                yield plain.batch()
            first += len(lines)
        if first == 1:
            yield file.failure("the file is empty")


def _decoded(block: bytes) -> list[str] | None:
    """Return the lines of a block as texts; None if `decode` may read one of them otherwise."""
    if len(block.translate(None, CONTROLS)) < len(block) or _MARK in block:
        return None
    try:
        return str(block, "utf-8").split("\n")
    except UnicodeDecodeError:
        return None


class PlainLines:
    """Documents of lines without anything unusual."""

    def __init__(self) -> None:
        self._columns: tuple[list[str], list[str], list[str]] = ([], [], [])
        self._bytes: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, line: str, default: str) -> bool:
        """Add the document of a line, by default named `default`; False if it is left to `parse_line`."""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if type(record) is not dict:
            return False
        name, title, text = record.get("_id"), record.get("title"), record.get("text")
        if name is None:
            name = record.get("id")
        if name is None or name == "":
            name = default
        elif type(name) is int:
            name = str(name)
        title = "" if title is None else title
        if type(name) is not str or type(title) is not str or type(text) is not str:
            return False
        if record.get("metadata") not in (None, _NO_METADATA):
            return False
        if not text or (text.isspace() and (not title or title.isspace())):
            return False
        try:
            parts = name.encode(), title.encode(), text.encode()
        except UnicodeEncodeError:  # half of a pair
            return False
        for column, value in zip(self._columns, (name, title, text), strict=True):
            column.append(value)
        for encoded, part in zip(self._bytes, parts, strict=True):
            encoded.append(part)
        return True

    def batch(self) -> DocumentBatch:
        """Return the documents."""
        ids, titles, texts = self._columns
        packed = {
            name: _pack(parts) for name, parts in zip(("id", "title", "text"), self._bytes, strict=True)
        }
        return DocumentBatch(ids, titles, texts, self._bytes, packed)


def _pack(parts: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    import numpy as np

    ends = np.zeros(len(parts) + 1, np.uint64)
    np.cumsum(np.fromiter(map(len, parts), np.uint64, len(parts)), out=ends[1:])
    return np.frombuffer(b"".join(parts), np.uint8), ends


def _parsed(file: SourceFile, number: int, data: bytes) -> Item:
    try:
        text = decode(data, file.fallback_encoding)
    except DocumentError as error:
        return file.failure(f"line {number}: {error}", number)
    return parse_line(file, number, text)


def has_short_lines(file: SourceFile, most: int) -> bool:
    """Return whether no line is longer than `most` bytes and nothing else is read whole.

    It may also return False for lines of more than a quarter of that.
    """
    table = table_of(file)
    if table is not None and os.path.lexists(table):
        return False
    with file.open() as stream:
        block = stream.read(most // 4)
        if mark_of(block)[1] not in (None, "utf-8"):
            return False
        while len(block) == most // 4:
            if b"\n" not in block:
                return False
            block = stream.read(most // 4)
    return True


def _lines(file: SourceFile) -> Iterator[Item]:
    with file.open() as stream:
        length, encoding = mark_of(stream.read(4))
        stream.seek(0)
        if encoding not in (None, "utf-8"):  # lines of UTF-16 cannot be cut at a byte
            lines = decode(stream.read(), file.fallback_encoding).split("\n")
            for number, text in enumerate(lines, 1):
                if text.strip():
                    yield parse_line(file, number, text)
            return
        stream.seek(length)
        empty = True
        for number, data in enumerate(stream, 1):
            empty = False
            if not data.strip():
                continue
            yield _parsed(file, number, data)
        if empty:
            yield file.failure("the file is empty")
