"""JSON lines: one document per line. A malformed line is a failure; the other lines are read."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.citation_table import table_of, with_citations
from ketrag_fast.readers.decode import decode, mark_of
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.record import parse_line


def read_jsonl(file: SourceFile) -> Iterator[Item]:
    """Yield a document for each line, {_id, title, text, metadata}; skip blank lines.

    Citations in a table next to a corpus are added to the metadata.
    """
    return with_citations(file, _lines(file))


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
            try:
                text = decode(data, file.fallback_encoding)
            except DocumentError as error:
                yield file.failure(f"line {number}: {error}", number)
                continue
            yield parse_line(file, number, text)
        if empty:
            yield file.failure("the file is empty")
