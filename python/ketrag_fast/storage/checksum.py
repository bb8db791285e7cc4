"""Checksums of files and lists of texts, in one place so that the hash can be replaced."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ketrag_fast import _core

NAME = "blake3"
_SHORT: Final = 1 << 12
"""Bytes up to which copying costs less than a call."""


def file_digest(path: Path) -> str:
    """Return the lower-case hexadecimal BLAKE3 of a file."""
    return _core.hash_file(path)[0]


def file_hashes(path: Path) -> tuple[str, bytes]:
    """Return the same, and the concatenated hashes of the file's blocks; empty for a single block."""
    return _core.hash_file(path)


def text_digest(parts: Iterable[str]) -> str:
    """Return a hash of texts; each is length-prefixed, so that no two lists collide by concatenation."""
    return bytes_digest(part.encode("utf-8") for part in parts)


def bytes_digest(parts: Iterable[bytes]) -> str:
    """Return the same for texts encoded as UTF-8."""
    state = hashlib.blake2b(digest_size=32)
    short = bytearray()  # together, as each call costs more than a short part
    for data in parts:
        short += len(data).to_bytes(8, "little")
        if len(data) <= _SHORT:
            short += data
        else:
            state.update(short)
            state.update(data)
            short.clear()
    state.update(short)
    return state.hexdigest()
