"""A word that a person copies out of a document finds that document.

The texts are those of `tests/data/words`, one document a line. A word is what is between blanks, without the
marks at its ends. Every word of every document is searched: 11,000, of which 4,400 are different, in 14
languages.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings

TEXTS = Path(__file__).parents[1] / "data" / "words"
LANGUAGES = sorted(path.stem for path in TEXTS.glob("*.txt"))


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text as a person copies them."""
    for word in text.split():
        marks = [at for at, c in enumerate(word) if unicodedata.category(c)[0] in "LNM"]
        if marks:
            yield word[marks[0] : marks[-1] + 1]


def documents() -> list[Document]:
    """Return a document for each line of the texts."""
    return [
        Document(f"{language}-{number}", line)
        for language in LANGUAGES
        for number, line in enumerate((TEXTS / f"{language}.txt").read_text("utf-8").splitlines())
    ]


@pytest.mark.parametrize("literal", [False, True])
def test_every_word_finds_its_document(tmp_path: Path, literal: bool) -> None:
    every = documents()
    with Index.build(every, tmp_path / "index", settings=Settings(modes="bm25")) as index:
        wanted: dict[str, set[str]] = {}
        for document in every:
            for word in words_of(document.text):
                wanted.setdefault(word, set()).add(document.id)
        words = list(wanted)
        contexts = index.retrieve_many(words, mode="bm25", budget=1_000_000, top=len(every), literal=literal)
        missed = {}
        for word, context in zip(words, contexts, strict=True):
            found = {passage.document for passage in context.passages}
            found |= {copy.document for passage in context.passages for copy in passage.also_in}
            if not wanted[word] <= found:
                missed[word] = sorted(wanted[word] - found)
    assert sum(len(list(words_of(document.text))) for document in every) > 10_000
    assert not missed
