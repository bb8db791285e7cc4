"""The interface of readers: a source file in, documents and failures out."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import BinaryIO, Final, Protocol

from ketrag_fast._core import decode_text
from ketrag_fast.base.installed import install_command
from ketrag_fast.base.open_beneath import open_regular
from ketrag_fast.errors import BackendMissing, DocumentError
from ketrag_fast.readers.decode import Decoded, decode
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import MEMBER, DocumentBatch

Item = Document | Failure
Items = Item | DocumentBatch
"""An item of a reader that also yields documents in batches."""
_SAMPLE: Final = 1 << 20
"""Bytes of a file of lines by which its encoding is guessed."""


@dataclass(slots=True)
class Assumed:
    """The encoding of the text that was decoded last, and what else was assumed to decode a file.

    `encoding` is None for UTF-8 and after a byte order mark. `guess` is an encoding that may be wrong, and
    `of_lines` the guess for the lines of a file that are decoded one by one.
    """

    encoding: str | None = None
    guess: str | None = None
    of_lines: str | None = None

    def note(self, found: Decoded) -> None:
        """Note how a text was decoded."""
        self.encoding = None if found.is_declared else found.encoding
        if not found.is_sure:
            self.guess = found.encoding


MOST_LINES: Final = 1_000
"""Maximum number of lines or rows of a file that are reported one by one: a million took a minute."""
RATIO: Final = 100
"""Maximum unpacked size of an archive as a multiple of its packed size, beyond `UNPACKED` bytes.

A sheet of 60,000 similar rows unpacks to 12 times its size, one of 780,000 zeros and the log of a service to
14 times; DEFLATE can reach 1,032. At 400, a DOCX file of 1.4 MB took 20 s, a sheet of 2.8 MB more than 100 s.
"""
UNPACKED: Final = 20_000_000
"""Bytes to which any archive may unpack, and characters that any file may give."""


@dataclass(slots=True)
class Unpacked:
    """The bytes that a file and the archives in it have unpacked to."""

    size: int = 0


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source.

    `id` is its path relative to the source, with `/`. `data` has the bytes of an archive member or a mail
    attachment, and `depth` its nesting depth. With `root`, the file is opened only if it is inside that
    folder after all links. With `follow_links`, companion files may be links to files outside its folder.
    `ocr` has the languages in which the text of scanned pages is recognised. A reader may use up to
    `processes` processes; the result does not depend on them. With `hidden`, hidden sheets, rows, columns
    and slides are read, with `generated` also members of an archive that a program wrote. A file that is
    `alone`, because it is itself the source, is not read as a part of its repository; `in_repository` is None
    if that is not known.
    """

    path: Path
    id: str
    fallback_encoding: str | None = None
    data: bytes | None = None
    depth: int = 0
    root: Path | None = None
    follow_links: bool = False
    ocr: str | None = None
    processes: int = 1
    hidden: bool = False
    generated: bool = False
    alone: bool = False
    in_repository: bool | None = None
    assumed: Assumed = field(default_factory=Assumed, init=False, compare=False, repr=False)
    unpacked: Unpacked = field(default_factory=Unpacked, compare=False, repr=False)
    """Shared by a file, its members and theirs."""

    @property
    def suffix(self) -> str:
        """The suffix in lower case, such as `.pdf`."""
        return PurePosixPath(self.id).suffix.lower() if self.data is not None else self.path.suffix.lower()

    def read_bytes(self) -> bytes:
        """Return the content."""
        if self.data is not None:
            return self.data
        with self.open() as stream:
            return stream.read()

    def text(self, data: bytes | None = None) -> str:
        """Return the decoded content, or that of `data`, and note which encoding was assumed."""
        found = decode(self.read_bytes() if data is None else data, self.fallback_encoding)
        self.assumed.note(found)
        return found.text

    def line(self, data: bytes) -> str:
        """Return a decoded line. The encoding is guessed once, from the beginning of the file."""
        found = decode(data, self.fallback_encoding, self.assumed.of_lines)
        if found.encoding is not None and self.fallback_encoding is None and self.assumed.of_lines is None:
            whole = self.head(_SAMPLE).rpartition(b"\n")[0] or data
            _, encoding, is_sure, _ = decode_text(whole)
            self.assumed.of_lines = encoding or found.encoding
            found = replace(decode(data, None, self.assumed.of_lines), is_sure=is_sure)
        if found.is_declared:  # by this function, not by the file
            found = replace(found, is_declared=False)
        self.assumed.note(found)
        return found.text

    def open(self) -> BinaryIO:
        """Open the content as a stream."""
        return open_regular(self.path, self.root) if self.data is None else io.BytesIO(self.data)

    def head(self, size: int) -> bytes:
        """Return the first `size` bytes."""
        with self.open() as stream:
            return stream.read(size)

    def size(self) -> int:
        """Return the size in bytes."""
        return self.path.stat().st_size if self.data is None else len(self.data)

    def is_bomb(self) -> bool:
        """Return whether the whole file, with all archives in it, has unpacked to more than it may."""
        if self.unpacked.size <= UNPACKED:
            return False
        size = len(self.data or b"")
        with suppress(OSError):
            size = max(size, self.path.stat().st_size)
        return self.unpacked.size > RATIO * size

    def count_unpacked(self, size: int) -> None:
        """Count unpacked bytes. Raises DocumentError if there are more than the file may unpack to."""
        self.unpacked.size += size
        if self.is_bomb():
            raise DocumentError(f"decompression bomb: the file unpacks to more than {RATIO} times its size")

    def member(self, name: str, data: bytes) -> SourceFile:
        """Return a member of this file as a source file."""
        return replace(self, id=f"{self.id}/{name}", data=data, depth=self.depth + 1)

    def failure(self, message: str, line: int | None = None) -> Failure:
        """Return the failure to read this file, or one line or row of it."""
        where = self.id if line is None else f"{self.id}:{line}"
        return Failure(where, "document", message)

    def unread(self, message: str | None = None) -> Failure:
        """Return the notice that this member or attachment is left out; by default no reader supports it."""
        form = f"{self.suffix} files" if self.suffix else "a file without a suffix"
        return Failure(self.id, MEMBER, message or f"no reader for {form}")

    def partial(self, message: str) -> Failure:
        """Return the failure to read a part of this file, whose other parts are indexed."""
        return Failure(self.id, "part", message)


def is_inside(path: Path, root: Path) -> bool:
    """Return whether a path is inside a folder after all symbolic links are resolved."""
    try:
        real, top = os.path.realpath(path), os.path.realpath(root)
    except OSError:  # a link was replaced meanwhile
        return False
    return real == top or real.startswith(top.rstrip(os.sep) + os.sep)


class Reader(Protocol):
    """Yields the documents of one file, in order, and a Failure for each part that cannot be read.

    Raises DocumentError or OSError only if the file, or the rest of it, cannot be read.
    """

    def __call__(self, file: SourceFile, /) -> Iterator[Item]:
        """Yield the documents of `file`."""


def import_optional(module: str, what: str) -> ModuleType:
    """Return a module of an optional package. Raises BackendMissing, which names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError) and error.name == name
        raise BackendMissing(
            f"{what} cannot be read without the package {name}, which "
            + ("is not installed" if missing else f"cannot be imported ({error})"),
            hint=install_command("documents"),
        ) from None
