"""Generated documents with the word statistics of real ones, for measurements of growth."""

from __future__ import annotations

from collections.abc import Iterator

from ketrag_fast import Document
from zipf import vocabulary_of, zipf_portions

SENTENCE = 11


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
