"""Generated texts and documents with the word statistics of real ones, for measurements of growth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import Document

SENTENCE = 11
DRAWS = 90
_PORTION = 50_000


def documents(count: int) -> Iterator[Document]:
    """Yield documents of some 88 words in sentences of eleven; every seventh word is a name."""
    # The number of a word decides its form, so a word is a name wherever it occurs.
    forms = [f"N{word:x}" if word % 7 == 0 else f"w{word:x}" for word in range(vocabulary_of(count))]
    at = 0
    for lengths, words in zipf_portions(count, seed=7):
        every, start = [forms[word] for word in words.tolist()], 0
        for length in lengths.tolist():
            row = every[start : start + length]
            parts = [row[first : first + SENTENCE] for first in range(0, length, SENTENCE)]
            text = " ".join(f"{part[0].upper()} {' '.join(part[1:])}." for part in parts)
            yield Document(f"{at:07}", text, f"Title {at:x}")
            start += length
            at += 1


def question(document: Document) -> str:
    """Return a question about words of a document."""
    words = document.text.replace(".", "").split()
    return f"Where did {words[40]} and {words[9]} meet {words[25]}?"


def zipf_texts(texts: int, seed: int = 42) -> tuple[NDArray[np.uint64], NDArray[np.uint32], int]:
    """Texts as compressed rows of distinct word ids, ascending: (indptr, indices, number of word ids).

    Each text draws 90 words, some 88 of them distinct: three quarters from a Zipf-Mandelbrot
    distribution, 1 / (rank + 50), over a vocabulary that grows as (60 * texts) ** 0.6 (Heaps); a
    quarter from 200 words of its topic (some 50 texts a topic), which are spread over the
    vocabulary. The best counts between texts are low, so that bounds prune less than on real text.
    """
    lengths: list[NDArray[np.int64]] = []
    rows: list[NDArray[np.uint32]] = []
    for own, words in zipf_portions(texts, seed):
        lengths.append(own)
        rows.append(words)
    indptr = np.zeros(texts + 1, dtype=np.uint64)
    indptr[1:] = np.cumsum(np.concatenate(lengths)) if lengths else 0
    return indptr, np.concatenate(rows) if rows else np.empty(0, np.uint32), vocabulary_of(texts)


def vocabulary_of(texts: int) -> int:
    """Return the number of word ids."""
    return max(int(30 * (texts * 60) ** 0.6), 1)


def zipf_portions(texts: int, seed: int = 42) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint32]]]:
    """Yield lengths and words of the rows of `zipf_texts`, some at a time."""
    rng = np.random.default_rng(seed)
    words = int(30 * (texts * 60) ** 0.6)
    cumulative = np.cumsum(1.0 / np.arange(50, 50 + words))
    topics = max(texts // 50, 1)
    for start in range(0, texts, _PORTION):
        here = np.arange(start, min(start + _PORTION, texts))
        drawn = rng.random((len(here), DRAWS)) * cumulative[-1]
        rank = np.minimum(np.searchsorted(cumulative, drawn), words - 1)
        topic = (here % topics)[:, None]
        of_topic = (topic * 2_654_435_761 + rank % 200 * 40_503) % words
        word = np.where(rng.integers(4, size=rank.shape) == 0, of_topic, rank)
        # The most frequent word has the highest id, as no kernel may count on the reverse.
        word = np.sort(words - 1 - word, axis=1)
        fresh = np.ones(word.shape, dtype=bool)
        fresh[:, 1:] = word[:, 1:] != word[:, :-1]
        yield fresh.sum(axis=1), word[fresh].astype(np.uint32)
