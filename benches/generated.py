"""Generated documents with the word statistics of real ones, for measurements of growth."""

from __future__ import annotations

from collections.abc import Iterator

from ketrag_fast import Document
from zipf import zipf_texts

SENTENCE = 11


def documents(count: int) -> Iterator[Document]:
    """Yield documents of some 88 words in sentences of eleven; every seventh word is a name."""
    indptr, words, _ = zipf_texts(count, seed=7)
    for at in range(count):
        row = words[int(indptr[at]) : int(indptr[at + 1])].tolist()
        # The number of a word decides its form, so a word is a name wherever it occurs.
        forms = [f"N{word:x}" if word % 7 == 0 else f"w{word:x}" for word in row]
        parts = [forms[start : start + SENTENCE] for start in range(0, len(forms), SENTENCE)]
        text = " ".join(f"{part[0].upper()} {' '.join(part[1:])}." for part in parts)
        yield Document(f"{at:07}", text, f"Title {at:x}")


def question(document: Document) -> str:
    """Return a question about words of a document."""
    words = document.text.replace(".", "").split()
    return f"Where did {words[40]} and {words[9]} meet {words[25]}?"
