"""The interface of readers: a source file in, documents and failures out."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from ketrag_fast.types import Document, Failure
from ketrag_fast.types.document_batch import DocumentBatch

Item = Document | Failure
Items = Item | DocumentBatch
"""An item of a reader that also yields documents in batches."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source.

    `id` is its path relative to the source, with `/`. `data` has the bytes of an archive member or a mail
    attachment, and `depth` its nesting depth. With `follow_links`, companion files may be links to files
    outside its folder. `ocr` has the languages in which the text of scanned pages is recognised. A reader may
    use up to `processes` processes; the result does not depend on them.
    """

    path: Path
    id: str
    fallback_encoding: str = "cp1252"
    data: bytes | None = None
    depth: int = 0
    follow_links: bool = False
    ocr: str | None = None
    processes: int = 1

    @property
    def suffix(self) -> str:
        """The suffix in lower case, such as `.pdf`."""
        return PurePosixPath(self.id).suffix.lower() if self.data is not None else self.path.suffix.lower()

    def read_bytes(self) -> bytes:
        """Return the content."""
        return self.path.read_bytes() if self.data is None else self.data

    def open(self) -> BinaryIO:
        """Open the content as a stream."""
        return self.path.open("rb") if self.data is None else io.BytesIO(self.data)

    def head(self, size: int) -> bytes:
        """Return the first `size` bytes."""
        with self.open() as stream:
            return stream.read(size)

    def size(self) -> int:
        """Return the size in bytes."""
        return self.path.stat().st_size if self.data is None else len(self.data)

    def member(self, name: str, data: bytes) -> SourceFile:
        """Return a member of this file as a source file."""
        return replace(self, id=f"{self.id}/{name}", data=data, depth=self.depth + 1)

    def failure(self, message: str, line: int | None = None) -> Failure:
        """Return the failure to read this file, or one line or row of it."""
        where = self.id if line is None else f"{self.id}:{line}"
        return Failure(where, "document", message)

    def partial(self, message: str) -> Failure:
        """Return the failure to read a part of this file, whose other parts are indexed."""
        return Failure(self.id, "part", message)


def is_inside(path: Path, root: Path) -> bool:
    """Return whether a path is inside a folder after all symbolic links are resolved."""
    real, top = os.path.realpath(path), os.path.realpath(root)
    return real == top or real.startswith(top.rstrip(os.sep) + os.sep)


class Reader(Protocol):
    """Yields the documents of one file, in order, and a Failure for each part that cannot be read.

    Raises DocumentError or OSError only if the file, or the rest of it, cannot be read.
    """

    def __call__(self, file: SourceFile, /) -> Iterator[Item]:
        """Yield the documents of `file`."""
