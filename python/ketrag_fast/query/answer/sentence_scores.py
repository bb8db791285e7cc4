"""How probable it is that a sentence of a passage answers a question: a sum of weighted features."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ketrag_fast.kernels.text import tokenise_many, unpack
from ketrag_fast.query.answer.answer_types import (
    adds_type,
    answer_type,
    contains_type,
    focus_terms,
    new_names,
)
from ketrag_fast.query.answer.facts import stem
from ketrag_fast.query.answer.passage_parts import Part, heading_names, parts_of
from ketrag_fast.records import dataclass
from ketrag_fast.types import Passage

# The weights come from a conditional logit model (the probability that a sentence with the answer is
# first). It was fitted on every second question of the five sets of benches/quotes.py, with each set left
# out in turn, and rounded. `_PASSAGE` is held at 6: fitted freely it is 6.9, with the same share of
# answers. Four other features gained nothing on the sets left out: pairs of neighbouring words, names that
# several passages repeat, names that the best sentences have, and a second pass in which the best sentences
# lead to passages.
_PASSAGE: Final = 6.0
_TERMS: Final = 2.1
_OWN_TERMS: Final = 1.4
_REMAINING_TERMS: Final = 1.7
_NEIGHBOUR: Final = 0.6
_TYPE: Final = 1.25
_NEW_TYPE: Final = 0.9
_FOCUS: Final = 1.6
_NEARLY_ALL: Final = 0.9
_WHOLE: Final = 3.0
"""Not fitted: 0 to 3 give the same shares of answers within 0.2 points, because few questions of these sets
are answered by one sentence. Below 1 the links to other passages win over it ("Where did Tom Crean die?")."""
_LED_TO: Final = 3.0
_LED_TO_TYPE: Final = 1.2
_ASKED_ABOUT: Final = 1.25
_NEW_NAMES: Final = 0.2
_MOST_NAMES: Final = 4
_FIRST: Final = 0.6
# These kinds are rare in the sets above (articles, chats, tables): chosen on notes and mail.
_QUESTION: Final = 1.0
_GREETING: Final = 3.0
_TASK: Final = 3.0
_SHORT: Final = 1.2
_SHORT_WORDS: Final = 4
_LEAST: Final = 4  # characters of a title that counts as a subject
_WORD: Final = re.compile(r"\w+")
_COMPOUND: Final = re.compile(r"(?<![^\W_])[^\W_]++(?:[-_.][^\W_]++)++")
"""A name such as item-40, max_attempts or v2.1, which is not the same as its parts."""
_QUESTION_END: Final = re.compile(r"[?？؟][\s\"”»’)*_]*$")
_GREETING_START: Final = re.compile(
    r"^\W*(?:dear|hi|hello|hey|(?:best|kind|warm) (?:regards|wishes)|regards|thanks|thank you|cheers"
    r"|sincerely|love|yours|liebe[rs]?|hallo|viele grüße|mit freundlichen grüßen|bonjour|cordialement|hola"
    r"|saludos)\b"
    r"[^.!?:]{0,40}[,.!]?$",
    re.IGNORECASE,
)
_TASK_START: Final = re.compile(
    r"^\W*(?:\[ ?\]|(?:todo|to do|fixme|ask|call|email|write to|remind|remember to|buy|check|book|find out)"
    r"\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A sentence of the passage with index `passage`, its keywords and its score.

    `is_whole`: it probably answers the question alone, because it has the type of answer that the question
    asks for and at least 90 % of the question's terms, by weight. `is_stating`: it is not a greeting or task.
    """

    passage: int
    part: Part
    words: frozenset[str]
    score: float
    is_whole: bool
    is_stating: bool


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence before it is scored."""

    passage: int
    part: Part
    text: str
    words: frozenset[str]


def score_sentences(question: str, passages: Sequence[Passage]) -> list[ScoredSentence]:
    """Return the sentences of passages in order, each with the sum of its features:

    * 6 times the score of its passage, as a share of the best score in its channel; -1.25 if the question
      contains the title of the passage, because the answer is then often in another one;
    * 2.1 times the share of the question's terms that it, its passage's title or its table's header has,
      weighted by ln(1 + (N - n + 0.5) / (n + 0.5)) (n of the N sentences have the term; English endings do
      not count); 1.4 times the share that it has itself, 1.7 times its share of the terms that the title
      lacks, and 0.6 times the share of the better one of the sentences next to it;
    * 1.25 if it contains what the question asks for: a time, a number, a location, a name or a manner; 0.9
      more if the question lacks that time, number or name; 3 more if it also has at least 90 % of the terms,
      by weight: then it probably answers the question alone;
    * 1.6 times its share of the terms that follow "what" or "which" ("which award");
    * 3 times the share of terms of the best sentence elsewhere that mentions the title of its passage: the
      question leads here over that sentence; 4.2 times if it also has the type of answer;
    * 0.2 for each name that the question lacks, at most four; 0.6 if it is the first of its passage, which
      often defines the subject; -1.2 with fewer than four words;
    * -1 if it is a question, -3 if a greeting, -3 if a task; none of these has a type of answer.

    A row of a table may be short, and is neither question, greeting nor task.
    """
    found = [
        (at, part, passage.text[part.start : part.end])
        for at, passage in enumerate(passages)
        for part in parts_of(passage.text, passage.context, heading_names(passage), passage.metadata)
    ]
    headers = sorted({part.header for _, part, _ in found})
    texts = [question, *headers, *(passage.title for passage in passages), *(text for *_, text in found)]
    words = _stems_of(texts)
    header_words = dict(zip(headers, words[1:], strict=False))
    titles = words[1 + len(headers) :][: len(passages)]
    own = words[len(texts) - len(found) :]
    sentences = [_Sentence(*one, stems) for one, stems in zip(found, own, strict=True)]
    count = Counter(word for one in sentences for word in one.words)
    weights = {word: rarity(count[word], len(sentences)) for word in sorted(words[0])}
    rest = [{word: weight for word, weight in weights.items() if word not in title} for title in titles]
    wanted = answer_type(question)
    focus = focus_terms(question, words[0])
    led = _led_to(sentences, passages, weights, titles)
    base = _passage_scores(question, passages)
    shares = [_share(weights, one.words) for one in sentences]
    scored = []
    before = -1
    for at, one in enumerate(sentences):
        known = one.words | titles[one.passage] | header_words[one.part.header]
        shared = _share(weights, known)
        score = base[one.passage] + _TERMS * shared + _OWN_TERMS * shares[at] + _LED_TO * led[one.passage]
        form, lost = _form_score(one.text, is_row=one.part.is_row)
        score += _REMAINING_TERMS * _share(rest[one.passage], one.words) + form
        near = (other for other in (at - 1, at + 1) if 0 <= other < len(sentences))
        score += _NEIGHBOUR * max(
            (shares[other] for other in near if sentences[other].passage == one.passage), default=0.0
        )
        score += _NEW_NAMES * min(new_names(one.text, question), _MOST_NAMES)
        score += _FIRST * (one.passage != before)
        before = one.passage
        if focus:
            score += _FOCUS * len(focus & one.words) / len(focus)
        is_whole = False
        if not lost and wanted is not None and contains_type(wanted, one.text, question):
            is_whole = shared >= _NEARLY_ALL
            score += _TYPE + _WHOLE * is_whole + _LED_TO_TYPE * led[one.passage]
            score += _NEW_TYPE * adds_type(wanted, one.text, question)
        scored.append(ScoredSentence(one.passage, one.part, one.words, score, is_whole, lost < _GREETING))
    return scored


def _share(weights: dict[str, float], words: frozenset[str]) -> float:
    """Return the share of the terms that are among `words`, by weight."""
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in words) / total if total else 0.0


def _form_score(text: str, *, is_row: bool) -> tuple[float, float]:
    """Return the part of the score that depends on the form of a sentence, and the penalty in it."""
    if is_row:
        return 0.0, 0.0
    words = len(_WORD.findall(text))
    kinds = ((_GREETING_START, _GREETING), (_QUESTION_END, _QUESTION), (_TASK_START, _TASK))
    lost = sum(weight for pattern, weight in kinds if pattern.search(text))
    return -_SHORT * (words < _SHORT_WORDS) - lost, lost


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
    asked = _spaced(question)
    scores = []
    for at, passage in enumerate(passages):
        top = best[passage.channel]
        share = max(ranked[at] / top, 0.0) if top > 0 else 1 / (1 + at)
        score = _PASSAGE * share
        subject = _subject(passage)
        if subject and subject in asked:
            score -= _ASKED_ABOUT
        scores.append(score)
    return scores


def _led_to(
    sentences: Sequence[_Sentence],
    passages: Sequence[Passage],
    weights: dict[str, float],
    titles: Sequence[frozenset[str]],
) -> list[float]:
    """Return for each passage the highest share of a sentence elsewhere that mentions its title."""
    texts = [_spaced(one.text) for one in sentences]
    shares = [_share(weights, one.words | titles[one.passage]) for one in sentences]
    whole = _spaced(" ".join(one.text for one in sentences))
    found = []
    for at, passage in enumerate(passages):
        subject = _subject(passage)
        if not subject or subject not in whole:
            found.append(0.0)
            continue
        rows = zip(sentences, texts, shares, strict=True)
        found.append(
            max((share for one, text, share in rows if one.passage != at and subject in text), default=0.0)
        )
    return found


def _subject(passage: Passage) -> str:
    """Return the title of a passage without what follows in brackets; empty if it is too short for a name."""
    subject = _spaced(passage.title.split(" (")[0])
    return subject if len(subject) >= _LEAST + 2 else ""


def _spaced(text: str) -> str:
    """Return the words of a text in lower case with a space before and after each."""
    return f" {' '.join(_WORD.findall(text.lower()))} "


def _stems_of(texts: Sequence[str]) -> list[frozenset[str]]:
    """Return the keywords of each text without their English endings, and compound names as a whole."""
    packed, _, ends = tokenise_many(texts, threads=1)
    words = [stem(word) for word in unpack(*packed)]
    return [
        frozenset([*words[start:end], *(name.lower() for name in _COMPOUND.findall(text))])
        for text, (start, end) in zip(texts, pairwise(ends.tolist()), strict=True)
    ]
