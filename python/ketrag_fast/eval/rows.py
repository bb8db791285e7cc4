"""The results of many questions as one row: means with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ketrag_fast.eval import metrics
from ketrag_fast.eval.results import CUT, HITS, METRICS, OF_ANSWERS, OPTION_HITS, Result


@dataclass(frozen=True, slots=True)
class ResultRow:
    """Scores of one mode at one budget, between 0 and 1; None does not apply.

    `counted` has the number of questions behind each mean: coverage leaves out questions without an answer
    and those answered by yes or no (`yes_no`, with the share of them that would count as covered). `ran`
    names the modes that "auto" chose. A row that was not run has `n` 0 and a `reason`. `hit` is by cut;
    `hit`, `mrr`, recall, `ndcg` and `precision` (of ten) and `map` are of the documents in the context.
    `accuracy` and `macro_f1` are of answers by yes, no or maybe, `option_mrr` and `option_hit` of ranked
    options. `f1` is KET-RAG's, `f1_plain` HippoRAG's.
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
    mrr: float | None = None
    hit: Mapping[int, float] = field(default_factory=dict)
    em: float | None = None
    f1: float | None = None
    f1_plain: float | None = None
    bertscore: float | None = None
    ndcg: float | None = None
    precision: float | None = None
    map: float | None = None
    accuracy: float | None = None
    macro_f1: float | None = None
    option_mrr: float | None = None
    option_hit: Mapping[int, float] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """Either "ok" or "not run"."""
        return "ok" if self.reason is None else "not run"

    def as_dict(self) -> dict[str, object]:
        """Return the row as `eval --json` prints it."""
        options = {str(k): share for k, share in self.option_hit.items()}
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
            "mrr": self.mrr,
            "hit": {str(k): share for k, share in self.hit.items()},
            f"ndcg@{CUT}": self.ndcg,
            f"p@{CUT}": self.precision,
            "map": self.map,
            **{name: getattr(self, name) for name in OF_ANSWERS},
            **({"option_hit": options} if options else {}),
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


_ALWAYS = ("coverage", "recall", "all_gold")


def summarise(mode: str, budget: int, results: Sequence[Result]) -> ResultRow:
    """Return the row of results of one mode and budget."""
    values = {
        name: [value for result in results if (value := of(result)) is not None]
        for name, of in METRICS.items()
        if name != "tokens"
    }
    means = {name: _mean(own) for name, own in values.items()}
    intervals = {name: metrics.bootstrap_interval(own) for name, own in values.items()}
    times = [result.ms for result in results if result.ms is not None]
    verdicts = [float(r.covered) for r in results if r.yes_no and r.covered is not None]
    ran = "+".join(sorted({result.ran for result in results}))
    return ResultRow(
        mode,
        budget,
        len(results),
        coverage=means["coverage"],
        recall=means["recall"],
        all_gold=means["all_gold"],
        tokens_mean=_mean([float(result.tokens) for result in results]),
        ms_p50=_percentile(times, 50),
        ms_p95=_percentile(times, 95),
        ci95={name: interval for name, interval in intervals.items() if interval is not None},
        counted={name: len(own) for name, own in values.items() if own or name in _ALWAYS},
        yes_no={"n": len(verdicts), "coverage": math.fsum(verdicts) / len(verdicts)} if verdicts else None,
        ran=ran if ran and ran != mode else None,
        mrr=means["mrr"],
        hit={k: share for k in HITS if (share := means[f"hit@{k}"]) is not None},
        em=means["em"],
        f1=means["f1"],
        f1_plain=means["f1_plain"],
        bertscore=means["bertscore"],
        ndcg=means[f"ndcg@{CUT}"],
        precision=means[f"p@{CUT}"],
        map=means["map"],
        accuracy=means["accuracy"],
        option_mrr=means["option_mrr"],
        option_hit={k: share for k in OPTION_HITS if (share := means[f"option_hit@{k}"]) is not None},
        macro_f1=metrics.macro_f1([result.decided for result in results if result.decided is not None]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _percentile(values: Sequence[float], rank: float) -> float | None:
    return float(np.percentile(values, rank)) if values else None


ABSENT = "-"
_COVERED = ("coverage", "95% interval")
_RANKED = ("nDCG@10", "MAP", "P@10", "Hit@1")
"""Replace coverage if no question has an answer: measures of judged documents."""
_ANSWERS = {
    "em": "EM",
    "f1": "F1",
    "f1_plain": "F1 plain",
    "bertscore": "BERTScore",
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "option_mrr": "MRR of options",
    "option_hit": "Hit@1 of options",
}


def render(rows: Sequence[ResultRow], absent: Mapping[str, str] | None = None) -> str:
    """Return an aligned table, shares in percent, without a final line break.

    Notes follow on separate lines: rows that were not run and why, the number of questions that coverage
    leaves out, and (`absent`) scores that need something that is missing.
    """
    judged = [name for name in _ANSWERS if any(_value(row, name) is not None for row in rows)]
    ranked = any(row.ndcg is not None for row in rows) and all(row.coverage is None for row in rows)
    first = _RANKED if ranked else _COVERED
    header = ("mode", "budget", "n", *first, "recall", "all gold", "MRR", "tokens", "ms p50", "ms p95")
    header = (*header, *(_ANSWERS[name] for name in judged))
    lines = align_columns(header, [_cells(row, judged, len(header), ranked=ranked) for row in rows])
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


def _cells(row: ResultRow, judged: Sequence[str], width: int, *, ranked: bool) -> tuple[str, ...]:
    if row.status != "ok":
        return (row.mode, str(row.budget), row.status, *[ABSENT] * (width - 3))
    interval = row.ci95.get("coverage")
    covered = ABSENT if interval is None else f"{percent_of(interval[0])} to {percent_of(interval[1])}"
    of_ranks = (row.ndcg, row.map, row.precision, row.hit.get(1))
    return (
        row.mode if row.ran is None else f"{row.mode} ({row.ran})",
        str(row.budget),
        str(row.n),
        *(map(percent_of, of_ranks) if ranked else (percent_of(row.coverage), covered)),
        percent_of(row.recall),
        percent_of(row.all_gold),
        percent_of(row.mrr),
        ABSENT if row.tokens_mean is None else f"{row.tokens_mean:.0f}",
        ABSENT if row.ms_p50 is None else f"{row.ms_p50:.2f}",
        ABSENT if row.ms_p95 is None else f"{row.ms_p95:.2f}",
        *(percent_of(_value(row, name)) for name in judged),
    )


def _value(row: ResultRow, name: str) -> float | None:
    value = row.option_hit.get(1) if name == "option_hit" else getattr(row, name)
    return None if value is None else float(value)


def percent_of(share: float | None) -> str:
    """Return a share in percent, or the mark of an absent value."""
    return ABSENT if share is None else f"{100 * share:.1f}"


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
