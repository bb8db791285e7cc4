"""Patterns of file names."""

from __future__ import annotations

import glob
import os


def is_glob(spec: str) -> bool:
    """Return whether a source is a glob pattern and not the name of an existing file."""
    return glob.has_magic(spec) and not os.path.lexists(spec)
