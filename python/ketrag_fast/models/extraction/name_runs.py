"""Names in text without capitals, by rules: for languages whose script has none.

Names are the title, quoted text, words in Latin letters, dates, and runs of words between function words: two
or three words, or one that the passage repeats. Scripts without spaces have no words: there, names are runs
of characters that a passage repeats, transliterated names, and katakana.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Final

from ketrag_fast import _core
from ketrag_fast.models.extraction.records import MAX_NAME, NameMention

CASELESS: Final = frozenset(
    (
        *("ar", "fa", "he", "yi"),
        *("bn", "gu", "hi", "kn", "ml", "ne", "pa", "si", "ta", "te"),
        *("am", "ka", "ko"),
    )
)
"""Languages with spaces between words and without capitals."""
UNSPACED: Final = frozenset(["ja", "km", "lo", "my", "th", "zh"])
_WORDS_IN_NAME: Final = 3
_LETTERS: Final = 3
"""Minimum length of a single word."""
_MARKS: Final = (
    "\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0980-\u0dff\u135d-\u135f"
)
_WORD: Final = re.compile(rf"[\w{_MARKS}]+(?:[-'’][\w{_MARKS}]+)*")
_DATE: Final = re.compile(r"(?<!\d)(?:1[0-9]|20)\d\d(?!\d)(?:年(?:\d{1,2}月(?:\d{1,2}日)?)?)?")
_QUOTED: Final = re.compile(r"[«“„「『《〈]([^«»“”„「」『』《》〈〉\n]{2,60})[»”“」』》〉]")
_LATIN: Final = re.compile(r"[A-Z][A-Za-z0-9.&'’-]+(?: (?:of |de |the )?[A-Z][A-Za-z0-9.&'’-]*)*")
_DOTTED: Final = re.compile(r"[一-鿿]{2,6}(?:[·・‧][一-鿿]{1,6})+|[ァ-ヺー]{2,12}(?:[・＝][ァ-ヺー]{1,12})*")
_RUN: Final = re.compile(r"[一-鿿々]{2,}|[ก-๙]{4,}|[ກ-ໟ]{4,}|[က-၉]{4,}|[ក-៓]{4,}")
_NEVER_NAMES: Final = {"ar": "عام سنة وقد قد ثم ولد", "he": "שנת בשנת היה היתה"}
"""Further words that are not part of a name."""
_LONGEST: Final = 8
_SYLLABLES: Final = 4
"""Minimum length of a run of Thai, Lao, Burmese or Khmer characters."""
_BREAKS: Final = re.compile(
    "[的了在是和与與及于於有为為被从從到对對也就都而等其之由以或这這那他她它们們我你不个個年月日中上下将將把"
    "并並但因所此该該每各又还還很最更已曾会會可能要让讓给給使向后後前时時]|位于|成立|以及"
)


class CaselessPassage:
    """A passage in a script without capitals, with the runs that it repeats."""

    def __init__(self, text: str, subject: str, language: str) -> None:
        self._subject = subject if len(subject) > 1 else ""
        self._unspaced = language in UNSPACED
        self._stop = function_words(language)
        self.articles = self._stop
        words = (match.group() for match in _WORD.finditer(text))
        self._repeated: frozenset[str] = (
            _repeated_runs(text)
            if self._unspaced
            else frozenset(word for word, count in Counter(words).items() if count > 1)
        )

    def entities(self, sentence: str) -> list[NameMention]:
        """Return all entity mentions of a sentence."""
        taken = bytearray(len(sentence))
        found: list[NameMention] = []

        def add(start: int, end: int, kind: str = "") -> None:
            if end - start <= MAX_NAME and not any(taken[start:end]):
                found.append(NameMention(start, end, sentence[start:end], kind))
                taken[start:end] = b"\1" * (end - start)

        for start, end in places(sentence, self._subject):
            add(start, end)
        for match in _QUOTED.finditer(sentence):
            add(*match.span(1))
        for match in _DATE.finditer(sentence):
            add(*match.span(), "date")
        for match in _DOTTED.finditer(sentence):
            add(*_without_breaks(match))
        for match in _LATIN.finditer(sentence):
            add(*match.span())
        if self._unspaced:
            for start, end in self._runs(sentence):
                add(start, end)
        else:
            for start, end in self._names(sentence, taken):
                add(start, end)
        return found

    def _runs(self, sentence: str) -> list[tuple[int, int]]:
        """Return the longest repeated runs, from left to right."""
        found: list[tuple[int, int]] = []
        for run in _RUN.finditer(sentence):
            at = run.start()
            while at < run.end():
                longest = min(_LONGEST, run.end() - at) if "一" <= sentence[at] <= "鿿" else run.end() - at
                sizes = range(longest, 1, -1)
                size = next((n for n in sizes if sentence[at : at + n] in self._repeated), 0)
                if size:
                    found.append((at, at + size))
                at += size or 1
        return found

    def _names(self, sentence: str, taken: bytearray) -> list[tuple[int, int]]:
        """Return the names between function words: of two or three words, or a word that is repeated."""
        found: list[tuple[int, int]] = []
        run: list[re.Match[str]] = []

        def close() -> None:
            single = len(run) == 1
            word = run[0].group() if single else ""
            if (single and len(word) >= _LETTERS and word in self._repeated) or 1 < len(
                run
            ) <= _WORDS_IN_NAME:
                found.append((run[0].start(), run[-1].end()))
            elif len(run) > _WORDS_IN_NAME:
                repeated = (m for m in run if len(m.group()) >= _LETTERS and m.group() in self._repeated)
                found.extend(match.span() for match in repeated)
            run.clear()

        for match in _WORD.finditer(sentence):
            word = match.group()
            if run and sentence[run[-1].end() : match.start()] != " ":
                close()
            if taken[match.start()] or word.isdigit() or _folded(word) in self._stop:
                close()
            else:
                run.append(match)
        close()
        return found


def places(text: str, name: str) -> list[tuple[int, int]]:
    """Return the spans of a name in a text; a script without spaces, or a prefix, may precede it."""
    found: list[tuple[int, int]] = []
    at = text.find(name) if name else -1
    while at >= 0:
        end = at + len(name)
        loose = bool(_RUN.match(name)) or not text[end : end + 1].isalnum()
        if loose and (_RUN.match(name) or _begins(text, at)):
            found.append((at, end))
        at = text.find(name, end)
    return found


def _without_breaks(match: re.Match[str]) -> tuple[int, int]:
    """Return the span of a transliterated name without function characters around it."""
    first, dot, rest = match.group().partition("·")
    if not dot:
        return match.span()
    before = max((found.end() for found in _BREAKS.finditer(first)), default=0)
    after = _BREAKS.search(rest.rpartition("·")[2])
    shorter = 0 if after is None or not after.start() else len(rest.rpartition("·")[2]) - after.start()
    return match.start() + (before if before < len(first) else 0), match.end() - shorter


def _begins(text: str, at: int) -> bool:
    """Return whether a word begins at an offset, perhaps after an attached particle ("بـ", "ו")."""
    before = re.split(r"\W", text[max(at - 4, 0) : at])[-1]
    return before in ("", *"وبلكفובהלמכש", "وب", "ول", "ال", "وال", "بال")


def _repeated_runs(text: str) -> frozenset[str]:
    """Return runs of at least two characters that occur twice, without function characters."""
    counts: Counter[str] = Counter()
    for run in _RUN.finditer(text):
        if run.group()[0] >= "一":
            for part in _BREAKS.split(run.group()):
                longest = min(_LONGEST, len(part))
                for size in range(2, longest + 1):
                    counts.update(part[k : k + size] for k in range(len(part) - size + 1))
        elif len(run.group()) >= _SYLLABLES:
            counts[run.group()] += 1
    return frozenset(run for run, count in counts.items() if count > 1)


@lru_cache(maxsize=64)
def function_words(language: str) -> frozenset[str]:
    """Return the folded function words of a language, by its code."""
    listed = (*_core.stop_words(language)[0], *_NEVER_NAMES.get(language, "").split())
    return frozenset(_folded(word) for word in listed)


def _folded(word: str) -> str:
    return re.sub(f"[{_MARKS}]", "", word).lower() if not word.isascii() else word.lower()
