"""Stop words, and cuts of texts by tokens."""

from __future__ import annotations

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import count, utf8
from ketrag_fast.kernels.arrays import text as checked


def stop_words(language: str = "english") -> tuple[list[str], str]:
    """Return the stop words of a language and the BLAKE3 hash of the list."""
    return _core.stop_words(checked(language, "language"))


def truncate(text: str, tokens: int, encoding: str = "cl100k_base") -> str:
    """Return the longest prefix of at most `tokens` tokens that ends at a grapheme boundary."""
    data, most = utf8(text, "text"), count(tokens, "tokens")
    return data[: _core.truncate(text, most, checked(encoding, "encoding"))].decode()
