"""Copies of a folder with indexes, whose user confirms the sources that the copies name."""

from __future__ import annotations

import shutil
from pathlib import Path

from ketrag_fast.index.named_sources import trust_sources


def copy_confirmed(folder: Path, target: Path) -> Path:
    """Copy a folder, and confirm the sources of the indexes in it: a copy of an index does not read them."""
    shutil.copytree(folder, target, symlinks=True)
    for place in (target, *(one for one in target.iterdir() if one.is_dir())):
        if (place / "index.sqlite").is_file():
            trust_sources(place)
    return target
