"""Comparison of two runs: paired tests of every metric, and the questions whose outcome changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import InputError
from ketrag_fast.eval.datasets import Question
from ketrag_fast.eval.metrics import RESAMPLES, SEED, bootstrap_interval
from ketrag_fast.eval.results import METRICS, SHARES, Result
from ketrag_fast.records import asdict, dataclass

_SIDES = ("coverage", "all_gold", "em")
"""Metrics that are either 0 or 1 for a question."""
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the two runs: its name, questions, and the results of one mode and budget."""

    name: str
    questions: Sequence[Question]
    results: Sequence[Result]


@dataclass(frozen=True, slots=True)
class MetricChange:
    """A question whose outcome differs, by `metric`.

    `got` and `lost` are the gold documents that only B, or only A, has in its context.
    """

    question: Question
    metric: str
    gained: bool
    got: tuple[str, ...]
    lost: tuple[str, ...]
    tokens: tuple[int, int]
    answers: tuple[str | None, str | None]

    def to_json(self) -> dict[str, Any]:
        """Return the change as the command prints it."""
        return {
            "query_id": self.question.id,
            "question": self.question.text,
            "gold_answers": list(self.question.answers),
            "metric": self.metric,
            "gained_by": "b" if self.gained else "a",
            "gold_only_in_b": list(self.got),
            "gold_only_in_a": list(self.lost),
            "tokens": list(self.tokens),
            "answers": list(self.answers),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences of run B from run A, each at one budget."""

    a: str
    b: str
    differences: Mapping[str, PairedDifference]
    changes: tuple[MetricChange, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as the command prints it."""
        return {
            "a": self.a,
            "b": self.b,
            "differences": {name: d.to_json() for name, d in self.differences.items()},
            "changes": [change.to_json() for change in self.changes],
        }


def compare(a: ComparedRun, b: ComparedRun) -> Comparison:
    """Pair the two runs by question. A metric counts the questions that have a value in both.

    Raises InputError if the runs have different questions, because their scores would not be comparable.
    """
    _same_questions(a, b)
    left, right = ({r.question: r for r in side.results} for side in (a, b))
    if left.keys() != right.keys():
        raise InputError(
            f"{a.name} has results of {len(left)} questions and {b.name} of {len(right)}, "
            "but not of the same questions"
        )
    pairs = [(left[q.id], right[q.id], q) for q in a.questions if q.id in left]
    differences = {}
    for name, of in METRICS.items():
        both = [
            (x, y) for one, other, _ in pairs if (x := of(one)) is not None and (y := of(other)) is not None
        ]
        found = compare_paired([x for x, _ in both], [y for _, y in both])
        if found is not None:
            differences[name] = found
    changes = [
        _change(metric, one, other, question)
        for metric in _SIDES
        for one, other, question in pairs
        if (x := METRICS[metric](one)) is not None and (y := METRICS[metric](other)) is not None and x != y
    ]
    return Comparison(a.name, b.name, differences, tuple(changes))


def _change(metric: str, one: Result, other: Result, question: Question) -> MetricChange:
    before, after = (set(r.found) & question.gold for r in (one, other))
    return MetricChange(
        question,
        metric,
        (METRICS[metric](other) or 0.0) > (METRICS[metric](one) or 0.0),
        tuple(sorted(after - before)),
        tuple(sorted(before - after)),
        (one.tokens, other.tokens),
        (one.answer, other.answer),
    )


def _same_questions(a: ComparedRun, b: ComparedRun) -> None:
    first, second = ({q.id: (q.text, q.answers, q.gold) for q in side.questions} for side in (a, b))
    only_a, only_b = len(first.keys() - second.keys()), len(second.keys() - first.keys())
    differing = sum(first[name] != second[name] for name in first.keys() & second.keys())
    if only_a or only_b or differing:
        raise InputError(
            f"the runs have different questions: {only_a} only in {a.name}, {only_b} only in {b.name}, "
            f"{differing} with another text, answer or supporting passage",
            hint="evaluate both on the same data set",
        )


def render_comparison(comparison: Comparison) -> str:
    """Return the differences as a table, then the questions that changed, for people."""
    lines = [f"A: {comparison.a}", f"B: {comparison.b}", ""]
    head = ("metric", "n", "A", "B", "B - A", "95% interval", "p", "better", "worse")
    rows = [head, *(_row(name, d) for name, d in comparison.differences.items())]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines += [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    for metric in _SIDES:
        own = [change for change in comparison.changes if change.metric == metric]
        for gained, name in ((True, comparison.b), (False, comparison.a)):
            changed = [change for change in own if change.gained is gained]
            if changed:
                lines += ["", f"{metric}: only with {name} ({len(changed)}):"]
                lines += [line for change in changed for line in _lines(change)]
    if not comparison.changes:
        lines += ["", "no question changed sides"]
    return "\n".join(lines)


def _row(name: str, d: PairedDifference) -> tuple[str, ...]:
    scale = 100.0 if name in SHARES else 1.0
    low, high = (f"{scale * x:+.1f}" for x in d.ci95)
    return (
        name,
        str(d.n),
        f"{scale * d.a:.1f}",
        f"{scale * d.b:.1f}",
        f"{scale * d.difference:+.1f}",
        f"{low} to {high}",
        f"{d.p:.3f}",
        str(d.better),
        str(d.worse),
    )


def _lines(change: MetricChange) -> list[str]:
    answers = " / ".join(change.question.answers)
    told = [f"  {change.question.id}: {_short(change.question.text)}"]
    if answers:
        told.append(f"    gold answer: {_short(answers)}")
    if change.metric == "em":
        first, second = (_short(answer or "(none)") for answer in change.answers)
        told.append(f"    answered: A {first} | B {second}")
    if change.got:
        told.append(f"    supporting passages only in B: {', '.join(change.got)}")
    if change.lost:
        told.append(f"    supporting passages only in A: {', '.join(change.lost)}")
    return told


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _SHOWN else plain[: _SHOWN - 1] + "…"


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
    """Return the two-sided p-value of the sign test for these counts of changed questions."""
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
