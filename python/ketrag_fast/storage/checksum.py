"""Checksums of files and lists of texts, in one place so that the hash can be replaced."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ketrag_fast import _core

NAME = "blake3"
_DIGEST: Final = 32
_SHORT: Final = 1 << 16
"""Size in bytes up to which concatenating the parts is cheaper than hashing each with its own call."""
_length = struct.Struct("<Q").pack


def file_digest(path: Path) -> str:
    """Return the lower-case hexadecimal BLAKE3 of a file."""
    return _core.hash_file(path)[0]


def file_hashes(path: Path) -> tuple[str, bytes]:
    """Return a file's digest and the concatenated hashes of its blocks (empty if it has only one block)."""
    return _core.hash_file(path)


def text_digest(parts: Iterable[str]) -> str:
    """Return a hash of texts; each is length-prefixed, so that no two lists collide by concatenation."""
    return bytes_digest(part.encode("utf-8") for part in parts)


def bytes_digest(parts: Iterable[bytes | memoryview]) -> str:
    """Return the hash of `text_digest` for texts that are already encoded as UTF-8."""
    return raw_digest(parts).hex()


def raw_digest(parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the hash of `bytes_digest` as raw bytes instead of hexadecimal digits."""
    pieces: list[bytes | memoryview] = []
    for data in parts:
        pieces += (_length(len(data)), data)
    if sum(map(len, pieces)) <= _SHORT:
        return hashlib.blake2b(b"".join(pieces), digest_size=_DIGEST).digest()
    state = hashlib.blake2b(digest_size=_DIGEST)
    for piece in pieces:
        state.update(piece)
    return state.digest()
