"""Which passages support a sentence of an answer.

Each sentence or table row of a passage is read with its neighbours, its title, the header of its table, and,
if it has a pronoun, the first name of a sentence before it. An answer's sentence is supported if

* the passages have each of its numbers and names, and have it next to most of what is next to it in the
  answer and is in these passages at all: "retired in 1920 and died in 1938" does not support "died in 1920";
* they have half of its other keywords;
* no passage that fits it as well contradicts it: denies what it states, or has the names of a verb or role
  exchanged.

It then cites those passages of the model's that support it, and the fewest others that are needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ketrag_fast._core import detect_language
from ketrag_fast.query.answer.facts import Fact, facts_of
from ketrag_fast.query.answer.passage_parts import parts_of
from ketrag_fast.records import dataclass
from ketrag_fast.types import Passage

_LEAST: Final = 0.5
"""Minimum share of a sentence's facts that its passages have, by weight, without names in their titles."""
_HEAVY: Final = 2.0
"""Weight of a number above 12, and of numbers and names around another one; that of a keyword is 1."""
_NEAR: Final = 4
"""Facts around a number or name that are looked for around it in the passages."""
_SHORT: Final = 3
"""A sentence with fewer facts is read with the one before it, or with the question."""
_LINES: Final = 4
"""Maximum number of a passage's sentences that support one sentence of an answer."""
_TRIED: Final = 6
"""Number of best sentences that are tried as the first of these."""
_CLOSE: Final = 0.7
"""Minimum weight of these, as a share of the weight of the best one."""
_RIVAL: Final = 0.9
"""Share of the best one's weight from which a sentence of a passage may contradict."""
_PREFIX: Final = 5
_ALIKE: Final = 0.7
"""Words are alike if they begin with the same 5 letters, and with the same 70 % of the longer one."""
_UNNUMBERED: Final = 0
"""Passage number of tables, which cannot be cited."""
_HEARD: Final = 1000
"""Last characters of the answer, whose language counts if no passage is in that of the sentence."""
_PRONOUN: Final = re.compile(
    r"\b(?:he|she|it|they|his|her|its|their|him|them|er|sie|es|sein|seine|ihr|ihre|il|elle|ils|elles|son|sa|ses|"
    r"él|ella|su|sus|lui|lei|suo|sua|hij|zij|zijn|haar)\b",
    re.IGNORECASE,
)
"""Pronouns that may refer to the first name of an earlier sentence."""
Keys = frozenset[str]


@dataclass(frozen=True, slots=True)
class Support:
    """The passages that support a sentence of an answer.

    Attributes:
        numbers: Numbers of the passages that support it: first those that the model cited.
        is_supported: None if the sentence states nothing, or is in a language that no passage is in.
    """

    numbers: tuple[int, ...]
    is_supported: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """A sentence or table row of a passage.

    Attributes:
        keys: Keys of its facts, of the title, of the header and of the subject before it.
        near: What its facts are next to: `keys`, but of a table row only its own.
        title: Keys of the title.
    """

    passage: int
    facts: tuple[Fact, ...]
    keys: Keys
    near: Keys
    title: Keys


Window = tuple[_Line, ...]
"""A line, then those before and after it; a row of a table alone."""


class Grounds:
    """The passages that an answer is written from, numbered from 1, ready for comparison."""

    def __init__(
        self,
        question: str,
        passages: Sequence[Passage],
        tables: Sequence[str] = (),
        languages: Sequence[int] = (),
    ) -> None:
        """Read the passages, and tables without a number, for which a sentence needs no citation."""
        self._languages = tuple(languages)
        self._spoken = {detect_language(passage.said) for passage in passages}
        self._names: Keys = frozenset()
        texts = [f"{passage.title}\n{passage.context}\n{passage.said}" for passage in passages]
        facts = [fact for text in (*texts, *tables, question) for fact in self._facts(text)]
        self._names = frozenset(fact.text for fact in facts if fact.kind == "name")
        self._vocabulary = sorted({key for fact in facts for key in fact.keys})
        self._alike: dict[tuple[bool, Keys], Keys] = {}
        self._windows: list[Window] = []
        for number, passage in enumerate(passages, 1):
            heading = passage.location.get("heading")
            above = " › ".join(map(str, heading)) if isinstance(heading, list) else ""
            title = f"{passage.title}\n{above}"
            self._windows += self._windows_of(number, title, passage.context, passage.said)
        for table in tables:
            self._windows += self._windows_of(_UNNUMBERED, "", "", table)
        self._before = self._facts(question)
        self._answer = ""

    def check(self, sentence: str, cited: Sequence[int] = ()) -> Support:
        """Return the passages that support the next sentence of the answer, which has no citation marks."""
        self._answer = f"{self._answer} {sentence}"[-_HEARD:]
        facts = self._facts(sentence)
        if not facts or not {detect_language(sentence), detect_language(self._answer)} & self._spoken:
            return Support((), None)
        around = self._before if len(facts) < _SHORT else []
        self._before = [*around, *facts][-2 * _NEAR :]
        claim = _Claim(facts, around, [self._same(fact) for fact in facts], [self._same(f) for f in around])
        chosen = claim.supported_by(self._windows, cited)
        if chosen is None:
            return Support((), False)
        numbers = sorted({window[0].passage for window in chosen} - {_UNNUMBERED})
        kept = [number for number in dict.fromkeys(cited) if number in numbers]
        return Support((*kept, *(number for number in numbers if number not in kept)), True)

    def _facts(self, text: str) -> list[Fact]:
        return facts_of(text, self._languages, self._names, language=detect_language(text))

    def _windows_of(self, number: int, title: str, context: str, text: str) -> Iterator[Window]:
        name, before = _keys(self._facts(title)), _keys(self._facts(context))
        lines: list[tuple[_Line, bool]] = []
        subject: Keys = frozenset()
        for found in parts_of(text, context):
            part = text[found.start : found.end]
            facts = tuple(self._facts(part))
            own = _keys(facts)
            keys = own | name | before | _keys(self._facts(found.header))
            pronoun = _PRONOUN.search(part)
            first = next((at for at, fact in enumerate(facts) if fact.kind == "name"), None)
            if pronoun is not None:
                keys |= subject
            if first is not None and (
                pronoun is None or part.lower().find(facts[first].text) < pronoun.start()
            ):
                subject = _keys(facts[at] for at in _name_around(facts, first))
            near = own if found.is_row else keys
            lines.append((_Line(number, facts, keys, near, name), found.is_row))
        for at, (line, is_row) in enumerate(lines):
            around = [] if is_row else lines[max(at - 1, 0) : at] + lines[at + 1 : at + 2]
            yield (line, *(other for other, is_other_row in around if not is_other_row))

    def _same(self, fact: Fact) -> Keys:
        """Return the keys in the passages that mean the same as a fact."""
        is_word = fact.kind != "number"
        found = self._alike.get((is_word, fact.keys))
        if found is None:
            found = fact.keys
            if is_word:
                found |= {key for key in self._vocabulary if any(_are_alike(key, own) for own in fact.keys)}
            self._alike[is_word, fact.keys] = found
        return found


@dataclass(frozen=True, slots=True)
class _Claim:
    """The facts of a sentence of an answer and of the one before it, and the passages' keys for each."""

    facts: Sequence[Fact]
    around: Sequence[Fact]
    same: Sequence[Keys]
    same_around: Sequence[Keys]

    def supported_by(self, windows: Sequence[Window], cited: Sequence[int]) -> list[Window] | None:
        """Return the windows that support the sentence; None if there are none, or if one contradicts it."""
        every = range(len(self.facts))
        scores = [self._weight(every, window) + 0.3 * self._weight_around(window) for window in windows]
        order = sorted(
            range(len(windows)), key=lambda at: (-scores[at], windows[at][0].passage not in cited, at)
        )
        if not order or scores[order[0]] <= 0.0:
            return None
        best = scores[order[0]]
        if any(scores[at] >= _RIVAL * best and self._is_contradicted(windows[at]) for at in order):
            return None
        every_line = [window[0] for window in windows]
        for at in order[:_TRIED]:
            chosen = self._cover(windows, windows[at], cited)
            if scores[at] >= _CLOSE * best and self._is_covered(chosen):
                lines = [line for window in (*chosen, windows[order[0]]) for line in window]
                if all(self._is_placed(one, lines, every_line) for one in every):
                    return chosen
        return None

    def _weight(self, facts: Iterable[int], window: Window) -> float:
        """Return the weight of the facts that a line has, and half of that of those next to it."""
        first, *others = window
        total = 0.0
        for at in facts:
            if self.same[at] & first.keys:
                total += _weight_of(self.facts[at])
            elif any(self.same[at] & line.keys for line in others):
                total += _weight_of(self.facts[at]) / 2
        return total

    def _weight_around(self, window: Window) -> float:
        return sum(any(keys & line.keys for line in window) for keys in self.same_around)

    def _cover(self, windows: Sequence[Window], first: Window, cited: Sequence[int]) -> list[Window]:
        """Return the first window and others that have the numbers and names which are missing in it."""
        chosen = [first]
        while len(chosen) < _LINES:
            have = frozenset().union(*(line.keys for window in chosen for line in window))
            missing = [
                at for at, fact in enumerate(self.facts) if fact.kind != "word" and not self.same[at] & have
            ]
            if not missing:
                break
            every = range(len(self.facts))
            gains = [
                (self._weight(missing, window), self._weight(every, window), window[0].passage in cited, -at)
                for at, window in enumerate(windows)
            ]
            gain = max(gains)
            if gain[0] <= 0.0:
                break
            chosen.append(windows[-gain[3]])
        return chosen

    def _is_covered(self, chosen: Sequence[Window]) -> bool:
        """Return whether windows have all numbers and names, and enough of the other keywords."""
        lines = [line for window in chosen for line in window]
        total = matched = 0.0
        for fact, keys in zip(self.facts, self.same, strict=True):
            has = any(keys & line.keys for line in lines)
            if not has and fact.kind != "word":
                return False
            weight = 0.0 if fact.kind == "name" and keys & lines[0].title else _weight_of(fact)
            total += weight
            matched += weight if has else 0.0
        return matched >= _LEAST * total

    def _is_placed(self, at: int, lines: Sequence[_Line], every_line: Sequence[_Line]) -> bool:
        """Return whether a line has a number or name next to most of what is next to it here.

        Only what the lines have counts, and of the sentence before what their passages have. The last part of
        a name is enough, if a line has the whole name. Other keywords may be anywhere.
        """
        fact = self.facts[at]
        if fact.kind == "word":
            return True
        name = _name_around(self.facts, at)
        if at < name.stop - 1 and any(
            all(self.same[part] & line.keys for part in name) for line in every_line
        ):
            return True
        distances = {
            other: abs(other - at) + 2 * abs(self.facts[other].clause - fact.clause)
            for other in range(len(self.facts))
            if other not in name
        }
        nearest = sorted(distances, key=lambda other: (distances[other], other))[:_NEAR]
        near = [
            (self.same[other], (1.0 if self.facts[other].kind == "word" else _HEAVY) / distances[other])
            for other in nearest
        ]
        near = [(keys, weight) for keys, weight in near if any(keys & line.near for line in lines)]
        numbers = {line.passage for line in lines}
        read = [line for line in every_line if line.passage in numbers]
        near += [(keys, 1.0 / _NEAR) for keys in self.same_around if any(keys & line.near for line in read)]
        half = sum(weight for _, weight in near) / 2
        return any(
            self.same[at] & line.keys
            and (not near or sum(weight for keys, weight in near if keys & line.near) > half)
            for line in lines
        )

    def _is_contradicted(self, window: Window) -> bool:
        shared = sum(bool(keys & window[0].keys) for keys in self.same)
        return 2 * shared >= len(self.facts) and (self._is_denied(window[0]) or self._is_swapped(window))

    def _is_denied(self, line: _Line) -> bool:
        """Return whether one of both denies what the other states. A double negation is not judged."""
        if any(len({fact.denial for fact in facts} - {0}) > 1 for facts in (self.facts, line.facts)):
            return False
        pairs = [
            (at, bool(fact.denial), bool(other.denial))
            for at, fact in enumerate(self.facts)
            for other in line.facts
            if self.same[at] & other.keys
        ]
        if any(ours and theirs for _, ours, theirs in pairs):
            return False
        agreeing = {at for at, ours, theirs in pairs if ours == theirs}
        return any(at not in agreeing for at, *_ in pairs)

    def _is_swapped(self, window: Window) -> bool:
        """Return whether a verb or role has other names in a line, and both have both names."""
        line = window[0]
        have = frozenset().union(*(other.keys for other in window))
        names = [keys for fact, keys in zip(self.facts, self.same, strict=True) if fact.kind == "name"]
        for at, fact in enumerate(self.facts):
            ours = [self.same[part] for part in _agent(self.facts, at)] if fact.kind == "word" else []
            if not ours or not all(keys & have for keys in ours):
                continue
            places = [place for place, other in enumerate(line.facts) if self.same[at] & other.keys]
            if places and all(_is_other(ours, names, line.facts, place) for place in places):
                return True
        return False


def _is_other(ours: Sequence[Keys], names: Sequence[Keys], facts: Sequence[Fact], place: int) -> bool:
    """Return whether the agent of a fact is neither ours nor a part of it, but one of our names."""
    theirs = [facts[part].keys for part in _agent(facts, place)]
    return (
        bool(theirs)
        and all(any(keys & name for name in names) for keys in theirs)
        and not all(any(keys & own for own in ours) for keys in theirs)
        and not all(any(keys & own for keys in theirs) for own in ours)
    )


def _agent(facts: Sequence[Fact], at: int) -> range:
    """Return the name next to a verb or role: after "by", else before it, else after it. May be empty."""
    own = facts[at]
    after = facts[at + 1] if at + 1 < len(facts) and facts[at + 1].clause == own.clause else None
    if after is not None and after.link == "by":
        return _name_around(facts, at + 1)
    if at and not own.link and facts[at - 1].clause == own.clause and facts[at - 1].kind == "name":
        return _name_around(facts, at - 1)
    return range(0) if after is None or after.link else _name_around(facts, at + 1)


def _name_around(facts: Sequence[Fact], at: int) -> range:
    """Return the whole name that a fact is part of; a number alone, and nothing for a keyword."""
    if facts[at].kind != "name":
        return range(at, at + (facts[at].kind == "number"))

    def continues(place: int) -> bool:
        one, two = facts[place - 1 : place + 1]
        return one.kind == two.kind and one.clause == two.clause and not two.link

    first, stop = at, at + 1
    while first > 0 and continues(first):
        first -= 1
    while stop < len(facts) and continues(stop):
        stop += 1
    return range(first, stop)


def _weight_of(fact: Fact) -> float:
    return _HEAVY if fact.kind == "number" and not fact.is_small else 1.0


def _keys(facts: Iterable[Fact]) -> Keys:
    return frozenset().union(*(fact.keys for fact in facts))


def _are_alike(one: str, other: str) -> bool:
    if one[:_PREFIX] != other[:_PREFIX] or min(len(one), len(other)) < _PREFIX:
        return False
    shared = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    return (min(len(one), len(other)) if shared is None else shared) >= _ALIKE * max(len(one), len(other))
