"""`heuristic`: extract entities and relations by rules, without a model.

Entities are the document title, names (runs of capitalised words, including "of the" and the like), dates,
and noun phrases: predicates ("is a peer-reviewed journal") and runs of ordinary words that a passage repeats.
Relations connect the subject of a sentence, and the title, to the other entities of the sentence, which is
their description. Nothing is ranked, so unimportant names are included; benches/extraction.py prints
precision and recall against the extraction of a model.

In other languages than English, function words of the language tell names from other words (in German,
a noun after an article is not a name either), and `name_runs` finds names in scripts without capitals.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from typing import Final

from ketrag_fast import _core
from ketrag_fast.kernels.text import sentence_spans
from ketrag_fast.models.extraction import name_runs
from ketrag_fast.models.extraction.records import (
    MAX_NAME,
    EntityRecord,
    Extraction,
    NameMention,
    RelationRecord,
    clean,
)

VERSION: Final = "3"
"""Version of the rules, part of the reply key; increase it when the result changes."""
MAX_ENTITIES: Final = 200
MAX_RELATIONS: Final = 400
SENTENCE: Final = 240
"""Maximum length of a description; a longer sentence is cut around the entity."""
_WORDS_IN_NAME: Final = 12
_RUN: Final = 3

_MONTH: Final = (
    "January|February|March|April|May|June|July|August|September|October|November|December"
    "|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"
)
_YEAR: Final = r"(?:1[0-9]|20)\d\d"
_DATE: Final = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTH})\b(?:,? {_YEAR}\b)?"
    rf"|(?:{_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? {_YEAR}\b)?"
    rf"|(?:{_MONTH})\.?,? {_YEAR}\b"
    rf"|{_YEAR}s\b|{_YEAR} ?[-–] ?(?:{_YEAR}|\d\d)\b|{_YEAR}\b(?![-–]\w| [A-Z]))"
)
_TOKEN: Final = re.compile(r"\d+(?:[.,]\d+)*\w*|[^\W\d_](?:\w|['’.\-](?=\w))*")
_SMALL: Final = re.compile(r"(?<!\w)[a-z]\w+")
_SMALL_LETTERS: Final = re.compile(r"(?<!\w)[^\W\d_A-Z]\w+")
_STRETCH: Final = re.compile(r"(?<!\w)[a-z][a-z-]+((?: [a-z][a-z-]+)+(?!\w))?")
# Single words match too (their group is None), so that nothing is scanned twice.
_GAPS: Final = frozenset({" ", "-", ". ", " & ", "& ", ".", "/", "+"})


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_CONNECTORS: Final = _set(
    "of de la le du des von van der den di da del della do dos y e al el bin ibn the for in and on at to"
)
_WEAK: Final = frozenset({"for", "in", "and", "on", "at", "to"})
"""Connectors that only join names of organisations and after "of"; elsewhere they separate two names."""
_BODIES: Final = _set(
    """Academy Agency Association Board Bureau Center Centre College Commission Committee Conference
    Convention Council Department Faculty Federation Foundation Fund Institute Institution Journal Ministry
    Museum Office Organisation Organization School Secretary Service Society Transactions Treaty Union
    University"""
)
_GERMAN_ARTICLES: Final = _set(
    """der die das dem den des ein eine einem einen einer eines im am zum zur vom beim ins ans kein keine
    keinen keiner seine seiner seinem seinen sein ihre ihrer ihrem ihren ihr diese dieser diesem diesen dieses
    jede jeder jedem jeden alle aller allen mehrere viele einige beide beiden"""
)
_CODES: Final = {name: code for code, name in _core.languages()}
_AFTER_COMMA: Final = frozenset({"Inc", "Jr", "Sr", "Ltd", "LLC", "III", "II", "Esq"})
_OF_A_COUNTRY: Final = ("an", "ish", "ese", "ch")
_OPENS: Final = frozenset(".!?:")
_BE: Final = frozenset({"is", "was", "are", "were", "became"})
_ARTICLES: Final = frozenset({"a", "an", "the"})
_OPENERS: Final = _set(
    """according after all although among another as at because before between born both by currently despite
    did does during each early first following for from he how however in is it its later located many name
    number on once one originally other second several she since that the there these they this though three
    today two under upon was we what when where which while who why with within without you his her their our
    my your no not some most such then thus also but and or if an a to of any every few more much new next
    only own same so than until up very yet here i like unlike founded situated established released built
    known based following including using considered named called"""
)


_Word = tuple[str, int, int]


def extract(title: str, text: str, language: str = "auto") -> Extraction:
    """Return the entities and relations of a chunk. Never fails; the result is deterministic.

    `language` is "auto", a language, or "none", which counts as English.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    subject = subject_of(title, text)
    passage = passage_with_rules(text, subject, language)
    entities: dict[str, EntityRecord] = {}
    relations: dict[tuple[str, str], RelationRecord] = {}
    head = subject.casefold()
    for start, end in sentence_spans(text).tolist():
        sentence = text[start:end]
        whole = clean(sentence, escaped=False) if len(sentence) <= SENTENCE else ""
        if subject and not entities:  # the first sentence describes the title
            entities[head] = EntityRecord(subject, "", whole or excerpt_around(sentence, 0))
        found = distinct(passage.entities(sentence))
        for key, each in found.items():
            if key not in entities and len(entities) < MAX_ENTITIES:
                entities[key] = EntityRecord(
                    each.name, each.kind, whole or excerpt_around(sentence, each.start)
                )
        own = own_subject(sentence, found, passage.articles)
        for key, each in found.items():
            # Each is related to the subject of the sentence, which is related to the title.
            first = head if key == own else own or head
            pair = (first, key)
            if first == key or first not in entities or key not in entities:
                continue
            if pair in relations or pair[::-1] in relations or len(relations) >= MAX_RELATIONS:
                continue
            description = whole or excerpt_around(sentence, each.start)
            relations[pair] = RelationRecord(entities[first].name, entities[key].name, description)
        head = head or own
    return Extraction(tuple(entities.values()), tuple(relations.values()))


def own_subject(sentence: str, found: Mapping[str, NameMention], articles: Container[str]) -> str:
    """Return the entity at the beginning of a sentence, after an article, or "" (as for a pronoun)."""
    for key, first in found.items():
        if first.kind != "date":
            before = sentence[: first.start].strip(" \"'“(«„「《").lower()
            return key if before == "" or before in articles else ""
    return ""


def passage_with_rules(
    text: str, subject: str, language: str = "auto"
) -> TitledPassage | name_runs.CaselessPassage:
    """Return a passage with the rules of a language, or of the one that it is in."""
    code = _CODES.get(language, language) if language != "auto" else _core.detect_language(text)
    if code in name_runs.CASELESS or code in name_runs.UNSPACED:
        return name_runs.CaselessPassage(text, subject, code)
    return TitledPassage(text, subject, code)


def distinct(found: list[NameMention]) -> dict[str, NameMention]:
    """Return the first mention of each name, in text order."""
    first: dict[str, NameMention] = {}
    for each in sorted(found):
        first.setdefault(each.name.casefold(), each)
    return first


def excerpt_around(sentence: str, start: int) -> str:
    """Return the part of a long sentence around an offset that fits in a description."""
    begin = max(0, min(start - SENTENCE // 2, len(sentence) - SENTENCE))
    cut = sentence[begin : begin + SENTENCE]
    if begin:
        cut = cut[cut.find(" ") + 1 :]
    if begin + SENTENCE < len(sentence) and " " in cut:
        cut = cut[: cut.rfind(" ")]
    return clean(cut, escaped=False)


# ---------------------------------------------------------------- entities


class TitledPassage:
    """A passage, with the statistics of its words that the rules need."""

    def __init__(self, text: str, subject: str, language: str = "en") -> None:
        own = language not in ("en", "none")
        # Function words, which separate names from other words if the text is not English.
        self._functions = name_runs.function_words(language) if own else frozenset[str]()
        self.articles = self._functions or _ARTICLES
        self._nouns = language == "de"  # every noun has a capital
        self._repeated = frozenset[tuple[str, ...]]() if own else _find_repeated_runs(text)
        self._small = frozenset(_SMALL_LETTERS.findall(text) if own else _SMALL.findall(text))
        self._subject = subject if len(subject) > 1 else ""

    def entities(self, sentence: str) -> list[NameMention]:
        """Return all entity mentions of a sentence."""
        taken = bytearray(len(sentence))
        found = [NameMention(at, end, self._subject, "") for at, end in _places(sentence, self._subject)]
        for start, end, _, _ in found:
            taken[start:end] = b"\1" * (end - start)
        for date in _DATE.finditer(sentence):
            start, end = date.span()
            if not any(taken[start:end]):
                found.append(NameMention(start, end, date.group(), "date"))
                taken[start:end] = b"\1" * (end - start)
        words = [(m.group(), m.start(), m.end()) for m in _TOKEN.finditer(sentence)]
        k, count = 0, len(words)
        while k < count:
            word, start, _ = words[k]
            step = 1
            if taken[start]:
                pass
            elif word[0].isupper() or (_is_year(word) and _leads(sentence, words, k)):
                last = _name_end(sentence, words, k, taken)
                name = self._named(sentence, words, k, last)
                if name is not None:
                    found.append(name)
                step = last + 1 - k
            elif word in _BE:
                run = _noun_run(sentence, words, k + 1)
                if run is not None:
                    found.append(run)
            elif self._repeated:
                size = _repeated_run_length(words, k, self._repeated)
                if size:
                    begin, end = words[k][1], words[k + size - 1][2]
                    found.append(NameMention(begin, end, sentence[begin:end], ""))
                    step = size
            k += step
        return found

    def _named(self, sentence: str, words: list[_Word], first: int, last: int) -> NameMention | None:
        """Return the name without leading stop words, or None if nothing is left."""
        begin = first
        while begin <= last and words[begin][0].lower() in (self._functions or _stop_words()):
            begin += 1
        if begin > last:
            return None
        start, end = words[begin][1], words[last][2]
        name = sentence[start:end]
        for ending in ("'s", "’s", "'", "’"):
            name = name.removesuffix(ending)
        if len(name) < 2 or len(name) > MAX_NAME:
            return None
        if name.isdigit():
            return NameMention(start, end, name, "date")
        opens = first == 0 or not _OPENS.isdisjoint(sentence[words[first - 1][2] : words[first][1]])
        if begin == last and (name.lower() in _OPENERS or (opens and self._common(name))):
            return None
        if self._nouns and begin == last and (begin > first or self._follows_article(sentence, words, first)):
            return None
        end = start + len(name)
        ending = words[last][0]
        if sentence[end : end + 1] == "." and (_abbreviation(ending) or ending in _AFTER_COMMA):
            end += 1
            name = sentence[start:end]
        return NameMention(start, end, name, "")

    def _follows_article(self, sentence: str, words: list[_Word], k: int) -> bool:
        """Return whether a single word follows an article or adjective: "der Stadt", "alte Häuser"."""
        if k == 0 or sentence[words[k - 1][2] : words[k][1]] != " ":
            return False
        before = words[k - 1][0]
        return before.lower() in _GERMAN_ARTICLES or (
            before[0].islower()
            and before.endswith(("e", "en", "er", "es", "em"))
            and before not in self._functions
        )

    def _common(self, word: str) -> bool:
        """Return whether the first word of a sentence is probably not a name."""
        small = word.lower()
        if self._functions:
            return small in self._small
        return small.endswith("ly") or small in self._small or small.removesuffix("s") in self._small


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isdigit()


def _leads(sentence: str, words: list[_Word], k: int) -> bool:
    """Return whether a capitalised word follows directly: "2010 Census"."""
    return (
        k + 1 < len(words) and sentence[words[k][2] : words[k + 1][1]] == " " and words[k + 1][0][0].isupper()
    )


def _name_end(sentence: str, words: list[_Word], first: int, taken: bytearray) -> int:
    """Return the last word of the name that begins at `first`."""
    last, open_name = first, words[first][0] in _BODIES
    while last + 1 < len(words) and last - first < _WORDS_IN_NAME:
        word = words[last][0]
        gap = sentence[words[last][2] : words[last + 1][1]]
        after = words[last + 1][0]
        if gap in (", ", ",") and after in _AFTER_COMMA:
            last += 1
            continue
        if gap not in _GAPS or (gap == ". " and len(word) > 3 and not _abbreviation(word)):
            break
        if taken[words[last + 1][1]]:
            break
        if (
            _is_year(word)
            and last == first
            and after.endswith(_OF_A_COUNTRY)
            and not _leads(sentence, words, last + 1)
        ):
            break  # "1936 Italian film"
        if after[0].isupper() or (after[0].isdigit() and gap == " "):
            last += 1
            open_name |= after in _BODIES
            continue
        k = last + 1
        while k < len(words) and k - last <= 3 and words[k][0] in _CONNECTORS:
            if sentence[words[k - 1][2] : words[k][1]] != " ":
                break
            k += 1
        between = {words[j][0] for j in range(last + 1, k)}
        over = 1 <= k - last - 1 <= 3 and k < len(words) and words[k][0][0].isupper()
        if not over or words[last + 1][0] == "the" or sentence[words[k - 1][2] : words[k][1]] != " ":
            break
        if between & _WEAK and not open_name:
            break
        open_name |= "of" in between
        last = k
    return last


def _abbreviation(word: str) -> bool:
    return "." in word


def _noun_run(sentence: str, words: list[_Word], k: int) -> NameMention | None:
    """Return the noun phrase after "is a": lower-case words up to a stop word, or None."""
    if k >= len(words) or words[k][0] not in _ARTICLES:
        return None
    stop, begin, last = _stop_words(), k + 1, k
    while last + 1 < len(words) and last - k < 5:
        word, start, _ = words[last + 1]
        if sentence[words[last][2] : start] != " " or word in stop or word[0].isdigit():
            break
        if word.endswith(("ed", "ing")) and "-" not in word:
            break
        last += 1
    kept = list(range(begin, last + 1))
    while kept and words[kept[0]][0][0].isupper():  # a nationality before it is a separate name
        kept.pop(0)
    if len(kept) < 2 or any(words[j][0][0].isupper() for j in kept):
        return None
    start, end = words[kept[0]][1], words[kept[-1]][2]
    return NameMention(start, end, sentence[start:end], "")


def _find_repeated_runs(text: str) -> frozenset[tuple[str, ...]]:
    """Return runs of two or three ordinary words that occur at least twice: "nuclear weapons"."""
    seen: set[tuple[str, ...]] = set()
    twice: set[tuple[str, ...]] = set()
    stop = _stop_words()
    for stretch in _STRETCH.finditer(text):
        if stretch[1] is None:
            continue
        words = stretch[0].split()
        for size in range(2, _RUN + 1):
            for k in range(len(words) - size + 1):
                run = tuple(words[k : k + size])
                if not stop.isdisjoint(run) or run[-1].endswith(("ed", "ing", "ly")):
                    continue
                if run in seen:
                    twice.add(run)
                seen.add(run)
    return frozenset(twice)


def _repeated_run_length(words: list[_Word], k: int, repeated: frozenset[tuple[str, ...]]) -> int:
    """Return the length of the longest repeated run that begins at word `k`, or 0."""
    if repeated:
        for size in range(min(_RUN, len(words) - k), 1, -1):
            if tuple(word for word, _, _ in words[k : k + size]) in repeated:
                return size
    return 0


def _places(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of a name in a text, as whole words, ignoring case."""
    plain, wanted = text.lower(), name.lower()
    if len(plain) != len(text) or len(wanted) != len(name):  # offsets differ if lower case has another length
        plain, wanted = text, name
    at = plain.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        if not plain[at - 1 : at].isalnum() and not plain[end : end + 1].isalnum():
            yield at, end
        at = plain.find(wanted, end)


def _without_bracket(title: str) -> str:
    """Return a title without a final bracket: "Mercury" for "Mercury (planet)"."""
    begin = title.rfind("(") if title.endswith(")") else -1
    return title[:begin].rstrip() if begin >= 0 and ")" not in title[begin:-1] else title


def subject_of(title: str, text: str) -> str:
    """Return the title as a name, or "".

    A final bracket is removed, and so is the part after a comma if the text only has the part before it.
    """
    plain = clean(title[: 4 * MAX_NAME], escaped=False)
    base = _without_bracket(plain) or plain
    short = base.partition(", ")[0]
    if base not in text and any(_places(text, short)):
        base = short
    return base if len(base) <= MAX_NAME and any(c.isalnum() for c in base) else ""


@lru_cache(maxsize=1)
def _stop_words() -> frozenset[str]:
    return frozenset(_core.stop_words("english")[0])
