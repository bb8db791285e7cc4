"""Scores an index on a data set: a row for each mode and budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from ketrag_fast.errors import BackendMissing, ModeUnavailable
from ketrag_fast.eval import metrics
from ketrag_fast.eval.datasets import DataSet, Question

_KEPT_LINES = 8192  # with lines of up to _KEPT_LENGTH characters: at most some 64 MB
_KEPT_LENGTH = 4096
_BATCH = 256  # questions in memory at once: some 40 MB of contexts at three budgets


class Passage(Protocol):
    """What scoring reads of a retrieved passage."""

    @property
    def document(self) -> str: ...  # noqa: D102 - the id that judgements name


class Context(Protocol):
    """What scoring reads of a retrieved context."""

    @property
    def mode(self) -> str: ...  # noqa: D102 - the mode that ran, which "auto" chooses
    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def tokens(self) -> int: ...  # noqa: D102
    @property
    def timings_ms(self) -> Mapping[str, float]: ...  # noqa: D102
    @property
    def passages(self) -> Sequence[Passage]: ...  # noqa: D102


class Retriever(Protocol):
    """What scoring needs of an index."""

    def retrieve_budgets(
        self, questions: Sequence[str], *, mode: str, budgets: Sequence[int], top: int | None = None
    ) -> Sequence[Sequence[Context]]:
        """For each question a context for each budget, the question ranked once for all of them."""


@dataclass(frozen=True, slots=True)
class Row:
    """Scores of one mode at one budget; shares are between 0 and 1, a metric that does not apply is None.

    `counted` holds the number of questions behind each mean: coverage leaves out questions without an answer
    and those answered by yes or no (`yes_no`, with the share of them that would count as covered). `ran`
    names what "auto" chose. A row that was not run has `n` 0 and a `reason`.
    """

    mode: str
    budget: int
    n: int
    coverage: float | None = None
    recall: float | None = None
    all_gold: float | None = None
    tokens_mean: float | None = None
    ms_p50: float | None = None
    ms_p95: float | None = None
    ci95: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)
    yes_no: Mapping[str, float | int] | None = None
    ran: str | None = None
    reason: str | None = None

    @property
    def status(self) -> str:
        """Either "ok" or "not run"."""
        return "ok" if self.reason is None else "not run"

    def as_dict(self) -> dict[str, object]:
        """The row as `eval --json` prints it."""
        row: dict[str, object] = {
            "mode": self.mode,
            "budget": self.budget,
            "n": self.n,
            "coverage": self.coverage,
            "recall": self.recall,
            "all_gold": self.all_gold,
            "tokens_mean": self.tokens_mean,
            "ms_p50": self.ms_p50,
            "ms_p95": self.ms_p95,
            "ci95": {name: list(interval) for name, interval in self.ci95.items()},
            "counted": dict(self.counted),
            "status": self.status,
        }
        if self.yes_no is not None:
            row["yes_no"] = dict(self.yes_no)
        if self.ran is not None:
            row["ran"] = self.ran
        if self.reason is not None:
            row["reason"] = self.reason
        return row


def evaluate(
    index: Retriever,
    dataset: DataSet,
    modes: Sequence[str],
    budgets: Sequence[int],
    *,
    top: int | None = None,
    substring: bool = False,
) -> list[Row]:
    """Retrieve for every question of `dataset` and score the contexts: a row per mode and budget, in order.

    `top` limits the passages of a context. `substring` counts an answer inside a word as covered. A mode that
    the index cannot run gives rows whose status is "not run"; any other error is raised.
    """
    answers = [_Answers.of(question) for question in dataset.questions]
    normalise = _line_by_line()
    rows: list[Row] = []
    for mode in modes:
        tallies = [_Tally(normalise, substring) for _ in budgets]
        try:
            for start in range(0, len(dataset.questions), _BATCH):
                batch = dataset.questions[start : start + _BATCH]
                found = index.retrieve_budgets([q.text for q in batch], mode=mode, budgets=budgets, top=top)
                for question, known, contexts in zip(
                    batch, answers[start : start + _BATCH], found, strict=True
                ):
                    for tally, context in zip(tallies, contexts, strict=True):
                        tally.add(question, known, context)
        except (ModeUnavailable, BackendMissing) as error:
            rows.extend(Row(mode, budget, 0, reason=error.message) for budget in budgets)
            continue
        rows.extend(tally.row(mode, budget) for tally, budget in zip(tallies, budgets, strict=True))
    return rows


def _line_by_line() -> Callable[[str], str]:
    """`metrics.normalise` that remembers lines: passages recur in budgets, modes and questions.

    No step of the normalisation looks beyond white space, so a text's form is that of its lines, joined.
    """
    remembered = lru_cache(maxsize=_KEPT_LINES)(metrics.normalise)

    def normalise(text: str) -> str:
        lines = text.split("\n")
        forms = (remembered(line) if len(line) <= _KEPT_LENGTH else metrics.normalise(line) for line in lines)
        return " ".join(form for form in forms if form)

    return normalise


@dataclass(frozen=True, slots=True)
class _Answers:
    """The gold answers of a question, normalised once."""

    forms: tuple[str, ...]
    yes_no: bool

    @classmethod
    def of(cls, question: Question) -> _Answers:
        return cls(tuple(metrics.normalise(a) for a in question.answers), metrics.is_yes_no(question.answers))


class _Tally:
    """Values of one mode and budget, a list per metric with an entry for each question that it applies to."""

    def __init__(self, normalise: Callable[[str], str], substring: bool) -> None:
        self._normalise = normalise
        self._substring = substring
        self._n = 0
        self._scores: dict[str, list[float]] = {"coverage": [], "recall": [], "all_gold": []}
        self._yes_no: list[float] = []
        self._tokens: list[int] = []
        self._ms: list[float] = []
        self._ran: set[str] = set()

    def add(self, question: Question, known: _Answers, context: Context) -> None:
        self._n += 1
        self._tokens.append(context.tokens)
        self._ran.add(context.mode)
        if context.timings_ms:
            self._ms.append(_milliseconds(context.timings_ms))
        if any(known.forms):  # else there is no need to normalise the context
            hit = metrics.covered(self._normalise(context.text), known.forms, substring=self._substring)
            if hit is not None:
                (self._yes_no if known.yes_no else self._scores["coverage"]).append(hit)
        found = {passage.document for passage in context.passages}
        recall, whole = metrics.recall(found, question.gold), metrics.all_gold(found, question.gold)
        if recall is not None and whole is not None:
            self._scores["recall"].append(recall)
            self._scores["all_gold"].append(whole)

    def row(self, mode: str, budget: int) -> Row:
        means = {name: _mean(values) for name, values in self._scores.items()}
        ran = "+".join(sorted(self._ran))
        return Row(
            mode,
            budget,
            self._n,
            coverage=means["coverage"],
            recall=means["recall"],
            all_gold=means["all_gold"],
            tokens_mean=_mean(self._tokens),
            ms_p50=_percentile(self._ms, 50),
            ms_p95=_percentile(self._ms, 95),
            ci95=dict(self._intervals()),
            counted={name: len(values) for name, values in self._scores.items()},
            yes_no={"n": len(self._yes_no), "coverage": math.fsum(self._yes_no) / len(self._yes_no)}
            if self._yes_no
            else None,
            ran=ran if ran and ran != mode else None,
        )

    def _intervals(self) -> Iterator[tuple[str, tuple[float, float]]]:
        for name, values in self._scores.items():
            interval = metrics.bootstrap_interval(values)
            if interval is not None:
                yield name, interval


def _milliseconds(timings: Mapping[str, float]) -> float:
    """A question's own time: the entry "total" where there is one, else the sum of the parts."""
    return timings["total"] if "total" in timings else math.fsum(timings.values())


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _percentile(values: Sequence[float], rank: float) -> float | None:
    return float(np.percentile(values, rank)) if values else None
