"""Quotes that answer a question without a language model: the best sentences, with those around them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ketrag_fast.query.answer.sentence_scores import ScoredSentence, score_sentences
from ketrag_fast.types import Context, Passage, Quote

MOST: Final = 3
"""Default number of quotes of an answer."""
_EACH: Final = 2  # quotes of one passage
_READ: Final = 20  # passages
_BEHIND: Final = 3.5
_BEHIND_WHOLE: Final = 2.0
"""Difference to the best score above which a sentence is not quoted; the second one if the best one probably
answers the question alone. With four for all instead of three, three quotes contain 0.4 points more answers,
on every second question of the sets of benches/quotes.py; 3.5 is between them."""
_LONGEST: Final = 450
"""Maximum length of a quote in characters, unless its best sentence alone is longer. It trades length for
answers: on the five sets of benches/quotes.py, 400 lose 0.6 points at three quotes and 500 gain 0.6, on every
second question."""
_GAP: Final = re.compile(r"[\s\-*+•·>]*")
"""What may separate the sentences of one quote: no heading, table or other text."""
_POINTS_BACK: Final = re.compile(
    r"\W*(?:he|she|it|they|his|her|its|their|this|these|those|er|sie|es|dies\w*|sein\w*|ihr\w*|ils?|elles?|ce\w*"
    r"|él|ella|ellos|ellas|est[eao]s?)\b",
    re.IGNORECASE,
)
"""How a sentence begins whose subject is in the sentence before it."""


def best_sentences(context: Context, most: int = MOST) -> tuple[Quote, ...]:
    """Return up to `most` quotes from the context's first 20 passages, best first.

    The sentences and rows of tables of all passages compete by the scores of `sentence_scores`. A quote is a
    sentence with those before and after it, the better one first, up to 450 characters; a row, or a sentence
    that probably answers the question alone, is quoted alone, or with the sentence to which its pronoun
    refers. At most two quotes come from one passage, or
    half of `most`, and none whose best sentence is more than 3.5 below the best of all (2 if that one
    probably answers the question alone), so that a question with a clear answer gets few quotes. Of sentences
    with equal keywords one is quoted.
    """
    passages = context.passages[:_READ]
    sentences = score_sentences(context.question, passages)
    taken: Counter[int] = Counter()
    used: set[int] = set()
    chosen: list[ScoredSentence] = []
    quotes: list[Quote] = []
    # Sentences are in the order of passages and texts, which decides ties.
    for at in sorted(range(len(sentences)), key=lambda at: -sentences[at].score):
        one = sentences[at]
        if len(quotes) == most or (
            chosen and one.score < chosen[0].score - (_BEHIND_WHOLE if chosen[0].is_whole else _BEHIND)
        ):
            break
        is_repeated = at in used or any(one.words == other.words for other in chosen)
        if taken[one.passage] < max(_EACH, most // 2) and not is_repeated:
            taken[one.passage] += 1
            chosen.append(one)
            passage = passages[one.passage]
            is_named = passage.title[:1].isupper() and passage.title.split(" (")[0] in context.question
            span = _span(sentences, at, passage, used, is_named=is_named)
            used.update(span)
            quotes.append(_quote(sentences, span, passage))
    return tuple(quotes)


def _span(
    sentences: Sequence[ScoredSentence], at: int, passage: Passage, used: set[int], *, is_named: bool
) -> range:
    """Return the indices of the sentences that are quoted with sentence `at`.

    `is_named`: the question names the passage's subject, to which its pronouns then refer.
    """
    first = last = at
    part = sentences[at].part
    if sentences[at].is_whole or part.is_row:
        is_open = not (part.is_row or is_named) and _POINTS_BACK.match(passage.text, part.start, part.end)
        first -= bool(is_open and _is_quotable(sentences, (at - 1, at), passage, used))
        return range(first, at + 1)
    while True:
        spans = [
            span
            for span in ((first - 1, last), (first, last + 1))
            if _is_quotable(sentences, span, passage, used)
        ]
        if not spans:
            return range(first, last + 1)
        added = {span: span[0] if span[0] < first else span[1] for span in spans}
        first, last = max(spans, key=lambda span: sentences[added[span]].score)


def _is_quotable(
    sentences: Sequence[ScoredSentence], span: tuple[int, int], passage: Passage, used: set[int]
) -> bool:
    """Return whether sentences `span[0]` to `span[1]` may be one quote, if without one end they may."""
    first, last = span
    if first < 0 or last >= len(sentences) or first in used or last in used:
        return False
    ends = (sentences[first], sentences[last])
    if ends[0].passage != ends[1].passage or any(one.part.is_row or not one.is_stating for one in ends):
        return False
    if ends[1].part.end - ends[0].part.start > _LONGEST:
        return False
    pairs = ((sentences[first], sentences[first + 1]), (sentences[last - 1], sentences[last]))
    return all(_GAP.fullmatch(passage.text[a.part.end : b.part.start]) for a, b in pairs)


def _quote(sentences: Sequence[ScoredSentence], span: range, passage: Passage) -> Quote:
    """Return a quote of consecutive sentences."""
    first, last = sentences[span[0]], sentences[span[-1]]
    start, end = first.part.start, last.part.end
    text = passage.text[start:end]
    return Quote(
        first.passage + 1,
        text,
        passage.document,
        passage.start + start,
        passage.start + end,
        header=first.part.header,
    )
