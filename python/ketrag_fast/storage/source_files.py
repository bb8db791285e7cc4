"""The files of the sources: which file or folder a source is, and which file a document came from."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import Final

_ESCAPE: Final = re.compile(r"\\x([89a-f][0-9a-f])")


def base_of(spec: str) -> Path:
    """Return the file or folder of a source; for a glob, the folder before its first pattern."""
    base = Path(spec)
    while glob.has_magic(str(base)) and not base.exists():
        base = base.parent
    return base


def root_of(spec: str, *, follow: bool) -> Path | None:
    """Return the folder in which the files of a source must be after all links; None if it does not matter.

    That is so with `follow`, and for a source that is itself a file: its user named it.
    """
    base = Path(spec)
    while glob.has_magic(str(base)) and not os.path.lexists(spec):
        base = base.parent
    return None if follow or base.is_file() else base


def file_of(spec: str, name: str) -> Path | None:
    """Return the file that a document id came from, or None if it no longer exists.

    An id may begin with the end of its source's path, which distinguishes it from ids of other sources.
    Bytes of a file name that are not UTF-8 are escapes in the id (`readers/files.py`).
    """
    found = _file_named(base_of(spec), name)
    if found is None and _ESCAPE.search(name):
        bytes_of = _ESCAPE.sub(lambda match: chr(0xDC00 + int(match[1], 16)), name)
        found = _file_named(base_of(spec), bytes_of)
    return found


def escaped(path: str) -> str:
    """Return a path as text, with escapes for bytes that are not UTF-8."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _file_named(base: Path, name: str) -> Path | None:
    if base.is_file():
        return base
    parts = name.split("/")
    counts = (count for count in range(1, len(parts)) if base.parts[-count:] == tuple(parts[:count]))
    inner = next(("/".join(parts[count:]) for count in counts), None)
    return _file_below(base, name) or (None if inner is None else _file_below(base, inner))


def _file_below(base: Path, name: str) -> Path | None:
    parts = name.split("/")
    while parts:
        for last in dict.fromkeys((parts[-1], parts[-1].rpartition("#")[0], parts[-1].rpartition(":")[0])):
            path = base.joinpath(*parts[:-1], last) if last else base
            if path != base and os.path.isfile(path):  # noqa: PTH113 - False if its folder cannot be read
                return path
        parts.pop()
    return None
