"""Phrases and prefixes, by reading every text: the words of a text in order, each with its keywords."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from ketrag_fast import _core

_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[tuple[str, frozenset[str]]]:
    """The words of an English text, without accents and case, each with its keywords."""
    parts = unicodedata.normalize("NFKD", text)
    folded = "".join(part for part in parts if not unicodedata.combining(part)).lower()
    return [(word, frozenset(_core.lexical_keywords(word))) for word in _WORD.findall(folded)]


def has_phrase(title: str, text: str, phrase: str, *, prefix: bool = False) -> bool:
    """Whether a title or a text has the words of a phrase one after the other."""
    sought = words_of(phrase)
    return bool(sought) and any(_is_in(words_of(one), sought, prefix=prefix) for one in (title, text))


def _is_in(
    words: Sequence[tuple[str, frozenset[str]]], sought: Sequence[tuple[str, frozenset[str]]], *, prefix: bool
) -> bool:
    for start in range(len(words) - len(sought) + 1):
        some = words[start : start + len(sought)]
        last = len(sought) - 1
        if all(
            word.startswith(wanted) and bool(keys)  # the index has no function words
            if prefix and at == last
            else word == wanted or bool(keys & wanted_keys)
            for at, ((word, keys), (wanted, wanted_keys)) in enumerate(zip(some, sought, strict=True))
        ):
            return True
    return False
