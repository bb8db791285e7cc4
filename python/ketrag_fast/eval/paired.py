"""Paired comparison of two rankings: the size of the difference, and whether it may be chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import InputError
from ketrag_fast.eval.metrics import RESAMPLES, SEED, bootstrap_interval

FLIPS = 10_000
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """B minus A over `n` questions: means, the difference with its 95 % interval, and a two-sided p.

    `better` counts the questions on which B is above A, `worse` those below. `test` names the test: "exact
    sign" (McNemar's, exact) if every value is 0 or 1, else "randomisation" (of signs, seeded).
    """

    n: int
    a: float
    b: float
    difference: float
    ci95: tuple[float, float]
    p: float
    better: int
    worse: int
    test: str

    def to_json(self) -> dict[str, Any]:
        """Return the difference as the command prints it."""
        return {**asdict(self), "ci95": list(self.ci95)}


def compare_paired(a: Sequence[float], b: Sequence[float], *, seed: int = SEED) -> PairedDifference | None:
    """Compare values of the same questions in the same order; return None without questions.

    The interval resamples questions with replacement, keeping pairs together. Depends only on values and
    seed. Raises InputError for lists of different length.
    """
    if len(a) != len(b):
        raise InputError(f"paired lists must have the same length, got {len(a)} and {len(b)}")
    if not a:
        return None
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    gaps = second - first
    better, worse = int((gaps > 0).sum()), int((gaps < 0).sum())
    binary = bool(np.isin(np.concatenate([first, second]), (0.0, 1.0)).all())
    interval = bootstrap_interval(gaps, resamples=RESAMPLES, seed=seed)
    assert interval is not None  # noqa: S101 - there are values
    return PairedDifference(
        n=len(a),
        a=float(first.mean()),
        b=float(second.mean()),
        difference=float(gaps.mean()),
        ci95=interval,
        p=sign_test(better, worse) if binary else randomisation(gaps, seed=seed),
        better=better,
        worse=worse,
        test="exact sign" if binary else "randomisation",
    )


def sign_test(better: int, worse: int) -> float:
    """Return the two-sided p of a split of the changed questions, if both sides are equally likely."""
    n = better + worse
    # In integers, without rounding: the number of outcomes in the tail out of 2**n.
    tail: int = sum(math.comb(n, k) for k in range(min(better, worse) + 1))
    return min(1.0, float(2 * tail / 2**n))


def randomisation(gaps: NDArray[np.float64], *, flips: int = FLIPS, seed: int = SEED) -> float:
    """Return the two-sided p: the share of random sign flips whose mean is at least as far from 0 (Fisher
    1935).

    The observed signs count as one of the flips, so that p is never 0.
    """
    changed = gaps[gaps != 0.0]
    if not changed.size:
        return 1.0
    # Slightly below the observed sum, so that flips equal up to rounding count.
    observed = abs(float(changed.sum())) - 1e-9 * float(np.abs(changed).sum())
    generator = np.random.default_rng(seed)
    reached = 1
    step = max(1, _BLOCK // changed.size)
    for start in range(0, flips, step):
        signs = generator.integers(0, 2, size=(min(step, flips - start), changed.size), dtype=np.int8)
        sums = (2.0 * signs - 1.0) @ changed
        reached += int((np.abs(sums) >= observed).sum())
    return reached / (flips + 1)
