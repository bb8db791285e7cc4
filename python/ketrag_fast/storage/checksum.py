"""The checksum of a file and of a list of texts. One function each, so that a faster hash can take over."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ketrag_fast import _core

NAME = "blake3"


def file_digest(path: Path) -> str:
    """Lower-hex BLAKE3 of a file's bytes."""
    return _core.hash_file(path)[0]


def file_hashes(path: Path) -> tuple[str, bytes]:
    """The same, and the hashes of the file's blocks end to end; none where it has only one."""
    return _core.hash_file(path)


def text_digest(parts: Iterable[str]) -> str:
    """Lower-hex hash of some texts, each closed by its length, so that no two lists run together."""
    return bytes_digest(part.encode("utf-8") for part in parts)


def bytes_digest(parts: Iterable[bytes]) -> str:
    """The same of texts as UTF-8."""
    state = hashlib.blake2b(digest_size=32)
    for data in parts:
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()
