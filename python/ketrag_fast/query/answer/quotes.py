"""Sentences that answer a question without a language model: quotes from the passages, with their places."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from ketrag_fast.kernels import sentence_spans, tokenise
from ketrag_fast.types import Context, Quote

MOST: Final = 5
"""Quotes of an answer."""
_EACH: Final = 2  # quotes of one passage
_READ: Final = 20  # passages
# Chosen on hotpotqa-dev; a little better than none of either on musique-dev, too.
_RANK: Final = 5.0
_FIRST: Final = 2.0


def best_sentences(context: Context, most: int = MOST) -> tuple[Quote, ...]:
    """Return up to `most` sentences of the context's first 20 passages, best first.

    The score of a sentence is the sum of ln(1 + (N - n + 0.5) / (n + 0.5)) over the words that it or its
    passage's title shares with the question (n of the N sentences have the word), plus 5 / rank of its
    passage, plus 2 for the first sentence of a passage. A passage gives at most two. Ties: the passage's
    rank, then the place in it.
    """
    found: list[tuple[int, int, int, set[str]]] = []
    passages = context.passages[:_READ]
    titles = [{word for word, _ in tokenise(passage.title)} for passage in passages]
    for at, passage in enumerate(passages):
        for start, end in sentence_spans(passage.text).tolist():
            found.append((at, start, end, {word for word, _ in tokenise(passage.text[start:end])}))
    count = Counter(word for *_, words in found for word in words)
    asked = {word for word, _ in tokenise(context.question)}
    worth = {word: math.log1p((len(found) - count[word] + 0.5) / (count[word] + 0.5)) for word in asked}

    def score(one: tuple[int, int, int, set[str]]) -> float:
        at, start, _, words = one
        shared = sum(sorted(worth[word] for word in asked & (words | titles[at])))
        return shared + _RANK / (1 + at) + (_FIRST if start == 0 else 0.0)

    taken: Counter[int] = Counter()
    quotes: list[Quote] = []
    for at, start, end, _ in sorted(found, key=lambda one: (-score(one), one[:2])):
        if len(quotes) == most:
            break
        if taken[at] < _EACH:
            taken[at] += 1
            passage = passages[at]
            text = passage.text[start:end]
            quotes.append(Quote(at + 1, text, passage.document, passage.start + start, passage.start + end))
    return tuple(quotes)
