"""What a reader gets and gives."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from ketrag_fast.types import Document, Failure

Item = Document | Failure


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source. `id` is its path relative to the source, with `/`. `data` are the bytes of what is
    no file of its own: a member of an archive, a part of a mail; `depth` says in how many it lies. With
    `follow_links`, files that are read with this one may be links that lead out of its folder.
    """

    path: Path
    id: str
    fallback_encoding: str = "cp1252"
    data: bytes | None = None
    depth: int = 0
    follow_links: bool = False

    @property
    def suffix(self) -> str:
        """`.pdf`, in small letters."""
        return PurePosixPath(self.id).suffix.lower() if self.data is not None else self.path.suffix.lower()

    def read_bytes(self) -> bytes:
        """All of it."""
        return self.path.read_bytes() if self.data is None else self.data

    def open(self) -> BinaryIO:
        """The same as a stream."""
        return self.path.open("rb") if self.data is None else io.BytesIO(self.data)

    def head(self, size: int) -> bytes:
        """Its first bytes."""
        with self.open() as stream:
            return stream.read(size)

    def size(self) -> int:
        """In bytes."""
        return self.path.stat().st_size if self.data is None else len(self.data)

    def member(self, name: str, data: bytes) -> SourceFile:
        """What lies in this file under a name."""
        return replace(self, id=f"{self.id}/{name}", data=data, depth=self.depth + 1)

    def failure(self, message: str, line: int | None = None) -> Failure:
        """This file, or one line or row of it, could not be read."""
        where = self.id if line is None else f"{self.id}:{line}"
        return Failure(where, "document", message)


def is_inside(path: Path, root: Path) -> bool:
    """Whether a path leads, past all links, to a place in a folder."""
    real, top = os.path.realpath(path), os.path.realpath(root)
    return real == top or real.startswith(top.rstrip(os.sep) + os.sep)


class Reader(Protocol):
    """Gives the documents of one file, in order; what cannot be read is given as a Failure.

    Raises DocumentError or OSError only where nothing (more) of the file can be read.
    """

    def __call__(self, file: SourceFile, /) -> Iterator[Item]:
        """The documents of `file`."""
