"""Files that stored documents were read from."""

from __future__ import annotations

import glob
from pathlib import Path


def file_of(spec: str, name: str) -> Path | None:
    """Return the file that a document id came from, or None if it no longer exists."""
    base = Path(spec)
    while glob.has_magic(str(base)) and not base.exists():
        base = base.parent
    if base.is_file():
        return base
    parts = name.split("/")
    while parts:
        for last in dict.fromkeys((parts[-1], parts[-1].rpartition(":")[0])):
            path = base.joinpath(*parts[:-1], last) if last else base
            if path != base and path.is_file():
                return path
        parts.pop()
    return None
