"""The report of a comparison: the cost, sizes and scores of each configuration, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ketrag_fast.eval.datasets import Question
from ketrag_fast.eval.prices import Bill, usd_text
from ketrag_fast.eval.results import ABSENT, Result, ResultRow, align_columns, interval_text, percent_of
from ketrag_fast.records import dataclass, field

COUNTED = ("documents", "chunks", "subchunks", "keywords", "core_chunks", "entities", "relations")
"""The statistics of an index that a report contains."""
_SHOWN = 10
"""Maximum number of differing questions that are printed."""


@dataclass(frozen=True, slots=True)
class BuildCost:
    """Cost of a build. `measured` is False if an earlier build of the report computed some of its vectors."""

    seconds: float
    stages: Mapping[str, float]
    calls: int
    tokens_in: int
    tokens_out: int
    embedding_tokens: int
    bill: Bill
    bytes: int
    memory: int | None
    measured: bool
    spent_seconds: float
    """Wall-clock time in this run: close to 0 if everything was cached."""

    def to_json(self) -> dict[str, Any]:
        """Return the cost as JSON."""
        row = {"usd" if name == "bill" else name: getattr(self, name) for name in self.__slots__}
        return {**row, "usd": self.bill.to_json()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One configuration. With an `error` the other fields are empty."""

    name: str
    settings: Mapping[str, Any]
    varied: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    hint: str | None = None
    cost: BuildCost | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    digest: str | None = None
    failures: int = 0
    warnings: tuple[str, ...] = ()
    rows: tuple[ResultRow, ...] = ()
    results: tuple[Result, ...] = ()

    @property
    def has_graph(self) -> bool:
        """Whether the settings ask for entities of the core chunks."""
        return self.error is None and self.settings.get("llm", "none") != "none"

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON, without the results of single questions."""
        plain = ("error", "hint", "digest", "failures")
        return {
            "name": self.name,
            "settings": dict(self.settings),
            "varied": dict(self.varied),
            "status": "ok" if self.error is None else "not run",
            **{name: getattr(self, name) for name in plain},
            "cost": None if self.cost is None else self.cost.to_json(),
            "counts": dict(self.counts),
            "warnings": list(self.warnings),
            "rows": [row.as_dict() for row in self.rows],
        }


@dataclass(frozen=True, slots=True)
class Divided:
    """A question on which configurations differ, with the name and the result of each configuration."""

    question: Question
    verdicts: tuple[tuple[str, Result], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the question as JSON."""
        return {
            "query_id": self.question.id,
            "question": self.question.text,
            "gold_answers": list(self.question.answers),
            "gold_documents": sorted(self.question.gold),
            "verdicts": [_verdict(name, result) for name, result in self.verdicts],
        }


def _verdict(name: str, result: Result) -> dict[str, Any]:
    kept = ("covered", "recall", "all_gold", "rank", "tokens", "answer", "em", "f1")
    about = {"name": name, "mode": result.mode, "budget": result.budget, "has_it": has_answer(result)}
    return {**about, **{name: getattr(result, name) for name in kept}, "found": list(result.found[:10])}


def has_answer(result: Result) -> bool | None:
    """Return whether the answer is in the context; without an answer, whether all gold passages are."""
    return result.covered if result.covered is not None and not result.yes_no else result.all_gold


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report. `about` describes machine, versions and data; `kind` is builds, systems or sweep."""

    kind: str
    about: Mapping[str, Any]
    questions: tuple[Question, ...]
    outcomes: tuple[Outcome, ...]
    divided: tuple[Divided, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> list[Outcome]:
        """The configurations that ran."""
        return [outcome for outcome in self.outcomes if outcome.error is None]

    def to_json(self) -> dict[str, Any]:
        """Return the report as `ketrag bench ... --json` prints it."""
        return {
            "schema": "ketrag/bench/1",
            "kind": self.kind,
            **self.about,
            "questions": len(self.questions),
            "configurations": [outcome.to_json() for outcome in self.outcomes],
            "divided": [entry.to_json() for entry in self.divided],
            "notes": list(self.notes),
        }


def split_questions(questions: Sequence[Question], outcomes: Sequence[Outcome]) -> list[Divided]:
    """Return the questions that some configurations cover and others do not, at the largest common budget.

    Each configuration is represented by its first mode; without answers the gold passages decide.
    """
    scored = [outcome for outcome in outcomes if outcome.results]
    if len(scored) < 2:
        return []
    common = set.intersection(*({r.budget for r in outcome.results} for outcome in scored))
    by_name: dict[str, dict[str, Result]] = {}
    for outcome in scored:
        first = outcome.results[0]
        row = first.mode, max(common) if common else first.budget
        by_name[outcome.name] = {r.question: r for r in outcome.results if (r.mode, r.budget) == row}
    found = []
    for question in questions:
        verdicts = [(name, own[question.id]) for name, own in by_name.items() if question.id in own]
        if len({has_answer(result) for _, result in verdicts} - {None}) > 1:
            found.append(Divided(question, tuple(verdicts)))
    return found


def render(report: Report) -> str:
    """Return the report as text."""
    return "\n".join(_lines(report)).rstrip()


def _lines(report: Report) -> Iterator[str]:
    yield from _build_table(report.outcomes)
    if any(outcome.cost is not None and not outcome.cost.measured for outcome in report.outcomes):
        yield "\n≈ without the vectors that an earlier build computed"
    if any(outcome.rows for outcome in report.outcomes):
        yield ""
        yield from _score_table(report.outcomes)
    for outcome in report.outcomes:
        if outcome.error is not None:
            yield f"\n{outcome.name}: not run: {outcome.error}"
            if outcome.hint:
                yield f"  {outcome.hint}"
    if report.divided:
        yield f"\nquestions on which configurations differ: {len(report.divided)} of {len(report.questions)}"
        for entry in report.divided[:_SHOWN]:
            yes = [name for name, result in entry.verdicts if has_answer(result)]
            no = [name for name, result in entry.verdicts if has_answer(result) is False]
            yield f"  {entry.question.id}: {entry.question.text}"
            yield f"    found by {', '.join(yes)}; not by {', '.join(no)}"
        if len(report.divided) > _SHOWN:
            yield f"  ... and {len(report.divided) - _SHOWN} more (--json has them all)"
    for note in report.notes:
        yield f"\n{note}"


def _build_table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Return the cost and the sizes of each build."""
    head = ["configuration", "build s", "calls", "tokens in", "tokens out", "embedded", "USD"]
    head += ["chunks", "core", "entities", "relations", "MB"]
    rows = []
    for outcome in outcomes:
        cost, counts = outcome.cost, outcome.counts
        if cost is None:
            rows.append([outcome.name, "not run", *[ABSENT] * (len(head) - 2)])
            continue
        about = "" if cost.measured else "≈"
        graph = [f"{counts.get(name, 0):,}" for name in ("entities", "relations")]
        rows.append(
            [
                outcome.name,
                f"{about}{cost.seconds:,.2f}",
                *(f"{n:,}" for n in (cost.calls, cost.tokens_in, cost.tokens_out)),
                f"{about}{cost.embedding_tokens:,}",
                usd_text(cost.bill.total),
                f"{counts.get('chunks', 0):,}",
                f"{counts.get('core_chunks', 0):,}",
                *(graph if outcome.has_graph else [ABSENT] * 2),
                f"{cost.bytes / 1e6:,.1f}",
            ]
        )
    return align_columns(head, rows)


def _score_table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Return the scores in percent, without columns for answers if nothing answered."""
    rows_of = [(outcome, row) for outcome in outcomes for row in outcome.rows]
    judged = [name for name in ("em", "f1") if any(row.means.get(name) is not None for _, row in rows_of)]
    head = ["configuration", "mode", "budget", "n", "coverage", "95% interval", "recall", "all gold"]
    head += [*map(str.upper, judged), "tokens", "ms p50"]
    rows = []
    for outcome, row in rows_of:
        cells = [outcome.name, row.mode_text, f"{row.budget:,}"]
        if row.reason is not None:
            rows.append([*cells, "not run", *[ABSENT] * (len(head) - 4)])
            continue
        cells += [f"{row.n:,}", percent_of(row.means.get("coverage")), interval_text(row)]
        cells += [percent_of(row.means.get(name)) for name in ("recall", "all_gold", *judged)]
        cells.append(ABSENT if row.tokens_mean is None else f"{row.tokens_mean:,.0f}")
        cells.append(ABSENT if row.ms_p50 is None else f"{row.ms_p50:.2f}")
        rows.append(cells)
    return align_columns(head, rows)
