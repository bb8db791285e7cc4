"""Features of the walk's candidates for a reranker: terms of the score, partner, links and similarities.

Scores are given relative to the first candidate, and most features also standardised over the candidates
of the query, so that they mean the same in any collection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core

DEPTH: Final = 40
"""Number of candidates that have features."""
_NAMING: Final = 20
"""Candidates whose partners are counted."""
_HEAD: Final = 5
_FAR: Final = -10.0
"""The score, below the best, of a partner that is not among the candidates."""
_NONE: Final = np.uint32(0xFFFFFFFF)
_MAX_COSINE: Final = 0.98
_STEP: Final = 0.5
"""How far a query moves towards a sentence, as in the walk."""

_TERMS: Final = (
    "score",
    "sum",
    "direct",
    "stage1",
    "rest",
    "step",
    "named",
    "subject",
    "length",
    "pair",
    "chain",
)
"""Columns of `Searcher.candidates`."""
_PARTNERS: Final = (
    "partner_score",
    "partner_stage1",
    "mutual",
    "partner_of",
    "partner_of_best",
    "is_best",
    "is_partner_of_best",
)
_LINKS: Final = (
    "mentions_partner",
    "mentioned_by_partner",
    "mentions_first",
    "mentioned_by_first",
    "mentions_best",
    "mentioned_by_best",
    "name_of_partner",
    "name_of_best",
)
_VECTORS: Final = (
    *("cosine", "partner_cosine", "pair_cosine", "residual", "best_cosine"),
    *("sentence_cosine", "residual_sentence", "moved_cosine", "moved_by_best"),
)
_RELATIVE: Final = (
    *("sum", "direct", "stage1", "rest", "step", "length", "pair", "chain", "moved"),
    *("partner_score", "partner_stage1", "partner_of_best", *_VECTORS),
)
"""Features that are also given standardised over the candidates of the query."""
_PLAIN: Final = (*_TERMS, "moved", *_PARTNERS, *_LINKS, *_VECTORS)
FEATURES: Final = (*_PLAIN, *(f"relative_{name}" for name in _RELATIVE))
_COLUMNS: Final = [_PLAIN.index(name) for name in _RELATIVE]

F64 = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class WalkCandidates:
    """The first candidates of a query in the walk's order: units, scores and features[units, FEATURES]."""

    units: NDArray[np.uint32]
    scores: F64
    features: F64


def candidates_of(
    searcher: _core.Searcher,
    stages: Mapping[str, Arrays],
    request: _core.Request,
    question: str,
    vector: NDArray[np.float32] | None,
) -> WalkCandidates:
    """Return the candidates of a query; none if the walk has no candidates.

    Args:
        searcher: The opened generation.
        stages: Its arrays.
        request: A request of mode walk, for its filter and time limit.
        question: The text to rank by.
        vector: Its vector from the embedding model of the index; None without a model.
    """
    units, partners, terms = searcher.candidates(request, question, DEPTH, vector=vector)
    if not len(units):
        return WalkCandidates(units, np.zeros(0), np.zeros((0, len(FEATURES))))
    scores = terms[:, 0]
    plain = np.concatenate(
        [
            np.concatenate([(scores - scores[0])[:, None], terms[:, 1:]], axis=1),
            (scores - terms[:, 1])[:, None],
            _partner_features(units, partners, scores, terms[:, _TERMS.index("stage1")]),
            _link_features(units, partners, stages["links"]),
            _vector_features(units, partners, stages, vector),
        ],
        axis=1,
    )
    some = plain[:, _COLUMNS]
    relative = (some - some.mean(axis=0)) / (some.std(axis=0) + 1e-6)
    return WalkCandidates(units, scores, np.concatenate([plain, relative], axis=1))


def _partner_features(
    units: NDArray[np.uint32], partners: NDArray[np.uint32], scores: F64, stage1: F64
) -> F64:
    """Return how good the partner of each candidate is, and which candidates name it as theirs."""
    row_of = {unit: row for row, unit in enumerate(units.tolist())}
    gaps = scores - scores[0]
    found = np.zeros((len(units), len(_PARTNERS)))
    naming: dict[int, list[int]] = {}
    for row, partner in enumerate(partners[:_NAMING].tolist()):
        naming.setdefault(partner, []).append(row)
    for row, (unit, partner) in enumerate(zip(units.tolist(), partners.tolist(), strict=True)):
        at = row_of.get(partner)
        named_by = naming.get(unit, ())
        found[row] = (
            _FAR if at is None else gaps[at],
            0.0 if at is None else stage1[at],
            at is not None and int(partners[at]) == unit,
            len(named_by),
            max((gaps[other] for other in named_by), default=_FAR),
            row == 0,
            unit == int(partners[0]),
        )
    return found


def _link_features(units: NDArray[np.uint32], partners: NDArray[np.uint32], links: Arrays) -> F64:
    """Return which candidates mention the subject of their partner or of the first, and conversely; and the
    rarity of the rarest name that they share."""
    bounds, mentioned, subject = (
        links["unit_mentions_indptr"],
        links["unit_mentions_indices"],
        links["unit_subject"],
    )
    subjects: dict[int, set[int]] = {
        unit: set(mentioned[int(bounds[unit]) : int(bounds[unit + 1])].tolist())
        for unit in {*units.tolist(), *partners.tolist()}
    }

    def mentions(a: int, b: int) -> bool:
        own, other = subject[a], subject[b]
        return bool(other != _NONE and own != other and int(other) in subjects[a])

    def names(unit: int) -> NDArray[Any]:
        bounds = links["unit_names_indptr"]
        return links["unit_names_indices"][int(bounds[unit]) : int(bounds[unit + 1])]

    count = len(subject)

    def shared_name(a: int, b: int) -> float:
        both = np.intersect1d(names(a), names(b), assume_unique=True).astype(np.int64)
        if a == b or not len(both):
            return 0.0
        having = links["name_units_indptr"][both + 1] - links["name_units_indptr"][both]
        return float(1 - np.log(having.min()) / np.log(max(count, 2)))

    best, head = int(units[0]), units[:_HEAD].tolist()
    rows = [
        (
            mentions(unit, partner),
            mentions(partner, unit),
            sum(mentions(unit, other) for other in head),
            sum(mentions(other, unit) for other in head),
            mentions(unit, best),
            mentions(best, unit),
            shared_name(unit, partner),
            shared_name(unit, best),
        )
        for unit, partner in zip(units.tolist(), partners.tolist(), strict=True)
    ]
    return np.asarray(rows, np.float64)


def _vector_features(
    units: NDArray[np.uint32],
    partners: NDArray[np.uint32],
    stages: Mapping[str, Arrays],
    vector: NDArray[np.float32] | None,
) -> F64:
    """Return similarities of question, candidate and partner, and to the question beyond the partner.

    Without vectors they are 0.
    """
    found = np.zeros((len(units), len(_VECTORS)))
    if vector is None:
        return found
    every = stages["vectors"]["unit_vectors"]
    own, others = every[units].astype(np.float64), every[partners].astype(np.float64)
    query = vector.astype(np.float64)
    first, second = own @ query, others @ query
    both = np.clip((own * others).sum(axis=1), -_MAX_COSINE, _MAX_COSINE)
    found[:, 0], found[:, 1], found[:, 2] = first, second, both
    found[:, 3] = (first - second * both) / np.sqrt(1 - both * both)
    found[:, 4] = own @ own[0]
    bounds = stages["links"]["first_sentence"]
    sentences = stages["sentence_vectors"]["walk_sentence_vectors"]
    known: dict[int, F64] = {}
    for unit, row in zip([*units.tolist(), *partners.tolist()], [*own, *others], strict=True):
        if unit not in known:
            mine = sentences[int(bounds[unit]) : int(bounds[unit + 1])].astype(np.float64)
            known[unit] = mine if len(mine) else row[None]  # a unit without sentences is one
    nearest = {unit: mine[np.argmax(mine @ query)] for unit, mine in known.items()}
    by_best = _unit_length(query + _STEP * nearest[int(units[0])])
    for at, (unit, partner) in enumerate(zip(units.tolist(), partners.tolist(), strict=True)):
        sentence = nearest[partner]
        beyond = _unit_length(query - (query @ sentence) * sentence)
        moved = _unit_length(query + _STEP * sentence)
        found[at, 5:] = (
            (known[unit] @ query).max(),
            (known[unit] @ beyond).max(),
            own[at] @ moved,
            own[at] @ by_best,
        )
    return found


def _unit_length(vector: F64) -> F64:
    return vector / max(float(np.linalg.norm(vector)), 1e-9)
