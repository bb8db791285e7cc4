"""Office files of before 2007, and newer ones behind a password: both look the same from outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ketrag_fast.readers.protocol import Item, SourceFile

_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
_HEAD: Final = 1 << 16


def read_old(file: SourceFile) -> Iterator[Item]:
    """Says what it is and what to do about it."""
    if _ENCRYPTED in file.head(_HEAD):
        yield file.failure("encrypted: it opens with a password only")
    else:
        yield file.failure("a file of Office 97 to 2003: save it as .docx, .xlsx or .pptx")
