"""Check whether a name occurs in a text, to reject invented entities.

A name is *grounded* if each of its words, except articles, prepositions and "and", is a word of the text
after folding: compatibility forms, case, accents, a final possessive and a plural "s" are removed. So "Curie"
matches "Curie's", and "January 1960" matches "from January to March 1960". A name of such small words only
("The On") must occur literally. Punctuation inside words is ignored ("E-mail", "U.S.A."), if the match begins
and ends at word boundaries; names in scripts without blanks (Chinese, Japanese, Thai, ...) match anywhere.

Names that a model expands or abbreviates ("UN" for "United Nations") are rejected; benches/extraction.py
prints how many names of a real model this drops.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import accumulate
from typing import Final

_SMALL: Final = frozenset(
    {"a", "an", "the", "of", "in", "on", "at", "for", "to", "from", "by", "with", "and"}
)
_WORD: Final = re.compile(r"[^\W_]+")
_POSSESSIVE: Final = re.compile(r"['’][sS]\b")
# Scripts without blanks between words: Thai to Myanmar, Khmer, kana, Han.
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)


class Source:
    """The folded words of a text, computed once for all names."""

    def __init__(self, text: str) -> None:
        self._found = _WORD.findall(fold(text))
        words = set(self._found)
        plurals = {word for word in words if word[-1] == "s"}
        self._words = (words - plurals).union(map(_singular, plurals))
        self._joined = ""
        self._edges: set[int] = set()

    def holds(self, name: str) -> bool:
        """Return whether a name is grounded in the text."""
        joined, significant = _parts(name)
        if not joined:
            return False
        if significant and significant <= self._words:
            return True
        return self._holds_joined(joined)

    def _holds_joined(self, name: str) -> bool:
        """Return whether the name occurs when punctuation inside words is ignored."""
        if not self._joined:
            self._joined = "".join(self._found)
            self._edges = {0, *accumulate(map(len, self._found))}
        at = self._joined.find(name)
        anywhere = at >= 0 and _UNSPACED.search(name) is not None
        while at >= 0:
            if anywhere or (at in self._edges and at + len(name) in self._edges):
                return True
            at = self._joined.find(name, at + 1)
        return False


@lru_cache(maxsize=1024)
def _parts(name: str) -> tuple[str, frozenset[str]]:
    """Return the folded words of a name without blanks, and the significant ones without plural endings.

    A name is usually looked up in several texts, one after the other.
    """
    words = _WORD.findall(fold(name))
    return "".join(words), frozenset([_singular(word) for word in words if word not in _SMALL])


def fold(text: str) -> str:
    """Return a text in lower case without accents, compatibility forms and possessives."""
    plain = _POSSESSIVE.sub("", text)
    if plain.isascii():
        return plain.lower()
    parts = unicodedata.normalize("NFKD", plain.casefold())
    kept = "".join(c for c in parts if unicodedata.category(c) != "Mn")
    return unicodedata.normalize("NFKC", kept)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word
