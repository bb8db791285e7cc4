"""Relevance feedback (RM3): words of the best units are added to the question.

A first ranking is by query likelihood with Dirichlet smoothing (Zhai, Lafferty 2001). The words of its best
units, weighted by how likely each unit is, are added to those of the question (Lavrenko, Croft 2001;
Abdul-Jaleel et al. 2004), and all units are ranked again by both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ketrag_fast.extending import (
    Channel,
    ChannelQuery,
    Outputs,
    Recipe,
    Settings,
    Share,
    Stage,
    StageContext,
    StageInputs,
    System,
    array,
    places_of,
    setting,
)

if TYPE_CHECKING:  # NumPy is imported where it is used: every command of ketrag loads this file
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ids = NDArray[np.int64]
    Weights = tuple[Ids, Floats]
    """Words as rows of the vocabulary, ascending, and the weight of each."""


# ---------------------------------------------------------------- settings


@dataclass(frozen=True, kw_only=True)
class FeedbackSettings:
    """The first is a build setting; the others are for queries."""

    feedback_spread: float = setting(
        0.1, "words in more than this share of units are not fed back", low=0.0, high=1.0
    )
    feedback_mu: float = setting(
        100.0, "smoothing: number of words of the corpus added to each unit", concerns="query", low=0.1
    )
    feedback_units: int = setting(
        5, "number of best units that words are taken from", concerns="query", low=0
    )
    feedback_words: int = setting(20, "maximum number of words that are fed back", concerns="query", low=0)
    feedback_weight: float = setting(
        0.3, "weight of these words; those of the question get the rest", concerns="query", low=0.0, high=1.0
    )


# ---------------------------------------------------------------- the stage


def background(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the probability of each word in the corpus, and whether it may be fed back."""
    import numpy as np

    links = inputs["links"]
    starts = links["keyword_units_indptr"].astype(np.int64)
    sums = np.concatenate([[0], np.cumsum(links["keyword_units_tf"], dtype=np.int64)])
    counts = sums[starts[1:]] - sums[starts[:-1]]
    units = len(links["unit_length"])
    spread = settings.of(FeedbackSettings).feedback_spread
    return {
        "probability": counts / max(counts.sum(), 1),
        "feeds": (starts[1:] - starts[:-1] <= spread * units).astype(np.uint8),
    }


BACKGROUND = Stage(
    "background",
    version=1,
    needs=("links",),
    settings=("feedback_spread",),
    run=background,
    unit="words",
    arrays={"probability": array("f64", "link_keywords"), "feeds": array("u8", "link_keywords")},
    seconds=lambda size: 1e-7 * size.get("link_keywords", 0),
)


# ---------------------------------------------------------------- the channels


def likelihood(query: ChannelQuery, arrays: Mapping[str, Mapping[str, Any]]) -> tuple[Ids, Floats]:
    """Rank units by how likely each makes the words of the question."""
    return _sorted(*_likelihood(_own_words(query, arrays), query, arrays))


def feedback(query: ChannelQuery, arrays: Mapping[str, Mapping[str, Any]]) -> tuple[Ids, Floats]:
    """Rank units by the words of the question and those of the units that `likelihood` ranks first."""
    import numpy as np

    settings = query.settings.of(FeedbackSettings)
    words, weights = _own_words(query, arrays)
    units, scores = _sorted(*_likelihood((words, weights), query, arrays))
    best = slice(settings.feedback_units)
    more, likely = _words_of(units[best], scores[best], settings.feedback_words, arrays)
    if more.size:
        own, fed = 1 - settings.feedback_weight, settings.feedback_weight * weights.sum()
        words, where = np.unique(np.concatenate([words, more]), return_inverse=True)
        joined = np.zeros(len(words))
        np.add.at(joined, where, np.concatenate([own * weights, fed * likely]))
        units, scores = _sorted(*_likelihood((words, joined), query, arrays))
    return units, scores


def _own_words(query: ChannelQuery, arrays: Mapping[str, Mapping[str, Any]]) -> Weights:
    """Return the words of the question that are in the corpus, and how often it has each."""
    import numpy as np

    places = places_of(arrays["links"], "keywords", query.keywords)
    words, counts = np.unique(places[places >= 0], return_counts=True)
    return words.astype(np.int64), counts.astype(np.float64)


def _likelihood(weights: Weights, query: ChannelQuery, arrays: Mapping[str, Mapping[str, Any]]) -> Weights:
    """Return the units with any of the words, and the logarithm of their likelihood up to a constant."""
    import numpy as np

    links, probability = arrays["links"], arrays["background"]["probability"]
    mu = query.settings.of(FeedbackSettings).feedback_mu
    scores = np.zeros(len(links["unit_length"]))
    matched = np.zeros(len(scores), bool)
    for word, weight in zip(*weights, strict=True):
        row = slice(*(int(x) for x in links["keyword_units_indptr"][word : word + 2]))
        units = links["keyword_units_indices"][row]
        scores[units] += weight * np.log1p(links["keyword_units_tf"][row] / (mu * probability[word]))
        matched[units] = True
    found = np.flatnonzero(matched)
    lengths = links["unit_length"][found]
    return found, scores[found] + weights[1].sum() * np.log(mu / (mu + lengths))


def _words_of(units: Ids, scores: Floats, most: int, arrays: Mapping[str, Mapping[str, Any]]) -> Weights:
    """Return the likeliest words of some units; `scores` are the logarithms of the units' likelihoods."""
    import numpy as np

    links = arrays["links"]
    likely = np.zeros(len(links["keywords_offsets"]) - 1)
    chances = np.exp(scores - scores.max(initial=-np.inf))
    for unit, chance in zip(units, chances / max(chances.sum(), 1e-300), strict=True):
        row = slice(*(int(x) for x in links["unit_keywords_indptr"][unit : unit + 2]))
        counts = links["unit_keywords_tf"][row]
        likely[links["unit_keywords_indices"][row]] += chance * counts / max(counts.sum(), 1)
    likely *= arrays["background"]["feeds"]
    words, found = _sorted(np.flatnonzero(likely), likely[likely > 0])
    words, found = words[:most], found[:most]
    return words, found / max(found.sum(), 1e-300)


def _sorted(ids: Ids, scores: Floats) -> Weights:
    """Sort by score descending, then by id ascending."""
    import numpy as np

    order = np.lexsort((ids, -scores))
    return ids[order], scores[order]


# ---------------------------------------------------------------- the system

_SETTINGS = ("feedback_mu", "feedback_units", "feedback_words", "feedback_weight")

RECIPES = {
    "likelihood": Recipe((Share("likelihood"),), "units that make the question likely"),
    "feedback": Recipe((Share("feedback"),), "`likelihood`, then again with the words of the best units"),
}
PRESETS = {"feedback": {"mode": "feedback", "modes": "auto,likelihood"}}

SYSTEM = System(
    name="feedback",
    source="Lavrenko, Croft 2001; Abdul-Jaleel et al. 2004 (RM3); Zhai, Lafferty 2001 (the smoothing)",
    help="adds the words of the best units to the question",
    settings=FeedbackSettings,
    stages=(BACKGROUND,),
    channels=(
        Channel(
            "likelihood",
            needs=("links", "background"),
            help="units that make the question likely",
            rank=likelihood,
            settings=_SETTINGS[:1],
        ),
        Channel(
            "feedback",
            needs=("links", "background"),
            help="the same, with the words of the best units",
            rank=feedback,
            settings=_SETTINGS,
        ),
    ),
    recipes=RECIPES,
    presets=PRESETS,
    describe=lambda sizes: {"words": sizes["link_keywords"]} if "link_keywords" in sizes else {},
)
