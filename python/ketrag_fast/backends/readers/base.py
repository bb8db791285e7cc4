"""What a reader gets and gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ketrag_fast.types import Document, Failure

Item = Document | Failure


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source. `id` is its path relative to the source, with `/`."""

    path: Path
    id: str
    fallback_encoding: str = "cp1252"

    def failure(self, message: str, line: int | None = None) -> Failure:
        """This file, or one line or row of it, could not be read."""
        where = self.id if line is None else f"{self.id}:{line}"
        return Failure(where, "document", message)


class Reader(Protocol):
    """Gives the documents of one file, in order; what cannot be read is given as a Failure.

    Raises DocumentError or OSError only where nothing (more) of the file can be read.
    """

    def __call__(self, file: SourceFile, /) -> Iterator[Item]:
        """The documents of `file`."""
