"""The scores of single questions, the summary rows of many questions, and the table of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from ketrag_fast.errors import InputError
from ketrag_fast.eval.metrics import bootstrap_interval, macro_f1
from ketrag_fast.records import asdict, dataclass, field, fields

HITS: Final = (1, 5, 10)
OPTION_HITS: Final = (1, 3)
"""Cuts for questions with options, as CG-RAG reports them."""
CUT: Final = 10
"""Cut of nDCG and precision."""
ABSENT: Final = "-"


@dataclass(frozen=True, slots=True)
class Result:
    """Scores of one question for one mode and budget; None does not apply.

    `covered` is meaningless for a question answered by yes or no (`yes_no`), which does not count for
    coverage. `found` has the documents of the context by rank, each once; `rank` is that of the first gold
    one, 0 without one. `ndcg` and `precision` are of the first ten, `average_precision` of all: documents
    outside the budget count as not found. `decided` is (gold, answered) of a question of yes, no or maybe,
    `option_rank` the rank of the right option. `em`, `f1` (KET-RAG's), `f1_plain` (HippoRAG's) and
    `bertscore` score `answer`. `why` has source and explanation of each passage of the context, if requested.
    """

    question: str
    mode: str
    budget: int
    ran: str
    tokens: int
    ms: float | None = None
    covered: bool | None = None
    yes_no: bool = False
    recall: float | None = None
    all_gold: bool | None = None
    rank: int | None = None
    found: tuple[str, ...] = ()
    answer: str | None = None
    em: float | None = None
    f1: float | None = None
    f1_plain: float | None = None
    bertscore: float | None = None
    ndcg: float | None = None
    precision: float | None = None
    average_precision: float | None = None
    decided: tuple[str, str | None] | None = None
    option_rank: int | None = None
    why: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return all fields, `why` only if it is not empty; a line of `results.jsonl`."""
        found = asdict(self)
        return found if self.why else {name: value for name, value in found.items() if name != "why"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Result:
        """Return the result from the output of `to_json`. Raises InputError for invalid data."""
        try:
            known = {f.name: data[f.name] for f in fields(cls) if f.name != "why"}
            if known["decided"] is not None:
                gold, said = known["decided"]
                known["decided"] = (str(gold), None if said is None else str(said))
            why = tuple(dict(passage) for passage in data.get("why", ()))
            result = cls(**{**known, "found": tuple(map(str, known["found"])), "why": why})
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a valid result of an evaluation: {error}") from error
        scores = (result.recall, result.ndcg, result.precision, result.average_precision)
        numbers = (*scores, result.ms, result.em, result.f1, result.f1_plain, result.bertscore)
        ranks = (rank for rank in (result.rank, result.option_rank) if rank is not None)
        whole = (result.budget, result.tokens, *ranks)
        if (
            not all(isinstance(x, str) for x in (result.question, result.mode, result.ran))
            or not all(isinstance(x, int) and x >= 0 for x in whole)
            or not all(x is None or isinstance(x, (int, float)) for x in numbers)
        ):
            raise InputError("not a valid result of an evaluation: a field has the wrong type")
        return result


def _of(name: str, result: Result) -> float | None:
    value = getattr(result, name)
    return None if value is None else float(value)


def _coverage(result: Result) -> float | None:
    return None if result.yes_no else _of("covered", result)


def _accuracy(result: Result) -> float | None:
    return None if result.decided is None else float(result.decided[0] == result.decided[1])


def _reciprocal(name: str, result: Result) -> float | None:
    """Return 1 / rank, 0 for what is not ranked."""
    rank = _of(name, result)
    return rank and 1.0 / rank


def _hit(name: str, cut: int, result: Result) -> float | None:
    """Return whether a rank is among the first `cut`."""
    rank = _of(name, result)
    return None if rank is None else float(0 < rank <= cut)


METRICS: Final[Mapping[str, Callable[[Result], float | None]]] = {
    "coverage": _coverage,
    "recall": partial(_of, "recall"),
    "all_gold": partial(_of, "all_gold"),
    "mrr": partial(_reciprocal, "rank"),
    **{f"hit@{cut}": partial(_hit, "rank", cut) for cut in HITS},
    f"ndcg@{CUT}": partial(_of, "ndcg"),
    f"p@{CUT}": partial(_of, "precision"),
    "map": partial(_of, "average_precision"),
    "em": partial(_of, "em"),
    "f1": partial(_of, "f1"),
    "f1_plain": partial(_of, "f1_plain"),
    "bertscore": partial(_of, "bertscore"),
    "accuracy": _accuracy,
    "option_mrr": partial(_reciprocal, "option_rank"),
    **{f"option_hit@{cut}": partial(_hit, "option_rank", cut) for cut in OPTION_HITS},
    "tokens": partial(_of, "tokens"),
}
"""Each metric as a value of one question; None if it does not apply."""

SHARES: Final = frozenset(METRICS) - {"tokens"}
"""Metrics between 0 and 1, printed in percent."""
_ALWAYS: Final = ("coverage", "recall", "all_gold")
"""Metrics whose number of questions is reported even if it is 0."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """Scores of one mode at one budget.

    `means` has the mean of each of `METRICS` except tokens, and "macro_f1"; metrics that do not apply are
    missing. `counted` has the number of questions behind each mean: coverage leaves out questions without an
    answer and those answered by yes or no (`yes_no`, with the share of them that would count as covered).
    `ran` names the modes that "auto" chose. A row that was not run has `n` 0 and a `reason`.
    """

    mode: str
    budget: int
    n: int
    means: Mapping[str, float] = field(default_factory=dict)
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

    @property
    def mode_text(self) -> str:
        """The mode, and the modes that "auto" chose."""
        return self.mode if self.ran is None else f"{self.mode} ({self.ran})"

    def as_dict(self) -> dict[str, object]:
        """Return the row as `eval --json` prints it."""
        options = self._by_cut("option_hit", OPTION_HITS)
        more = {"yes_no": self.yes_no, "ran": self.ran, "reason": self.reason}
        answers = ("em", "f1", "f1_plain", "bertscore", "accuracy", "macro_f1", "option_mrr")
        return {
            "mode": self.mode,
            "budget": self.budget,
            "n": self.n,
            **{name: self.means.get(name) for name in _ALWAYS},
            "tokens_mean": self.tokens_mean,
            "ms_p50": self.ms_p50,
            "ms_p95": self.ms_p95,
            "ci95": {name: list(interval) for name, interval in self.ci95.items()},
            "mrr": self.means.get("mrr"),
            "hit": self._by_cut("hit", HITS),
            **{name: self.means.get(name) for name in (f"ndcg@{CUT}", f"p@{CUT}", "map", *answers)},
            **({"option_hit": options} if options else {}),
            "counted": dict(self.counted),
            "status": self.status,
            **{name: value for name, value in more.items() if value is not None},
        }

    def _by_cut(self, name: str, cuts: Sequence[int]) -> dict[str, float]:
        return {str(cut): self.means[f"{name}@{cut}"] for cut in cuts if f"{name}@{cut}" in self.means}


def summarise(mode: str, budget: int, results: Sequence[Result]) -> ResultRow:
    """Return the row of results of one mode and budget."""
    values = {
        name: [value for result in results if (value := of(result)) is not None]
        for name, of in METRICS.items()
        if name != "tokens"
    }
    means = {name: math.fsum(own) / len(own) for name, own in values.items() if own}
    decided = macro_f1([result.decided for result in results if result.decided is not None])
    if decided is not None:
        means["macro_f1"] = decided
    intervals = {name: bootstrap_interval(own) for name, own in values.items()}
    times = [result.ms for result in results if result.ms is not None]
    verdicts = [float(r.covered) for r in results if r.yes_no and r.covered is not None]
    ran = "+".join(sorted({result.ran for result in results}))
    return ResultRow(
        mode,
        budget,
        len(results),
        means,
        tokens_mean=math.fsum(r.tokens for r in results) / len(results) if results else None,
        ms_p50=float(np.percentile(times, 50)) if times else None,
        ms_p95=float(np.percentile(times, 95)) if times else None,
        ci95={name: interval for name, interval in intervals.items() if interval is not None},
        counted={name: len(own) for name, own in values.items() if own or name in _ALWAYS},
        yes_no={"n": len(verdicts), "coverage": math.fsum(verdicts) / len(verdicts)} if verdicts else None,
        ran=ran if ran and ran != mode else None,
    )


_RANKED: Final = {f"ndcg@{CUT}": "nDCG@10", "map": "MAP", "p@10": "P@10", "hit@1": "Hit@1"}
"""Columns that replace coverage if no question has an answer: measures of judged documents."""
_ANSWERS: Final = {
    "em": "EM",
    "f1": "F1",
    "f1_plain": "F1 plain",
    "bertscore": "BERTScore",
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "option_mrr": "MRR of options",
    "option_hit@1": "Hit@1 of options",
}


def render(rows: Sequence[ResultRow], absent: Mapping[str, str] | None = None) -> str:
    """Return an aligned table, shares in percent, without a final line break.

    Notes follow on separate lines: rows that were not run and why, the number of questions that coverage
    leaves out, and (`absent`) scores that need something that is missing.
    """
    judged = [name for name in _ANSWERS if any(name in row.means for row in rows)]
    is_ranked = any(f"ndcg@{CUT}" in row.means for row in rows) and not any(
        "coverage" in row.means for row in rows
    )
    first = _RANKED.values() if is_ranked else ("coverage", "95% interval")
    header = ("mode", "budget", "n", *first, "recall", "all gold", "MRR", "tokens", "ms p50", "ms p95")
    header = (*header, *(_ANSWERS[name] for name in judged))
    lines = align_columns(header, [_cells(row, judged, len(header), is_ranked=is_ranked) for row in rows])
    notes = list(dict.fromkeys(note for row in rows for note in _notes(row)))
    for reason in dict.fromkeys((absent or {}).values()):
        names = [name for name, own in (absent or {}).items() if own == reason]
        notes.append(f"{', '.join(names)}: {reason}")
    return "\n".join([*lines, *([""] if notes else []), *notes])


def align_columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align columns, the first to the left."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for number, row in enumerate((head, *rows)):
        cells = [c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        yield "  ".join(cells).rstrip()
        if not number:
            yield "  ".join("-" * width for width in widths)


def percent_of(share: float | None) -> str:
    """Return a share as percent text, or `-` if it is absent."""
    return ABSENT if share is None else f"{100 * share:.1f}"


def interval_text(row: ResultRow) -> str:
    """Return the interval of the coverage as text."""
    interval = row.ci95.get("coverage")
    return ABSENT if interval is None else f"{percent_of(interval[0])} to {percent_of(interval[1])}"


def _cells(row: ResultRow, judged: Sequence[str], width: int, *, is_ranked: bool) -> tuple[str, ...]:
    if row.reason is not None:
        return (row.mode, str(row.budget), row.status, *[ABSENT] * (width - 3))
    means = row.means
    covered = (percent_of(means.get("coverage")), interval_text(row))
    return (
        row.mode_text,
        str(row.budget),
        str(row.n),
        *((percent_of(means.get(name)) for name in _RANKED) if is_ranked else covered),
        *(percent_of(means.get(name)) for name in ("recall", "all_gold", "mrr")),
        ABSENT if row.tokens_mean is None else f"{row.tokens_mean:.0f}",
        ABSENT if row.ms_p50 is None else f"{row.ms_p50:.2f}",
        ABSENT if row.ms_p95 is None else f"{row.ms_p95:.2f}",
        *(percent_of(means.get(name)) for name in judged),
    )


def _notes(row: ResultRow) -> list[str]:
    if row.reason is not None:
        return [f"{row.mode}: not run: {row.reason}"]
    notes = []
    if row.yes_no is not None:
        notes.append(f"questions answered by yes or no, left out of coverage: {row.yes_no['n']}")
    counted = row.counted.get("coverage", 0)
    unanswered = row.n - counted - int(row.yes_no["n"] if row.yes_no is not None else 0)
    if counted and unanswered:
        notes.append(f"questions without a gold answer, left out of coverage: {unanswered}")
    return notes
