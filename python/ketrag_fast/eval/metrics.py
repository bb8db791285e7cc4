"""Metrics on texts and rankings that need no model, compatible with the published scripts.

Texts are compared after `normalise`. A metric that does not apply is None, never zero.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set

import numpy as np
from numpy.typing import ArrayLike, NDArray

_PUNCTUATION = string.punctuation.encode("ascii")
_ARTICLES = frozenset({"a", "an", "the"})
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_YES_NO = frozenset({"yes", "no"})
_VERDICTS = _YES_NO | {"insufficient information"}

RESAMPLES = 1_000
SEED = 42
_BLOCK = 1 << 20  # random numbers per step of the bootstrap: bounds its memory to about 16 MB


def normalise(text: str) -> str:
    """Lower-case `text`, delete ASCII punctuation, blank the words a, an, the, and collapse white space.

    The same as the normalisation of KET-RAG's `util_v1.py` and HippoRAG's `eval_utils.py`. Punctuation is
    removed without leaving a space ("U.S." becomes "us"); other marks stay.
    """
    text = text.lower()
    # ASCII bytes of UTF-8 are ASCII characters; deleting bytes is many times faster than mapping characters
    bare = (
        text.encode("utf-8", "surrogatepass").translate(None, _PUNCTUATION).decode("utf-8", "surrogatepass")
    )
    tokens = []
    for token in bare.split():
        if token.isalnum():  # one word, so the only article it can hold is itself
            if token not in _ARTICLES:
                tokens.append(token)
        else:
            tokens.extend(_ARTICLE.sub(" ", token).split())
    return " ".join(tokens)


def exact_match(prediction: str, gold: str) -> float:
    """Return 1.0 if both are equal after `normalise`, else 0.0."""
    return float(normalise(prediction) == normalise(gold))


def f1(prediction: str, gold: str, *, special: bool = True) -> float:
    """Return the harmonic mean of precision and recall of the tokens, counted with multiplicity.

    With `special` (KET-RAG) a prediction of "yes", "no" or "insufficient information" scores only against
    itself, and a gold "yes" or "no" scores only if the prediction contains it. Without, as in HippoRAG.
    """
    predicted, wanted = normalise(prediction), normalise(gold)
    if special and predicted in _VERDICTS and predicted != wanted:
        return 0.0
    if special and wanted in _YES_NO and wanted not in predicted:
        return 0.0
    predicted_tokens, wanted_tokens = predicted.split(), wanted.split()
    common = (Counter(predicted_tokens) & Counter(wanted_tokens)).total()
    if not common:
        return 0.0
    precision, recalled = common / len(predicted_tokens), common / len(wanted_tokens)
    return 2 * precision * recalled / (precision + recalled)


def best_exact_match(prediction: str, golds: Collection[str]) -> float | None:
    """Return the best `exact_match` with a gold answer; None without gold answers."""
    return max((exact_match(prediction, gold) for gold in golds), default=None)


def best_f1(prediction: str, golds: Collection[str], *, special: bool = True) -> float | None:
    """Return the best `f1` with a gold answer; None without gold answers."""
    return max((f1(prediction, gold, special=special) for gold in golds), default=None)


def is_yes_no(answers: Collection[str]) -> bool:
    """Return whether a gold answer is yes or no, which contexts contain by chance: no coverage then."""
    return any(normalise(answer) in _YES_NO for answer in answers)


def is_covered(
    normalised_context: str, normalised_answers: Collection[str], *, substring: bool = False
) -> bool | None:
    """Return whether an answer is in the context; both must be normalised.

    An answer counts if its tokens occur in sequence ("art" is not in "party"), with `substring` if its
    characters do. None if no answer has a token left.
    """
    usable = [answer for answer in normalised_answers if answer]
    if not usable:
        return None
    if substring:
        return any(answer in normalised_context for answer in usable)
    # tokens are joined by single spaces, so containment between spaces is containment of whole tokens
    padded = f" {normalised_context} "
    return any(f" {answer} " in padded for answer in usable)


def recall(found: Collection[str], gold: Set[str]) -> float | None:
    """Return the share of the gold passages that were found at any rank; None without gold passages."""
    return len(gold & set(found)) / len(gold) if gold else None


def all_gold(found: Collection[str], gold: Set[str]) -> bool | None:
    """Return whether every gold passage was found; None without gold passages."""
    return gold <= set(found) if gold else None


def first_rank(ranked: Sequence[str], gold: Set[str]) -> int | None:
    """Return the rank of the first gold passage, 0 if it is not ranked; None without gold passages."""
    return next((rank for rank, item in enumerate(ranked, 1) if item in gold), 0) if gold else None


def precision_at(ranked: Sequence[str], gold: Set[str], k: int) -> float | None:
    """Return the share of the first `k` ranks with a gold passage; None without gold passages.

    Empty ranks count as misses, as in trec_eval.
    """
    if not gold or k < 1:
        return None
    return sum(item in gold for item in ranked[:k]) / k


def average_precision(ranked: Sequence[str], gold: Set[str]) -> float | None:
    """Return the mean over all gold passages of the precision at their ranks, 0 for those not ranked."""
    if not gold:
        return None
    found, total = 0, 0.0
    for rank, item in enumerate(ranked, 1):
        if item in gold:
            found += 1
            total += found / rank
    return total / len(gold)


def ndcg_at(ranked: Sequence[str], grades: Mapping[str, float], k: int) -> float | None:
    """Return the normalised discounted cumulative gain of the first `k`, as trec_eval computes it.

    A passage gains its grade, divided by log2(rank + 1), and the sum is divided by that of the best order.
    None without grades above 0.
    """
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[: max(k, 0)]
    ideal = math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, 1))
    if not ideal:
        return None
    gains = (max(grades.get(item, 0.0), 0.0) for item in ranked[:k])
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1)) / ideal


CLASSES = ("yes", "no", "maybe")
"""Gold answers of questions that need a decision."""


def decision(text: str) -> str | None:
    """Return the first of the words yes, no and maybe in an answer; None without one."""
    return next((word for word in normalise(text).split() if word in CLASSES), None)


def macro_f1(pairs: Collection[tuple[str, str | None]]) -> float | None:
    """Return the mean of the F1 of each class, from (gold, predicted or None) pairs; None without pairs.

    The classes are those that are gold or predicted somewhere. As scikit-learn's average "macro", except that
    an undecided answer is wrong and does not form a class.
    """
    if not pairs:
        return None
    classes = sorted({gold for gold, _ in pairs} | {said for _, said in pairs if said is not None})
    scores = []
    for name in classes:
        right = sum(gold == said == name for gold, said in pairs)
        given = sum(gold == name for gold, _ in pairs)
        said_so = sum(said == name for _, said in pairs)
        scores.append(2 * right / (given + said_so))
    return math.fsum(scores) / len(scores)


def bootstrap_interval(
    values: ArrayLike, *, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float] | None:
    """Return the 95 % percentile bootstrap interval of the mean of `values`, one per question; None without
    values.

    Depends only on values, seed and number of resamples.
    """
    sample: NDArray[np.float64] = np.asarray(values, dtype=np.float64).ravel()
    if not sample.size:
        return None
    generator = np.random.default_rng(seed)
    means = np.empty(resamples, dtype=np.float64)
    step = max(1, _BLOCK // sample.size)
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        drawn = generator.integers(0, sample.size, size=(count, sample.size))
        means[start : start + count] = sample[drawn].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
