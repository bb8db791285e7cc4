"""The checksum of a file and of a list of texts. One function each, so that a faster hash can take over."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

NAME = "blake2b-256"


def file_digest(path: Path) -> str:
    """Lower-hex hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, _hasher).hexdigest()


def text_digest(parts: Iterable[str]) -> str:
    """Lower-hex hash of some texts, each closed by its length, so that no two lists run together."""
    state = _hasher()
    for part in parts:
        data = part.encode("utf-8")
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def _hasher() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=32)
