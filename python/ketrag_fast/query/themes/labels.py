"""Labels of themes: the terms that distinguish a theme's passages from others, as the texts spell them.

The weight of a keyword is its class-based TF-IDF: the share of the theme's passages that have it, times the
logarithm of the ratio of this share to that of the other passages. If the central passages mostly use a
keyword in a longer expression ("write-ahead log"), the expression replaces it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.query.themes.clusters import F64, I64
from ketrag_fast.query.themes.question import PLAIN_WORDS
from ketrag_fast.systems.shared.rows import Arrays, csr, select_rows

TERMS: Final = 5
"""Maximum number of terms in a label."""
_CANDIDATES: Final = 40
_PART: Final = 0.5
"""Share of the texts with a keyword that must have an expression for it to replace the keyword."""
_REPEATED: Final = 3
_FIELD: Final = 0.3
"""Factor that lowers the weight of names of fields and speakers."""
_LONGEST: Final = 3
_SHORTEST: Final = 4
_BETWEEN: Final = re.compile(r"([^\w'’.+#-]+)")
_BEGINNINGS: Final = "'’.-_+#"
_ENDS: Final = "'’.-_"
"""Characters that may be inside a word, but not at its ends."""


class TermCounts:
    """Counts the units of a set that contain each keyword."""

    def __init__(self, links: Arrays) -> None:
        self._rows = csr(links, "unit_keywords")
        self.words = len(links["keywords_offsets"]) - 1

    def of(self, units: I64) -> I64:
        """Return the number of the units that have each keyword."""
        return np.bincount(select_rows(self._rows, units)[1], minlength=self.words)


def term_weights(own: I64, size: int, around: I64, total: int) -> F64:
    """Return the class-based TF-IDF of each keyword in a theme of `size` units among `total`."""
    inside = own / max(size, 1)
    outside = (around - own + 1) / (total - size + 2)
    weights: F64 = inside * np.log(np.maximum(inside / outside, 1.0))
    return np.round(weights, 9)


class Speller:
    """Turns keywords into terms, spelled as in some texts.

    The words of the texts are numbers in one array, and so are the sets of keywords in them. Most words have
    one keyword. Spellings with the same keywords are forms of one term.
    """

    def __init__(
        self, keyword: Callable[[int], str], read: I64, texts: Sequence[str], languages: Sequence[int]
    ) -> None:
        """Read the texts of the units `read`, which are ascending.

        `keyword` returns a keyword by its number.
        """
        self._keyword = keyword
        words, joined, fields, counts = _split(texts)
        self._read = read
        self.fields = np.array(fields, np.bool_)
        self.ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self.joined = np.array(joined, np.bool_)
        self.surfaces = sorted(set(words))
        place = {surface: at for at, surface in enumerate(self.surfaces)}
        self.words = np.fromiter((place[word] for word in words), np.int64, len(words))
        own = list(languages) or None
        rows = [tuple(_core.lexical_keywords(surface, languages=own)) for surface in self.surfaces]
        self.stems = sorted(set(rows))
        number = {stems: at for at, stems in enumerate(self.stems)}
        stem_of = np.array([number[row] for row in rows], np.int64)
        self.own = stem_of[self.words] if len(rows) else np.zeros(0, np.int64)
        self.holding: dict[str, list[int]] = {}
        for at, stems in enumerate(self.stems):
            for stem in stems:
                self.holding.setdefault(stem, []).append(at)
        names = [bool(stems) and all(map(_is_name, stems)) for stems in self.stems]
        self.is_name = np.array(names, np.bool_)

    def label(self, weights: F64, central: I64) -> tuple[tuple[str, ...], F64]:
        """Return the best terms by weight, spelled as in the texts of the `central` units, and the weights.

        Names of fields and speakers ("Status: ...") weigh less in both.
        """
        order = np.lexsort((np.arange(len(weights)), -weights))[:_CANDIDATES]
        order = order[weights[order] > 0]
        named = {number: self._keyword(number) for number in order.tolist()}
        kept = [at for at in order.tolist() if _is_name(named[at]) and named[at] in self.holding]
        spellings = _Spellings(self, [named[at] for at in kept], np.searchsorted(self._read, central))
        weights = weights.copy()
        weights[np.array(kept, np.int64)[spellings.fields]] *= _FIELD
        terms: list[str] = []
        used: set[str] = set()
        for at in sorted(range(len(kept)), key=lambda at: (-weights[kept[at]], kept[at])):
            if len(terms) == TERMS:
                break
            if any(_is_form(named[kept[at]], other) for other in used):
                continue
            term, parts = spellings.best(at)
            if term:
                terms.append(term)
                used |= parts
        return tuple(terms), weights


def _split(texts: Sequence[str]) -> tuple[list[str], list[bool], list[bool], list[int]]:
    """Return the words of texts, and the number of words of each text.

    The lists in between: whether one space separates each word from the previous one, and whether a colon
    follows.
    """
    words: list[str] = []
    joined: list[bool] = []
    fields: list[bool] = []
    counts: list[int] = []
    for text in texts:
        pieces = _BETWEEN.split(text)
        own, gaps = pieces[::2], pieces[1::2]
        joined.append(False)
        joined += [gap == " " and word[-1:] not in _ENDS for word, gap in zip(own, gaps, strict=False)]
        fields += [gap[0] == ":" for gap in gaps]
        fields.append(False)
        words += [word.lstrip(_BEGINNINGS).rstrip(_ENDS) for word in own]
        counts.append(len(own))
    return words, joined, fields, counts


def _is_name(word: str) -> bool:
    """Return whether a keyword can name a theme: it is mostly letters and not a word of small talk."""
    word = word.partition("@")[0]
    return len(word) > 1 and sum(map(str.isalpha, word)) > len(word) / 2 and word not in PLAIN_WORDS


def _is_form(a: str, b: str) -> bool:
    """Return whether two keywords are forms of one word, or one is a prefix of the other."""
    short, long = sorted((a.partition("@")[0], b.partition("@")[0]), key=len)
    if len(short) < _SHORTEST:
        return short == long or long == f"{short}s"
    return long.startswith(short) or (long.startswith(short[:-1]) and len(long) - len(short) <= 3)


class _Spellings:
    """The words of some texts, with the spellings of keywords and the expressions that contain them."""

    def __init__(self, speller: Speller, keywords: Sequence[str], rows: I64) -> None:
        """Find the expressions that contain keywords in some rows of the texts."""
        self._speller = speller
        sizes = speller.ends[rows + 1] - speller.ends[rows]
        shift = np.repeat(speller.ends[rows] - np.cumsum(sizes) + sizes, sizes)
        places = shift + np.arange(len(shift))
        self.count = len(keywords)
        self.stems, self.surfaces = speller.own[places], speller.words[places]
        """For each word, the number of its set of keywords and the number of its spelling."""
        candidate = np.full(len(speller.stems) + 1, -1, np.int64)
        # A word with several keywords counts as a form of the best one.
        for at in reversed(range(len(keywords))):
            candidate[speller.holding[keywords[at]]] = at
        self.keyword = candidate[self.stems]
        """The keyword that each word is a form of, -1 for no keyword."""
        # A word that may not be part of an expression ends it, and so does the end of a text.
        is_name = speller.is_name[self.stems]
        self.joined = speller.joined[places] & is_name
        self.joined[1:] &= is_name[:-1]
        self.colon = speller.fields[places]
        self.text = np.repeat(np.arange(len(rows)), sizes)
        self.runs: dict[int, tuple[int, int, int]] = {}
        """For each keyword that is mostly in an expression: its length in words, its texts, its position."""
        own = np.unique((self.keyword * self._texts + self.text)[self.keyword >= 0])
        texts = np.bincount(own // self._texts, minlength=self.count)
        for size in range(2, _LONGEST + 1):
            starts = np.flatnonzero(self._starts(size))
            key = self._key(starts, size)
            for offset in range(size):
                keyword = self.keyword[starts + offset]
                has = np.flatnonzero(keyword >= 0)
                rows = np.stack([keyword[has], key[has], self.text[starts[has]]], axis=1)
                rows, first = np.unique(rows, axis=0, return_index=True)
                if not len(rows):
                    continue
                fresh = np.ones(len(rows), np.bool_)
                fresh[1:] = (rows[1:, :2] != rows[:-1, :2]).any(axis=1)
                begins = np.flatnonzero(fresh)
                counts = np.diff(np.append(begins, len(rows)))
                enough = counts >= np.maximum(_PART * texts[rows[begins, 0]], _REPEATED)
                for at, number in zip(begins[enough].tolist(), counts[enough].tolist(), strict=True):
                    found = (size, number, int(starts[has[first[at]]]))
                    word = int(rows[at, 0])
                    if word not in self.runs or found[:2] > self.runs[word][:2]:
                        self.runs[word] = found

    @property
    def fields(self) -> NDArray[np.bool_]:
        """For each keyword, whether a colon mostly follows it."""
        own = self.keyword >= 0
        every = np.bincount(self.keyword[own], minlength=self.count)
        marked = np.bincount(self.keyword[own & self.colon], minlength=self.count)
        return marked > _PART * every

    @property
    def _texts(self) -> int:
        return int(self.text[-1]) + 1 if len(self.text) else 1

    def _starts(self, size: int) -> NDArray[np.bool_]:
        """Return whether an expression of `size` words begins at each word."""
        begins = np.zeros(len(self.stems), np.bool_)
        last = len(self.stems) - size + 1
        if last > 0:
            begins[:last] = True
            for offset in range(1, size):
                begins[:last] &= self.joined[offset : offset + last]
        return begins

    def _key(self, starts: I64, size: int) -> I64:
        """Return a number that identifies the stems of each expression that begins at `starts`."""
        _, small = np.unique(self.stems, return_inverse=True)
        key = np.zeros(len(starts), np.int64)
        for offset in range(size):
            key = key * (int(small.max()) + 1) + small.ravel()[starts + offset]
        return key

    def best(self, keyword: int) -> tuple[str, set[str]]:
        """Return the expression that mostly contains a keyword, else its spelling, and the keywords in it."""
        size, _, start = self.runs.get(keyword, (1, 0, -1))
        if start < 0:
            forms = Counter(self.surfaces[self.keyword == keyword].tolist())
            if not forms:
                return "", set()
            return self._most({(form,): count for form, count in forms.items()})
        starts = np.flatnonzero(self._starts(size))
        key = self._key(starts, size)
        starts = starts[key == key[np.searchsorted(starts, start)]]
        return self._most(Counter(tuple(self.surfaces[at : at + size].tolist()) for at in starts.tolist()))

    def _most(self, forms: Mapping[tuple[int, ...], int]) -> tuple[str, set[str]]:
        """Return the most frequent spelling and its keywords.

        Ties go to the alphabetically first spelling.
        """
        found = min(forms, key=lambda form: (-forms[form], form))
        places = [self._speller.stems[self.stems[int(np.argmax(self.surfaces == one))]] for one in found]
        return " ".join(self._speller.surfaces[one] for one in found), {
            stem for stems in places for stem in stems
        }
