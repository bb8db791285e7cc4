"""The two lines of a passage that hold most of a query's rare words, with the words marked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.systems.shared.document_languages import languages_of
from ketrag_fast.systems.shared.name_lookup import Names
from ketrag_fast.systems.shared.rows import strings
from ketrag_fast.types.hits import ShownLine

if TYPE_CHECKING:
    from ketrag_fast.query.open_generation import Opened

LINES: Final = 2
_WORD: Final = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_PAIR: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]")
"""Scripts without spaces, whose keywords are pairs of letters."""
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？;])\s+")
_LONG: Final = 160
"""Characters from which a line is divided at the ends of its sentences."""

_ENOUGH: Final = 80
"""Characters of a line that is shown alone if no other line has a word of the query."""


class Snippets:
    """Finds the lines of passages for one query."""

    def __init__(self, opened: Opened, question: str) -> None:
        stages = opened.generation.stages
        self._languages = languages_of(stages.get("links", stages.get("words")))
        keywords = dict.fromkeys(_core.lexical_keywords(question, languages=self._languages))
        self._weights = _rarities(opened, list(keywords))
        self._pairs = [word for word in keywords if _PAIR.match(word)]
        self._known: dict[str, float] = {}

    def lines(self, text: str, first: int | None) -> tuple[ShownLine, ...]:
        """Return the best one or two lines of a passage. `first` is the number of its first line."""
        rows = list(_pieces(text))
        marked = [self._marks(piece) for _, piece in rows]
        words = [{word: weight for word, weight, _ in marks} for marks in marked]
        seen: set[str] = set()
        best: list[int] = []
        for _ in range(min(LINES, len(rows))):
            # A word counts once, so that the second line adds to the first.
            score = [
                sum(weight * (1 if word not in seen else 0.1) for word, weight in own.items())
                for own in words
            ]
            order = sorted(
                (at for at in range(len(rows)) if at not in best),
                key=lambda at: (-score[at], _apart(at, best), at),
            )
            if best and not words[order[0]] and len(rows[best[0]][1]) >= _ENOUGH:
                break  # a long line says more than another one without a word of the query
            best.append(order[0])
            seen |= words[order[0]].keys()
        found = []
        for at in sorted(best):
            line, piece = rows[at]
            spans = tuple(span for _, _, span in marked[at])
            found.append(ShownLine(piece, spans, None if first is None else first + line))
        return tuple(found)

    def marks(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return where words of the query are in a text."""
        return tuple(span for _, _, span in self._marks(text))

    def _marks(self, text: str) -> list[tuple[str, float, tuple[int, int]]]:
        """Return the words of the query in a text: the word as written, its weight, and its range."""
        found = []
        for match in _WORD.finditer(text):
            weight = self._weight(match[0])
            if weight:
                found.append((match[0].casefold(), weight, match.span()))
        if self._pairs:
            covered = [False] * len(text)
            for pair in self._pairs:
                for match in re.finditer(re.escape(pair), text):
                    if not any(covered[match.start() : match.end()]):
                        found.append((pair, self._weights[pair], match.span()))
                        covered[match.start() : match.end()] = [True] * len(pair)
            found.sort(key=lambda one: one[2])
        return found

    def _weight(self, word: str) -> float:
        """Return the rarity of a word if the query has it, in whatever form; else 0."""
        known = self._known.get(word)
        if known is None:
            keys = () if _PAIR.match(word) else _core.lexical_keywords(word, languages=self._languages)
            known = self._known[word] = max((self._weights.get(key, 0.0) for key in keys), default=0.0)
        return known


def _apart(at: int, best: Sequence[int]) -> int:
    """Return how far a line is from the chosen ones: the line below first, then the one above."""
    return min((abs(2 * (at - other) - 1) for other in best), default=0)


def _pieces(text: str) -> list[tuple[int, str]]:
    """Return the lines of a text without blank ones, long ones in sentences, each with its line's number."""
    found = []
    for number, line in enumerate(text.split("\n")):
        line = line.strip()
        if len(line) > _LONG:
            found += [(number, piece) for piece in _SENTENCE.split(line) if piece]
        elif any(letter.isalnum() for letter in line):
            found.append((number, line))
    return found or [(0, text.strip())]


def _rarities(opened: Opened, keywords: Sequence[str]) -> Mapping[str, float]:
    """Return a weight for each keyword: the fewer passages have it, the more."""
    links = opened.generation.stages.get("links")
    if links is None or not keywords:
        return dict.fromkeys(keywords, 1.0)
    names = Names(*strings(links, "keywords"), case=str.lower)
    ends = links["keyword_units_indptr"]
    units = len(opened.searcher)
    weights = {}
    for word in keywords:
        at = names.find(word)
        count = 0 if at is None else int(np.diff(ends[at : at + 2])[0])
        weights[word] = math.log1p(units / (1 + count))
    return weights
