"""Stop words."""

from __future__ import annotations

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import text as checked


def stop_words(language: str = "english") -> tuple[list[str], str]:
    """Return the stop words of a language and the BLAKE3 hash of the list."""
    return _core.stop_words(checked(language, "language"))
