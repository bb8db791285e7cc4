"""Cross-validation of a reranker: what it gains on questions and data sets that it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.lab.eval.metrics import bootstrap_interval
from ketrag_fast.lab.eval.paired import PairedDifference, compare_paired
from ketrag_fast.lab.reranker.examples import MEASURES, Examples
from ketrag_fast.lab.reranker.fitting import fit
from ketrag_fast.models.walk_reranker import WalkReranker

FOLDS: Final = 5
STRENGTHS: Final = (0.25, 0.5, 0.75, 1.0)
_MAIN: Final = 3
"""The first measures: their mean chooses the strength."""
_LOSS: Final = 0.005
"""First places of cut sentences that a strength may cost, as a share."""
F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """One measure of one data set: the walk (a) against the reranked walk (b), question by question."""

    dataset: str
    measure: str
    is_probe: bool
    difference: PairedDifference

    def to_json(self) -> dict[str, Any]:
        """Return the row as the command prints it."""
        kind = "cut sentences" if self.is_probe else "questions"
        return {"dataset": self.dataset, "of": kind, "measure": self.measure, **self.difference.to_json()}


@dataclass(frozen=True, slots=True)
class Validation:
    """The best strength, and what the walk gains with it: a row for each data set and measure."""

    strength: float
    rows: tuple[Row, ...]

    @property
    def is_better(self) -> bool:
        """Whether a measure is better beyond chance on some data set, and none is worse beyond chance."""
        return any(r.difference.ci95[0] > 0 for r in self.rows) and not any(
            r.difference.ci95[1] < 0 for r in self.rows
        )


def cross_validate(
    sets: Mapping[str, Examples], *, vectors: bool, seed: int, only_named: bool = False
) -> Validation:
    """Return what a reranker gains on each set if it is trained on the others; one set is divided into folds.

    Raises InputError if there are too few questions to train on.
    """
    before = {name: one.measure() for name, one in sets.items()}
    added = _held_out(sets, vectors=vectors, seed=seed, only_named=only_named)
    after = {
        strength: {name: one.measure(strength * added[name]) for name, one in sets.items()}
        for strength in STRENGTHS
    }
    chosen = max(STRENGTHS, key=lambda strength: (*_merit(sets, before, after[strength]), -strength))
    rows: list[Row] = []
    for name, one in sets.items():
        for is_probe, columns in ((False, range(len(MEASURES))), (True, (len(MEASURES) - 1, 0))):
            own = one.is_probe == is_probe
            for column in columns:
                first, second = before[name][own, column].tolist(), after[chosen][name][own, column].tolist()
                difference = compare_paired(first, second)
                if difference is not None:
                    rows.append(Row(name, MEASURES[column], is_probe, difference))
    return Validation(chosen, tuple(rows))


def adjust(model: WalkReranker, examples: Examples) -> F64:
    """Return what a model adds to the scores of all candidates."""
    return model.adjustments(examples.features.astype(np.float64))


def _held_out(sets: Mapping[str, Examples], *, vectors: bool, seed: int, only_named: bool) -> dict[str, F64]:
    """Return what is added to the scores of each set by models that have not seen the judged questions."""
    if len(sets) > 1:
        return {
            name: adjust(
                fit(
                    [sets[other] for other in sets if other != name],
                    vectors=vectors,
                    seed=seed,
                    only_named=only_named,
                ),
                one,
            )
            for name, one in sets.items()
        }
    (name, one), *_ = sets.items()
    added = np.zeros_like(one.scores)
    order = np.random.default_rng(seed).permutation(len(one))
    for fold in range(FOLDS):
        held = order[fold::FOLDS]
        model = fit([one.take(np.setdiff1d(order, held))], vectors=vectors, seed=seed, only_named=only_named)
        added[held] = adjust(model, one.take(held))
    return {name: added}


def _merit(
    sets: Mapping[str, Examples], before: Mapping[str, F64], after: Mapping[str, F64]
) -> tuple[bool, float]:
    """Return whether cut sentences keep their first places, and the gain that the worst set is sure of.

    The gain is the lower end of the 95 % interval of the mean of the first measures.
    """
    lost = [
        float((before[name] - after[name])[one.is_probe, -1].mean())
        for name, one in sets.items()
        if one.is_probe.any()
    ]
    sure = [
        bootstrap_interval((after[name] - before[name])[~one.is_probe, :_MAIN].mean(axis=1))
        for name, one in sets.items()
    ]
    return max(lost, default=0.0) <= _LOSS, min((low for low, _ in filter(None, sure)), default=0.0)
