"""The published profiles over NLTK itself: oracles where NLTK and its data are at hand."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Collection

Tokenize = Callable[[str], list[str]]


def cooccurrence_words(text: str, stop_words: Collection[str], words: Tokenize) -> list[str]:
    """The distinct words of `text`, most frequent first; `words` is NLTK's `word_tokenize`."""
    kept = [w for w in words(text.lower()) if w.isalpha() and w not in stop_words]
    return [word for word, _ in Counter(kept).most_common(2000)]


def keyword_sentences(
    text: str, stop_words: Collection[str], sentences: Tokenize, words: Tokenize
) -> list[tuple[str, list[str]]]:
    """Each sentence of `text` as embedded, with its keywords, one per occurrence."""
    found = []
    for sentence in sentences(text):
        tokens = words(sentence)
        kept = [w for w in tokens if w not in stop_words and w not in string.punctuation]
        found.append((" ".join(tokens), kept))
    return found
