"""The tokenisations of KET-RAG's public code, which are NLTK's: for parity, not for use.

Punkt's learnt parameters carry no licence that would let this package ship them; they are read from the
folder of NLTK's `punkt_tab` model that the caller has (`.../tokenizers/punkt_tab/english`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.arrays import Report

FILES = ("abbrev_types.txt", "collocations.tab", "sent_starters.txt", "ortho_context.tab")


class Sentence(NamedTuple):
    """A sentence as the public code embeds it (tokens joined by spaces); one keyword per occurrence."""

    text: str
    keywords: list[str]


class PublishedTokenizer:
    """NLTK's `sent_tokenize` and `word_tokenize`, and the two profiles that the public code makes of them."""

    def __init__(self, punkt: _core.Punkt) -> None:
        self._punkt = punkt

    @classmethod
    def from_folder(cls, folder: str | Path) -> PublishedTokenizer:
        """From the folder of one `punkt_tab` model; `InputError` names a file that cannot be read."""
        texts = []
        for name in FILES:
            try:
                texts.append((Path(folder) / name).read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as failure:
                raise InputError(f"cannot read {Path(folder) / name}: {failure}") from failure
        return cls(_core.Punkt(*texts))

    @classmethod
    def from_parameters(
        cls,
        abbreviations: Iterable[str] = (),
        collocations: Iterable[Sequence[str]] = (),
        starters: Iterable[str] = (),
        contexts: dict[str, int] | None = None,
    ) -> PublishedTokenizer:
        """From the parameters themselves (word types in lower case, without line breaks)."""
        pairs = "\n".join("\t".join(pair) for pair in collocations)
        seen = "\n".join(f"{word}\t{bits}" for word, bits in (contexts or {}).items())
        return cls(_core.Punkt("\n".join(abbreviations), pairs, "\n".join(starters), seen))

    def sentences(self, text: str) -> list[str]:
        """NLTK's `sent_tokenize`."""
        return self._punkt.sentences(text)

    def words(self, text: str) -> list[str]:
        """NLTK's `word_tokenize`."""
        return self._punkt.words(text)

    def cooccurrence_words(
        self, texts: Sequence[str], stop_words: Iterable[str], *, threads: int = 0, report: Report = None
    ) -> list[list[str]]:
        """Profile `published-cooccurrence`: per text its distinct words, by (count desc, first place).

        Lower case, alphabetic, no stop words, at most 2,000. Source: filter_chunks.py of KET-RAG.
        """
        return self._punkt.cooccurrence(list(stop_words), list(texts), threads=threads, report=report)

    def keyword_sentences(
        self, texts: Sequence[str], stop_words: Iterable[str], *, threads: int = 0, report: Report = None
    ) -> list[list[Sentence]]:
        """Profile `published-keywords`: per text its sentences, with their keywords in order.

        Case is kept and counts in the test for stop words; punctuation is what occurs inside
        `string.punctuation`. Source: create_final_keyword_index.py of KET-RAG.
        """
        found = self._punkt.keywords(list(stop_words), list(texts), threads=threads, report=report)
        return [[Sentence(*sentence) for sentence in sentences] for sentences in found]


def treebank_words(sentence: str) -> list[str]:
    """NLTK's `NLTKWordTokenizer().tokenize(sentence)`."""
    return _core.treebank_words(sentence)
