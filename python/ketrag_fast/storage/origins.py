"""Find the files from which stored documents were read."""

from __future__ import annotations

import glob
from pathlib import Path


def file_of(spec: str, name: str) -> Path | None:
    """Return the file that a document id came from, or None if it no longer exists."""
    base = base_of(spec)
    if base.is_file():
        return base
    found = _below(base, name)
    inner = _within(base, name) if found is None else None
    return found if inner is None else _below(base, inner)


def base_of(spec: str) -> Path:
    """Return the file or folder of a source; for a glob, the folder before its first pattern."""
    base = Path(spec)
    while glob.has_magic(str(base)) and not base.exists():
        base = base.parent
    return base


def _below(base: Path, name: str) -> Path | None:
    parts = name.split("/")
    while parts:
        for last in dict.fromkeys((parts[-1], parts[-1].rpartition("#")[0], parts[-1].rpartition(":")[0])):
            path = base.joinpath(*parts[:-1], last) if last else base
            if path != base and path.is_file():
                return path
        parts.pop()
    return None


def _within(base: Path, name: str) -> str | None:
    """Return an id without the source path suffix that distinguishes it from ids of other sources."""
    parts = name.split("/")
    counts = (count for count in range(1, len(parts)) if base.parts[-count:] == tuple(parts[:count]))
    return next(("/".join(parts[count:]) for count in counts), None)
