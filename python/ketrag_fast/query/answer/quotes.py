"""Sentences that answer a question without a language model: quotes from the passages."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Final

from ketrag_fast.kernels import sentence_spans, tokenise
from ketrag_fast.query.answer.answer_type import answer_type, contains_type
from ketrag_fast.types import Context, Quote

MOST: Final = 5
"""Quotes of an answer."""
_EACH: Final = 2  # quotes of one passage
_READ: Final = 20  # passages
# Weights, chosen on 210 questions each of hotpotqa-dev, musique-dev and 2wiki-dev.
_CHOICE: Final = 16.0
_ORDER: Final = 5.0
_FIRST: Final = 2.0
_TYPE: Final = 3.0


@dataclass(frozen=True, slots=True)
class _ScoredSentence:
    """A sentence of a passage, and its score without the rank of the passage."""

    passage: int
    start: int
    end: int
    score: float

    def sort_key(self, weight: float) -> tuple[float, int, int]:
        """Return a key that sorts the best sentence first, with the weight of the passage's rank."""
        return -(self.score + weight / (1 + self.passage)), self.passage, self.start


def best_sentences(context: Context, most: int = MOST) -> tuple[Quote, ...]:
    """Return up to `most` sentences of the context's first 20 passages, best first.

    The score of a sentence is the sum of ln(1 + (N - n + 0.5) / (n + 0.5)) over the words that it or its
    passage's title shares with the question (n of the N sentences have the word; English endings do not
    count), plus 2 for the first sentence of a passage, plus 3 if it contains what the question asks for: a
    time, a number, a location or a name. Five sentences, at most two of one passage, are chosen by this score
    plus 16 / rank of their passage, so that they come from several passages of a chain; they are sorted by it
    plus 5 / rank. Ties: the passage's rank, then the location in it.
    """
    passages = context.passages[:_READ]
    sentences = _scored(context)
    taken: Counter[int] = Counter()
    chosen: list[_ScoredSentence] = []
    for one in sorted(sentences, key=lambda one: one.sort_key(_CHOICE)):
        if len(chosen) == max(most, MOST):
            break
        if taken[one.passage] < _EACH:
            taken[one.passage] += 1
            chosen.append(one)
    quotes = []
    for one in sorted(chosen, key=lambda one: one.sort_key(_ORDER))[:most]:
        passage = passages[one.passage]
        start, end = passage.start + one.start, passage.start + one.end
        text = passage.text[one.start : one.end]
        quotes.append(Quote(one.passage + 1, text, passage.document, start, end))
    return tuple(quotes)


def _scored(context: Context) -> list[_ScoredSentence]:
    """Return the sentences of the passages that are read, in order."""
    passages, question = context.passages[:_READ], context.question
    spans: list[tuple[int, int, int, set[str]]] = []
    for at, passage in enumerate(passages):
        for start, end in sentence_spans(passage.text).tolist():
            spans.append((at, start, end, _stems(passage.text[start:end])))
    count = Counter(word for *_, words in spans for word in words)
    titles = [_stems(passage.title) for passage in passages]
    weights = {
        word: math.log1p((len(spans) - count[word] + 0.5) / (count[word] + 0.5)) for word in _stems(question)
    }
    wanted = answer_type(question)
    sentences = []
    for at, start, end, words in spans:
        score = sum(sorted(weights[word] for word in weights.keys() & (words | titles[at])))
        if start == 0:
            score += _FIRST
        if wanted is not None and contains_type(wanted, passages[at].text[start:end], question):
            score += _TYPE
        sentences.append(_ScoredSentence(at, start, end, score))
    return sentences


def _stems(text: str) -> set[str]:
    """Return the keywords of a text without their English endings."""
    return {_stem(word) for word, _ in tokenise(text)}


def _stem(word: str) -> str:
    """Return a word without the endings of plurals and of regular verbs: "died" and "dies" become "di"."""
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if len(word) > 5 and word.endswith("ing"):
        word = word[:-3]
    elif len(word) > 3 and word.endswith("ed"):
        word = word[:-2]
    return word[:-1] if len(word) > 2 and word.endswith("e") else word
