"""The NLTK tokenisations that KET-RAG's reference implementation uses: for parity only.

The licence of Punkt's trained parameters does not let this package ship them; they are read from a
local copy of NLTK's `punkt_tab` model (`.../tokenizers/punkt_tab/english`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.arrays import MOST, Report, callback, count, table
from ketrag_fast.kernels.arrays import text as checked
from ketrag_fast.kernels.arrays import texts as checked_all
from ketrag_fast.systems.papers.ket_rag.reference_words import PUNKT_FILES


class Sentence(NamedTuple):
    """A sentence as the reference implementation embeds it (tokens joined by spaces).

    `keywords` has one entry per occurrence.
    """

    text: str
    keywords: list[str]


class PublishedTokenizer:
    """NLTK's `sent_tokenize` and `word_tokenize`, and the two ways the reference implementation uses them."""

    def __init__(self, punkt: _core.Punkt) -> None:
        self._punkt = punkt

    @classmethod
    def from_folder(cls, folder: str | Path) -> PublishedTokenizer:
        """Load the folder of one `punkt_tab` model; `InputError` names a file that cannot be read."""
        if not isinstance(folder, str | os.PathLike):
            raise InputError(f"folder must be a path, not a {type(folder).__name__}")
        parameters = []
        for name in PUNKT_FILES:
            try:
                parameters.append((Path(folder) / name).read_text(encoding="utf-8"))
            except (OSError, ValueError) as failure:  # ValueError: not UTF-8, or a NUL in the path
                raise InputError(f"cannot read {str(Path(folder) / name)!r}: {failure}") from failure
        return cls(_core.Punkt(*parameters))

    @classmethod
    def from_parameters(
        cls,
        abbreviations: Iterable[str] = (),
        collocations: Iterable[Sequence[str]] = (),
        starters: Iterable[str] = (),
        contexts: Mapping[str, int] | None = None,
    ) -> PublishedTokenizer:
        """Create it from the parameters (word types in lower case, without line breaks)."""
        kept = [
            checked_all(pair, f"collocation {i}")
            for i, pair in enumerate(_items(collocations, "collocations"))
        ]
        seen = [
            f"{checked(word, 'a word of contexts')}\t{count(bits, f'contexts of {word!r}', MOST)}"
            for word, bits in table({} if contexts is None else contexts, "contexts", ()).items()
        ]
        return cls(
            _core.Punkt(
                "\n".join(checked_all(_items(abbreviations, "abbreviations"), "abbreviations")),
                "\n".join("\t".join(pair) for pair in kept),
                "\n".join(checked_all(_items(starters, "starters"), "starters")),
                "\n".join(seen),
            )
        )

    def sentences(self, text: str) -> list[str]:
        """Return what NLTK's `sent_tokenize` returns."""
        return self._punkt.sentences(checked(text, "text"))

    def words(self, text: str) -> list[str]:
        """Return what NLTK's `word_tokenize` returns."""
        return self._punkt.words(checked(text, "text"))

    def cooccurrence_words(
        self, texts: Sequence[str], stop_words: Iterable[str], *, threads: int = 0, report: Report = None
    ) -> list[list[str]]:
        """Return the distinct words of each text, by count descending, then first occurrence.

        Lower case, alphabetic, no stop words, at most 2,000. Source: filter_chunks.py of KET-RAG.
        """
        return self._punkt.cooccurrence(
            checked_all(_items(stop_words, "stop_words"), "stop_words"),
            checked_all(texts, "texts"),
            threads=count(threads, "threads"),
            report=callback(report),
        )

    def keyword_sentences(
        self, texts: Sequence[str], stop_words: Iterable[str], *, threads: int = 0, report: Report = None
    ) -> list[list[Sentence]]:
        """Return the sentences of each text, with their keywords in order.

        Case is preserved and matters for stop words; punctuation is any substring of
        `string.punctuation`. Source: create_final_keyword_index.py of KET-RAG.
        """
        found = self._punkt.keywords(
            checked_all(_items(stop_words, "stop_words"), "stop_words"),
            checked_all(texts, "texts"),
            threads=count(threads, "threads"),
            report=callback(report),
        )
        return [[Sentence(*sentence) for sentence in sentences] for sentences in found]


def _items(values: Iterable[Any], name: str) -> list[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list of texts, not a {type(values).__name__}")
    return list(values)
