"""Hashes of document contents, of the whole document list, and of ids of purged documents."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.storage.checksum import bytes_digest, text_digest
from ketrag_fast.storage.document_texts import HASH_BYTES, is_hash
from ketrag_fast.storage.io_errors import tables_damaged
from ketrag_fast.types import Document
from ketrag_fast.types.locations import to_text

PURGED: Final = "\0purged "
"""Prefix of the hash that replaces the id of a purged document."""


def hashes_of(contents: Iterable[Any], path: Path) -> NDArray[np.uint8]:
    """Return content hashes of `path` as uint8[documents, 32]; raises IndexDamaged for an invalid one."""
    found = bytearray()
    for content in contents:
        if not is_hash(content):
            raise tables_damaged(path, "the hash of a document is invalid")
        found += content
    return np.frombuffer(bytes(found), np.uint8).reshape(-1, HASH_BYTES)


def fingerprint_of(hashes: NDArray[np.uint8]) -> str:
    """Return a hash over content hashes in document order."""
    return bytes_digest([np.ascontiguousarray(hashes).reshape(-1).data])


def hash_purged_id(name: str) -> str:
    """Return the hash that replaces the id of a purged document."""
    return PURGED + text_digest([name])


def content_of(document: Document) -> str:
    """Return a document's content hash, which changes whenever the document does."""
    parts = (document.id, document.title, document.text, metadata_json(document))
    return text_digest((*parts, to_text(document.locators)) if document.locators else parts)


def metadata_json(document: Document) -> str:
    """Return the metadata of a document as the tables store it."""
    if not document.metadata:
        return "{}"
    return json.dumps(dict(document.metadata), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
