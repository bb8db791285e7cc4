"""The version of everything that determines the documents read from a file."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

_PACKAGES: Final = ("resiliparse", "pypdfium2", "tree-sitter")


@cache
def readers_version() -> str:
    """Return a hash of the sources of the readers and the versions of the parsers that are installed.

    Files that were read with another version are read again.
    """
    state = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        data = path.read_bytes()
        state.update(len(data).to_bytes(8, "little") + data)
    for name in _PACKAGES:
        try:
            state.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:
            state.update(f"{name} is missing\n".encode())
    return state.hexdigest()
