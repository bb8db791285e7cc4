"""The terms of a passage's relevance, slow and plain: the oracle of the core's without vectors."""

from __future__ import annotations

import math

from ketrag_fast import _core
from tests.oracles.walk_parts import Arrays, rows_of, saturation, to_idf, vocabulary

MOST_KEYWORDS = 32


def terms(links: Arrays, question: str, units: list[int]) -> list[list[float]]:
    """The terms of the logistic function of each unit, in the order of their ranks. The index is English."""
    known = {word: at for at, word in enumerate(vocabulary(links, "keywords"))}
    sat = saturation(links)
    idf = to_idf((sat > 0).astype(float))
    sentences = rows_of(links, "sentence_keywords", len(known))
    words = dict.fromkeys(_core.lexical_keywords(question))
    asked = [known[word] for word in words if word in known]
    unknown = len(words) - len(asked)
    total = sum(float(idf[x]) for x in asked) + unknown * math.log(1 + (len(sat) + 0.5) / 0.5)
    out = []
    for rank, unit in enumerate(units):
        own = [x for x in asked if sat[unit, x] > 0]
        inside = range(int(links["first_sentence"][unit]), int(links["first_sentence"][unit + 1]))
        sums = [
            sum(float(idf[x]) for x in own),
            max((sum(float(idf[x]) for x in own if sentences[s, x]) for s in inside), default=0.0),
            sum(float(idf[x] * sat[unit, x]) for x in own),
        ]
        shares = [min(x / total, 1.0) if total else 0.0 for x in sums]
        count = len(asked) + unknown
        more = [math.log1p(rank), math.log1p(min(count, MOST_KEYWORDS)), unknown / max(count, 1)]
        out.append([1.0, *shares, 0.0, *more])
    return out
