"""Hashes of files, of lists of texts, and of documents."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.base.hashes import blake2b
from ketrag_fast.storage.io_errors import tables_damaged
from ketrag_fast.types import Document
from ketrag_fast.types.documents import metadata_text
from ketrag_fast.types.locations import to_text

NAME: Final = "blake3"
"""The algorithm that hashes files, as the manifest names it."""
HASH_BYTES: Final = 32
"""Length of a hash, for example of the content of a document."""
PURGED: Final = "\0purged "
"""Prefix of the hash that replaces the id of a purged document."""
_SHORT: Final = 1 << 16
"""Size in bytes up to which concatenating the parts is cheaper than hashing each with its own call."""
_length = struct.Struct("<Q").pack


def file_digest(path: Path) -> str:
    """Return the lower-case hexadecimal BLAKE3 of a file."""
    return _core.hash_file(path)[0]


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
        return blake2b(b"".join(pieces), digest_size=HASH_BYTES).digest()
    state = blake2b(digest_size=HASH_BYTES)
    for piece in pieces:
        state.update(piece)
    return state.digest()


def content_of(document: Document) -> str:
    """Return a document's content hash, which changes whenever the document does."""
    parts = (document.id, document.title, document.text, metadata_json(document))
    return text_digest((*parts, to_text(document.locators)) if document.locators else parts)


def metadata_json(document: Document) -> str:
    """Return the metadata of a document as the tables store it."""
    return metadata_text(document.metadata) if document.metadata else "{}"


def is_hash(content: object) -> bool:
    """Return whether a value is the content hash of a document."""
    return isinstance(content, bytes) and len(content) == HASH_BYTES


def hashes_of(contents: Iterable[Any], path: Path) -> bytes:
    """Return the content hashes of `path`, one after another; raises IndexDamaged for an invalid one."""
    found = bytearray()
    for content in contents:
        if not is_hash(content):
            raise tables_damaged(path, "the hash of a document is invalid")
        found += content
    return bytes(found)


def fingerprint_of(hashes: bytes) -> str:
    """Return a hash over content hashes in document order."""
    return bytes_digest([hashes])


def hash_purged_id(name: str) -> str:
    """Return the hash that replaces the id of a purged document."""
    return PURGED + text_digest([name])
