"""Office files from before 2007 and newer encrypted ones, which use the same container format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ketrag_fast.readers.protocol import Item, SourceFile

_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
_HEAD: Final = 1 << 16


def read_old(file: SourceFile) -> Iterator[Item]:
    """Yield a failure that says how to convert or decrypt the file."""
    if _ENCRYPTED in file.head(_HEAD):
        yield file.failure("encrypted: it needs a password")
    else:
        yield file.failure("Office 97-2003 format is not supported: save it as .docx, .xlsx or .pptx")
