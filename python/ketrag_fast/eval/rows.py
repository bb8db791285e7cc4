"""The results of many questions as one row: means with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
