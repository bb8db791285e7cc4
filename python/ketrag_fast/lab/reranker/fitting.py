"""Fits the weights that reorder the walk's candidates: a network of one layer, by gradient descent in NumPy.

The loss of a question is, for each gold candidate, the log of its share among itself and all that are not
gold. The same examples and seed give the same weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import InputError
from ketrag_fast.lab.reranker.examples import Examples, join
from ketrag_fast.models.walk_reranker import LIMIT, WalkReranker
from ketrag_fast.query.walk_features import FEATURES

UNITS: Final = 16
NETWORKS: Final = 4
"""Networks with different seeds, whose outputs are averaged."""
EPOCHS: Final = 40
LEAST: Final = 10
"""Questions that are needed at least."""
_BATCH: Final = 256
_RATE: Final = 0.01
_DECAY: Final = 1e-3
_DROPPED: Final = 0.2
_MOMENTS: Final = (0.9, 0.999)
_ABSENT: Final = -1e4
_LEAST_SLOPE: Final = 0.2
F32 = NDArray[np.float32]


def fit(
    sets: Sequence[Examples],
    *,
    vectors: bool,
    strength: float = 1.0,
    only_named: bool = False,
    seed: int = 42,
    epochs: int = EPOCHS,
    about: Mapping[str, Any] | None = None,
) -> WalkReranker:
    """Return the weights fitted to sets of examples. The questions of each count the same, and its cut
    sentences together as much as its questions.

    Raises InputError if too few questions have a gold candidate and others.
    """
    kinds = [one.take(one.usable & (one.is_probe == kind)) for one in sets for kind in (False, True)]
    usable = [part for part in kinds if len(part)]
    count = sum(len(part) for part in usable)
    if count < LEAST:
        total = sum(len(one) for one in sets)
        raise InputError(
            f"{count} of {total} questions have a gold passage and another one among the walk's candidates; "
            f"training needs at least {LEAST}",
            hint="check that the judgements name documents of the data set, or give more questions",
        )
    weights = np.concatenate([np.full(len(part), count / len(usable) / len(part)) for part in usable])
    data = join(usable)
    present = data.documents >= 0
    rows = data.features[present].astype(np.float64)
    mean, scale = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    standard = np.clip((data.features - mean) / scale, -LIMIT, LIMIT).astype(np.float32)
    best = np.where(present, data.scores, -np.inf).max(axis=1, keepdims=True)
    scores = np.where(present, data.scores - best, _ABSENT).astype(np.float32)
    parts = [
        _Network([seed, number]).train(
            standard, scores, data.gold, present, weights.astype(np.float32), epochs
        )
        for number in range(NETWORKS)
    ]
    return WalkReranker(
        FEATURES,
        mean,
        scale,
        np.concatenate([part.hidden for part in parts], axis=1).astype(np.float64),
        np.concatenate([part.bias for part in parts]).astype(np.float64),
        # In units of the walk's score, as which it is added.
        np.concatenate([part.output / max(part.slope[0], _LEAST_SLOPE) for part in parts]).astype(np.float64)
        / NETWORKS,
        strength,
        vectors,
        only_named,
        dict(about or {}),
    )


class _Network:
    """slope * score + output . tanh(features @ hidden + bias), trained with Adam."""

    def __init__(self, seed: Sequence[int]) -> None:
        self.generator = np.random.default_rng(list(seed))
        width = 1 / np.sqrt(len(FEATURES))
        self.hidden: F32 = self._uniform(width, (len(FEATURES), UNITS))
        self.bias: F32 = self._uniform(width, (UNITS,))
        self.output: F32 = np.zeros(UNITS, np.float32)  # untrained, it changes nothing
        self.slope: F32 = np.ones(1, np.float32)

    def _uniform(self, width: float, shape: tuple[int, ...]) -> F32:
        return self.generator.uniform(-width, width, shape).astype(np.float32)

    def train(
        self,
        features: F32,
        scores: F32,
        gold: NDArray[np.bool_],
        present: NDArray[np.bool_],
        weights: F32,
        epochs: int,
    ) -> _Network:
        """Train on all questions, in batches of a seeded order."""
        names = ("hidden", "bias", "output", "slope")
        first = {name: np.zeros_like(getattr(self, name)) for name in names}
        second = {name: np.zeros_like(getattr(self, name)) for name in names}
        steps = 0
        for _ in range(epochs):
            order = self.generator.permutation(len(scores))
            for start in range(0, len(order), _BATCH):
                own = order[start : start + _BATCH]
                steps += 1
                gradients = self._gradients(features[own], scores[own], gold[own], present[own], weights[own])
                for name, gradient in gradients.items():
                    first[name] = _MOMENTS[0] * first[name] + (1 - _MOMENTS[0]) * gradient
                    second[name] = _MOMENTS[1] * second[name] + (1 - _MOMENTS[1]) * gradient**2
                    mean = first[name] / (1 - _MOMENTS[0] ** steps)
                    spread = second[name] / (1 - _MOMENTS[1] ** steps)
                    update = _RATE * mean / (np.sqrt(spread) + 1e-8)
                    setattr(self, name, (getattr(self, name) - update).astype(np.float32))
        return self

    def _gradients(
        self, features: F32, scores: F32, gold: NDArray[np.bool_], present: NDArray[np.bool_], weights: F32
    ) -> dict[str, F32]:
        active = np.tanh(features @ self.hidden + self.bias)
        kept = (self.generator.random(active.shape, np.float32) >= _DROPPED) / np.float32(1 - _DROPPED)
        dropped = active * kept
        logits = np.where(present, dropped @ self.output + self.slope[0] * scores, _ABSENT)
        by_logit = loss_gradient(logits, gold, present) * (weights / len(scores))[:, None]
        by_active = by_logit[..., None] * self.output * kept * (1 - active**2)
        return {
            "hidden": _rows(features).T @ _rows(by_active) + 2 * _DECAY * self.hidden,
            "bias": by_active.sum(axis=(0, 1)),
            "output": _rows(dropped).T @ by_logit.ravel() + 2 * _DECAY * self.output,
            "slope": (by_logit * np.where(present, scores, 0)).sum(keepdims=True).ravel(),
        }


def _rows(values: F32) -> F32:
    return values.reshape(-1, values.shape[-1])


def loss_gradient(logits: F32, gold: NDArray[np.bool_], present: NDArray[np.bool_]) -> F32:
    """Return the derivative of each question's loss by the logits of its candidates."""
    others = np.where(present & ~gold, logits, -np.inf)
    top = others.max(axis=1, keepdims=True)
    shares = np.exp(others - top)
    total = shares.sum(axis=1, keepdims=True)
    mass = top + np.log(total)
    missing = np.where(gold, 1 / (1 + np.exp(np.clip(logits - mass, -80, 80))), np.float32(0))
    missing /= gold.sum(axis=1, keepdims=True)
    gradient: F32 = shares / total * missing.sum(axis=1, keepdims=True) - missing
    return gradient
