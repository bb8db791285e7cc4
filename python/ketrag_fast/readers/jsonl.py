"""JSON lines: a line is a document. Read line by line; a broken line is named and the others go on."""

from __future__ import annotations

from collections.abc import Iterator

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.citation_table import with_citations
from ketrag_fast.readers.decode import decode, mark_of
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.record import parse_line


def read_jsonl(file: SourceFile) -> Iterator[Item]:
    """{_id, title, text, metadata} on each line; blank lines are passed over. Citations that stand in a
    table beside a corpus are added.
    """
    return with_citations(file, _lines(file))


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
