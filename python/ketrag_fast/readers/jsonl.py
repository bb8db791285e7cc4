"""JSON lines: one document per line. A malformed line is a failure; the other lines are read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Final

from ketrag_fast import _core
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.citation_table import table_of, with_citations
from ketrag_fast.readers.decode import mark_of
from ketrag_fast.readers.protocol import Item, Items, SourceFile
from ketrag_fast.readers.record import parse_line
from ketrag_fast.types.document_batch import DocumentBatch

_BLOCK: Final = 1 << 18
"""Bytes that are read together: little work between two looks at the clock."""
_COPIES: Final = 8
"""Memory that reading a line takes, times its size: as bytes, parsed, and written for another process."""


def read_jsonl(file: SourceFile) -> Iterator[Item]:
    """Yield a document for each line, {_id, title, text, metadata}; skip blank lines.

    Citations in a table next to a corpus are added to the metadata.
    """
    return with_citations(file, _lines(file))


def read_jsonl_batches(file: SourceFile) -> Iterator[Items]:
    """Yield the same documents and failures, plain documents in batches, which the core parses.

    Lines with errors, metadata or another encoding are parsed one by one, as `read_jsonl` does.
    """
    table = table_of(file)
    head = mark_of(file.head(4))
    if head[1] not in (None, "utf-8") or (table is not None and os.path.lexists(table)):
        yield from read_jsonl(file)
        return
    with file.open() as stream:
        stream.seek(head[0])
        number, longest = 1, _longest_line()
        while block := stream.read(_BLOCK):
            rest = stream.readline(longest)
            is_whole = len(rest) < longest or rest.endswith(b"\n")
            block = block + rest if is_whole else block[: block.rfind(b"\n") + 1]
            if block:
                ids, titles, texts, contents, left, lines = _core.read_json_lines(block, file.id, number)
                packed = {"id": ids[1], "title": titles[1], "text": texts[1]}
                batch = DocumentBatch(ids[0], titles[0], texts[0], contents, packed)
                yield from _in_order(file, batch, left)
                number += lines
            if not is_whole:
                while rest and not rest.endswith(b"\n"):
                    rest = stream.readline(_BLOCK)
                yield file.failure(
                    f"line {number}: it is larger than {longest:,} bytes, an eighth of read_memory",
                    number,
                )
                number += 1
        if number == 1:
            yield file.failure("the file is empty")


def _longest_line() -> int:
    """Return the size of the longest line that is read: its text is copied several times."""
    if sys.platform == "win32":  # it limits a process in another way
        return sys.maxsize
    import resource

    bound, _ = resource.getrlimit(resource.RLIMIT_AS)
    return sys.maxsize if bound == resource.RLIM_INFINITY else max(bound // _COPIES, _BLOCK)


def _in_order(file: SourceFile, batch: DocumentBatch, left: list[tuple[int, int, bytes]]) -> Iterator[Items]:
    """Yield the documents of a batch up to each line that was left to `parse_line`, and what this line is."""
    if not left:
        if len(batch):
            yield batch
        return
    start = 0
    for before, number, data in left:
        if start < before:
            yield batch.part(start, before)
        yield _parsed(file, number, data)
        start = before
    if start < len(batch):
        yield batch.part(start, len(batch))


def _parsed(file: SourceFile, number: int, data: bytes) -> Item:
    try:
        text = file.line(data)
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
            lines = file.text(stream.read()).split("\n")
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
