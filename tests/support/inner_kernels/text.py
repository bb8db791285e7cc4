"""Stop words, byte-pair tokens, and cuts of texts by tokens."""

from __future__ import annotations

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import (
    I64,
    U32,
    count,
    utf8,
)
from ketrag_fast.kernels.arrays import text as checked
from ketrag_fast.kernels.text import code_points


def stop_words(language: str = "english") -> tuple[list[str], str]:
    """Return the stop words of a language and the BLAKE3 hash of the list."""
    return _core.stop_words(checked(language, "language"))


def encode_tokens(text: str, encoding: str = "cl100k_base") -> U32:
    """Return the byte-pair tokens of a text."""
    return _core.encode_tokens(checked(text, "text"), checked(encoding, "encoding"))


def truncate(text: str, tokens: int, encoding: str = "cl100k_base") -> str:
    """Return the longest prefix of at most `tokens` tokens that ends at a grapheme boundary."""
    data, most = utf8(text, "text"), count(tokens, "tokens")
    return data[: _core.truncate(text, most, checked(encoding, "encoding"))].decode()


def token_windows(text: str, size: int, overlap: int = 0, encoding: str = "cl100k_base") -> I64:
    """Return windows of `size` tokens as spans [n, 2], cut between graphemes (KET-RAG, Algorithm 3).

    With no overlap the concatenated windows are the text. The last window ends where the text ends.
    """
    found = _core.token_windows(
        checked(text, "text"),
        count(size, "size"),
        count(overlap, "overlap"),
        checked(encoding, "encoding"),
    )
    return code_points(text, found)
