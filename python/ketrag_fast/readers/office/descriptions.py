"""The descriptions of pictures (alternative texts) in Office files."""

from __future__ import annotations

import re
from typing import Final

_GENERATED: Final = re.compile(r"description automatically generated|ai-generated content may", re.I)
"""Marks of descriptions that a program wrote: they name the kind of picture, not what is on it."""
_LONGEST: Final = 2_000


def described(text: str) -> str:
    """Return the line for the description of a picture, "" if there is none or a program wrote it.

    >>> described("Map of  the harbour"), described("Blue sky Description automatically generated")
    ('Picture: Map of the harbour', '')
    """
    plain = " ".join(text[:_LONGEST].split())
    return f"Picture: {plain}" if plain and not _GENERATED.search(plain) else ""
