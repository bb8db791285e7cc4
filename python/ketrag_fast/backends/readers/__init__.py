"""Readers: a file becomes documents. `reader_for` is the registry; a new format is one more row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ketrag_fast.backends.readers.base import Item, Reader, SourceFile
from ketrag_fast.backends.readers.files import Found, find, is_glob
from ketrag_fast.backends.readers.jsonl import read_jsonl
from ketrag_fast.backends.readers.table import read_table
from ketrag_fast.backends.readers.text import read_markdown, read_plain, read_rst

READERS: Mapping[str, Reader] = {
    ".txt": read_plain,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".rst": read_rst,
    ".csv": read_table,
    ".tsv": read_table,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
}


def reader_for(suffix: str) -> Callable[[SourceFile], Iterator[Item]] | None:
    """The reader of files that end so (`.txt`), in any case; None if there is none."""
    return READERS.get(suffix.lower())


__all__ = ["READERS", "Found", "Item", "Reader", "SourceFile", "find", "is_glob", "reader_for"]
