"""Disk usage."""

from __future__ import annotations

from pathlib import Path


def folder_size(path: Path) -> int:
    """Return the bytes of all files below a folder; a file with two names counts once."""
    seen = {}
    for file in path.rglob("*"):
        if file.is_file():
            about = file.stat()
            seen[about.st_ino or file] = about.st_size
    return sum(seen.values())
