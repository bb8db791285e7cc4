"""Sentences that answer a question without a language model: quotes from the passages."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ketrag_fast.kernels import tokenise
from ketrag_fast.query.answer.facts import stem
from ketrag_fast.query.answer.passage_parts import Part, heading_names, parts_of
from ketrag_fast.types import Context, Passage, Quote

MOST: Final = 3
"""Default number of quotes of an answer."""
_EACH: Final = 2  # quotes of one passage
_READ: Final = 20  # passages
# Weights of the score. Their proportions were fitted on hotpotqa-dev and xquad-en, then rounded.
_PASSAGE: Final = 7.0
_TERMS: Final = 2.5
_TYPE: Final = 1.2
_WHOLE: Final = 2.0
_NEARLY_ALL: Final = 0.8
_MENTIONED: Final = 0.5
_ASKED_ABOUT: Final = 0.4
_BEHIND: Final = 2.25
"""Difference to the best score above which a sentence is not quoted."""
_MENTIONING: Final = 4  # passages that may mention the subject of another one
_LEAST: Final = 4  # characters of a title that counts as a subject
_WORD: Final = re.compile(r"\w+")
_COMPOUND: Final = re.compile(r"(?<![^\W_])[^\W_]++(?:[-_.][^\W_]++)++")
"""A name such as item-40, max_attempts or v2.1, which is not the same as its parts."""


@dataclass(frozen=True, slots=True)
class _ScoredSentence:
    """A sentence of a passage and its score."""

    passage: int
    part: Part
    words: frozenset[str]
    score: float


def best_sentences(context: Context, most: int = MOST) -> tuple[Quote, ...]:
    """Return up to `most` sentences or rows of tables of the context's first 20 passages, best first.

    At most two of one passage are quoted, or half of `most`, and none whose score is more than 2.25 below the
    best one, so that a question with a clear answer gets few quotes. Of sentences with equal keywords one is
    quoted. The score of a sentence is the sum of:

    * 7 times the score of its passage, as a share of the best score in its channel;
    * 2.5 times the share of the question's terms that it or its passage's title has, weighted by
      ln(1 + (N - n + 0.5) / (n + 0.5)) (n of the N sentences have the term; English endings do not count);
    * 1.2 if it contains what the question asks for: a time, a number, a location or a name; 3.2 if it also
      has at least 80 % of the terms, by weight: then it probably answers the question alone;
    * 0.5 if another one of the first four passages mentions the title of its passage, and so leads to it;
    * -0.4 if the question itself contains that title, because the answer is then often in another passage.
    """
    passages = context.passages[:_READ]
    taken: Counter[int] = Counter()
    chosen: list[_ScoredSentence] = []
    # Sentences are in the order of passages and texts, which decides ties.
    for one in sorted(_score_sentences(context.question, passages), key=lambda one: -one.score):
        if len(chosen) == most or (chosen and one.score < chosen[0].score - _BEHIND):
            break
        is_repeated = any(one.words == other.words for other in chosen)
        if taken[one.passage] < max(_EACH, most // 2) and not is_repeated:
            taken[one.passage] += 1
            chosen.append(one)
    quotes = []
    for one in chosen:
        passage = passages[one.passage]
        start, end = passage.start + one.part.start, passage.start + one.part.end
        text = passage.text[one.part.start : one.part.end]
        quotes.append(Quote(one.passage + 1, text, passage.document, start, end, header=one.part.header))
    return tuple(quotes)


def _score_sentences(question: str, passages: Sequence[Passage]) -> list[_ScoredSentence]:
    """Return the sentences of passages in order."""
    parts: list[tuple[int, Part, frozenset[str]]] = []
    for at, passage in enumerate(passages):
        found = parts_of(passage.text, passage.context, heading_names(passage))
        parts += [(at, part, _stems(passage.text[part.start : part.end])) for part in found]
    count = Counter(word for *_, words in parts for word in words)
    titles = [_stems(passage.title) for passage in passages]
    weights = {word: rarity(count[word], len(parts)) for word in _stems(question)}
    total = sum(sorted(weights.values())) or 1.0
    wanted = answer_type(question)
    base = _passage_scores(question, passages)
    sentences = []
    for at, part, words in parts:
        known = words | titles[at] | _stems(part.header)
        shared = sum(sorted(weights[word] for word in weights.keys() & known))
        score = base[at] + _TERMS * shared / total
        if wanted is not None and contains_type(wanted, passages[at].text[part.start : part.end], question):
            score += _TYPE + (_WHOLE if shared >= _NEARLY_ALL * total else 0.0)
        sentences.append(_ScoredSentence(at, part, words, score))
    return sentences


def rarity(count: int, total: int) -> float:
    """Return the weight of a term that `count` of `total` texts have, as in BM25."""
    return math.log1p((total - count + 0.5) / (count + 0.5))


def _passage_scores(question: str, passages: Sequence[Passage]) -> list[float]:
    """Return the part of each passage in the scores of its sentences: its own score and that of its title."""
    best: dict[str, float] = {}
    ranked: list[float] = []  # no passage counts less than those after it, which may be older (`newest`)
    for passage in reversed(passages):
        best[passage.channel] = max(passage.score, best.get(passage.channel, passage.score))
        ranked.insert(0, best[passage.channel])
    texts = [_spaced(passage.text) for passage in passages[:_MENTIONING]]
    asked = _spaced(question)
    scores = []
    for at, passage in enumerate(passages):
        top = best[passage.channel]
        share = max(ranked[at] / top, 0.0) if top > 0 else 1 / (1 + at)
        score = _PASSAGE * share
        subject = _spaced(passage.title.split(" (")[0])
        if len(subject) >= _LEAST + 2:
            if any(subject in text for other, text in enumerate(texts) if other != at):
                score += _MENTIONED
            if subject in asked:
                score -= _ASKED_ABOUT
        scores.append(score)
    return scores


def _spaced(text: str) -> str:
    """Return the words of a text in lower case with a space before and after each."""
    return f" {' '.join(_WORD.findall(text.lower()))} "


def _stems(text: str) -> frozenset[str]:
    """Return the keywords of a text without their English endings, and names of several parts as a whole."""
    names = (name.lower() for name in _COMPOUND.findall(text))
    return frozenset([*(stem(word) for word, _ in tokenise(text)), *names])


AnswerType = Literal["time", "number", "location", "name"]

_ASKED: Final[tuple[tuple[AnswerType, re.Pattern[str]], ...]] = (
    (
        "time",
        re.compile(
            r"\bwhen\b|\b(?:what|which) (?:year|date|month|day|century|decade)\b|\bdate of\b", re.IGNORECASE
        ),
    ),
    (
        "number",
        re.compile(
            r"\bhow (?:many|much|long|old|far|tall|large|big|high|deep)\b|\bnumber of\b|\bpopulation\b",
            re.IGNORECASE,
        ),
    ),
    (
        "location",
        re.compile(
            r"\bwhere\b|\bplace of\b|\b(?:what|which) (?:\w+ )?(?:city|country|town|state|county|village|"
            r"place|nation|district|region|province|island|continent)\b",
            re.IGNORECASE,
        ),
    ),
    ("name", re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE)),
)
"""What the questions of each type contain; the first that matches counts."""
_MONTH: Final = "January|February|March|April|May|June|July|August|September|October|November|December"
_CONTAINED: Final[dict[AnswerType, re.Pattern[str]]] = {
    "time": re.compile(rf"\b(?:1\d\d\d|20\d\d|{_MONTH})\b"),
    "number": re.compile(
        r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million)\b"
    ),
    "location": re.compile(
        r"\b(?:in|at|near|of|from|to|on|outside)\s++(?:the\s++)?(?:\w++\s++of\s++)?[A-Z]\w"
    ),
}
_NAME: Final = re.compile(r"\b[A-Z][\w'’.-]*+(?:\s++[A-Z][\w'’.-]*+)*+")


def answer_type(question: str) -> AnswerType | None:
    """Return the type of answer that a question asks for; None for other questions and languages.

    Examples:
        >>> answer_type("Where did Tom Crean die?")
        'location'
    """
    return next((name for name, pattern in _ASKED if pattern.search(question)), None)


def contains_type(wanted: AnswerType, sentence: str, question: str) -> bool:
    """Return whether a sentence contains text of a type: for a name, one that the question does not contain.

    Examples:
        >>> contains_type("location", "He died in Cork.", "Where did Tom Crean die?")
        True
        >>> contains_type("name", "Tom Crean sailed.", "Who sailed with Tom Crean?")
        False
    """
    if wanted != "name":
        return _CONTAINED[wanted].search(sentence) is not None
    known = question.lower()
    for found in _NAME.finditer(sentence):
        words = found[0].lower().split()
        is_first_word = found.start() == 0 and len(words) == 1
        if not is_first_word and any(word not in known for word in words):
            return True
    return False
