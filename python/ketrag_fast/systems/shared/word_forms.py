"""Find the usual spelling of vocabulary terms, which are stems in languages other than English."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.systems.shared.graph_columns import texts_at
from ketrag_fast.systems.shared.name_lookup import Names
from ketrag_fast.systems.shared.rows import Arrays, strings
from ketrag_fast.systems.shared.stored_rows import languages_of, row_of, text_of

_READ: Final = 8
"""Number of units in which the spellings of a stem are counted."""
_REMEMBERED: Final = 4096


class WordForms:
    """The vocabulary of an index, by its numbers, with the most frequent spelling of each stem."""

    def __init__(self, units: Arrays, words: Arrays) -> None:
        self._units, self._words = units, words
        self._languages = languages_of(words)
        self._names = Names(*strings(words, "vocabulary"), case=str.lower)
        self._of_units: dict[int, Mapping[str, Counter[str]]] = {}

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, word: int) -> str:
        return self.spell([word])[0]

    @property
    def has_stems(self) -> bool:
        """Whether the vocabulary has stems; two of them can have the same spelling."""
        return bool(self._languages)

    def spell(self, words: Sequence[int]) -> list[str]:
        """Return the spellings of some words."""
        numbers = np.asarray(words, np.int64)
        stored = texts_at(strings(self._words, "vocabulary"), numbers)
        if not self._languages:
            return stored
        return [self._spelling(word, text) for word, text in zip(numbers.tolist(), stored, strict=True)]

    def find(self, name: str) -> list[int]:
        """Return the words that a name may be: the word itself, or its stem in each language."""
        found = self._names.find(name)
        if not self._languages:
            return [] if found is None else [found]
        (blob, offsets), _, _ = _core.tokenise(pack([name]), "auto", 1, languages=self._languages)
        stems = (self._names.find(stem) for stem in unpack(blob, offsets))
        return list(dict.fromkeys(number for number in (found, *stems) if number is not None))

    def near(self, name: str) -> list[str]:
        """Return words with a similar spelling."""
        known = self._names.near(name)
        if not self._languages:
            return known
        numbers = (self._names.find(word) for word in known)
        return list(dict.fromkeys(self.spell([number for number in numbers if number is not None])))

    def _spelling(self, word: int, stem: str) -> str:
        counts: Counter[str] = Counter()
        for unit in row_of(self._words, "word_units", word)[:_READ]:
            counts.update(self._forms(unit).get(stem, {}))
        return min(counts, key=lambda form: (-counts[form], form), default=stem.partition("@")[0])

    def _forms(self, unit: int) -> Mapping[str, Counter[str]]:
        """Return for each stem of a unit and its title how often it has which spelling."""
        known = self._of_units.get(unit)
        if known is not None:
            return known
        title = text_of(self._units, "document_titles", int(self._units["unit_document"][unit]))
        text = f"{title}\n{text_of(self._units, 'unit_texts', unit)}"
        (blob, offsets), _, _ = _core.tokenise(pack([text]), "none", 1)
        counts = Counter(unpack(blob, offsets))
        (blob, offsets), _, ends = _core.tokenise(pack(list(counts)), "auto", 1, languages=self._languages)
        stems, forms = unpack(blob, offsets), dict[str, Counter[str]]()
        for (form, count), (first, last) in zip(counts.items(), pairwise(ends.tolist()), strict=True):
            for stem in stems[first:last]:
                # "l'école" is a spelling of "école".
                forms.setdefault(stem, Counter())[form.replace("’", "'").rpartition("'")[2]] += count
        if len(self._of_units) >= _REMEMBERED:
            self._of_units.clear()
        self._of_units[unit] = forms
        return forms
