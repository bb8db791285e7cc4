"""The report as text: a line for each configuration, mode and budget, then overlap and differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ketrag_fast.eval.comparison.outcome import Outcome, Report
from ketrag_fast.eval.prices import usd_text
from ketrag_fast.eval.rows import ABSENT, ResultRow, align_columns, percent_of

_SHOWN = 10
_SCORES = (
    ("coverage", "coverage"),
    ("recall", "recall"),
    ("all_gold", "all gold"),
    ("em", "EM"),
    ("f1", "F1"),
    ("bertscore", "BERTScore"),
)

Table = tuple[list[str], list[list[str]]]
"""Header and rows of cells."""


def build_table(outcomes: Sequence[Outcome]) -> Table:
    """Return the table of costs and sizes of each build."""
    head = ["configuration", "build s", "calls", "tokens in", "tokens out", "embedded", "USD"]
    head += ["chunks", "core", "entities", "relations", "MB"]
    rows = []
    for outcome in outcomes:
        cost, counts = outcome.cost, outcome.counts
        if cost is None:
            rows.append([outcome.name, "not run", *[ABSENT] * (len(head) - 2)])
            continue
        about = "" if cost.measured else "≈"
        graph = [_graph(outcome, name) for name in ("entities", "relations")]
        rows.append(
            [
                outcome.name,
                f"{about}{cost.seconds:,.2f}",
                *(f"{n:,}" for n in (cost.calls, cost.tokens_in, cost.tokens_out)),
                f"{about}{cost.embedding_tokens:,}",
                usd_text(cost.bill.total),
                f"{counts.get('chunks', 0):,}",
                f"{counts.get('core_chunks', 0):,}",
                *graph,
                f"{cost.bytes / 1e6:,.1f}",
            ]
        )
    return head, rows


def score_table(outcomes: Sequence[Outcome]) -> Table:
    """Return the scores in percent. Metrics without any value are left out; a missing one is "not run"."""
    rows_of = [(outcome, row) for outcome in outcomes for row in outcome.rows]
    answers = {"em", "f1", "bertscore"}
    kept = [
        (name, title)
        for name, title in _SCORES
        if name not in answers or any(getattr(row, name) is not None for _, row in rows_of)
    ]
    head = ["configuration", "mode", "budget", "n", *(title for _, title in kept)]
    head.insert(5, "95% interval")
    head += ["tokens", "ms p50"]
    rows = []
    for outcome, row in rows_of:
        if row.status != "ok":
            rows.append([outcome.name, row.mode, f"{row.budget:,}", "not run", *[ABSENT] * (len(head) - 4)])
            continue
        cells = [outcome.name, _mode(row), f"{row.budget:,}", f"{row.n:,}"]
        cells += [percent_of(getattr(row, name)) for name, _ in kept]
        interval = row.ci95.get("coverage")
        cells.insert(
            5, ABSENT if interval is None else f"{percent_of(interval[0])} to {percent_of(interval[1])}"
        )
        cells.append(ABSENT if row.tokens_mean is None else f"{row.tokens_mean:,.0f}")
        cells.append(ABSENT if row.ms_p50 is None else f"{row.ms_p50:.2f}")
        rows.append(cells)
    return head, rows


def overlap_table(report: Report) -> Table:
    """Return a line for each pair of graphs."""
    head = ["A", "B"]
    for kind in ("entities", "relations"):
        head += [f"{kind}: A alone", "both", "B alone", "both of all"]
    rows = []
    for overlap in report.overlaps:
        cells = [overlap.a, overlap.b]
        for part in (overlap.entities, overlap.relations):
            share = part.jaccard
            cells += [f"{n:,}" for n in (part.only_a, part.both, part.only_b)]
            cells.append(ABSENT if share is None else f"{100 * share:.1f} %")
        rows.append(cells)
    return head, rows


def render(report: Report) -> str:
    """Return the report for a terminal."""
    return "\n".join(_lines(report)).rstrip()


def _lines(report: Report) -> Iterator[str]:
    yield from align_columns(*build_table(report.outcomes))
    if any(outcome.cost is not None and not outcome.cost.measured for outcome in report.outcomes):
        yield ""
        yield "≈ what the build takes alone; here its vectors were shared with the builds before it"
    scores = score_table(report.outcomes)
    if scores[1]:
        yield ""
        yield from align_columns(*scores)
    if report.overlaps:
        yield ""
        yield from align_columns(*overlap_table(report))
    failed = [outcome for outcome in report.outcomes if outcome.error is not None]
    for outcome in failed:
        yield ""
        yield f"{outcome.name}: not run: {outcome.error}"
        if outcome.hint:
            yield f"  {outcome.hint}"
    if report.divided:
        yield ""
        yield f"questions on which configurations differ: {len(report.divided)} of {len(report.questions)}"
        for entry in report.divided[:_SHOWN]:
            yes = [v.name for v in entry.verdicts if v.found]
            no = [v.name for v in entry.verdicts if v.found is False]
            yield f"  {entry.question.id}: {entry.question.text}"
            yield f"    found by {', '.join(yes)}; not by {', '.join(no)}"
        if len(report.divided) > _SHOWN:
            yield f"  ... and {len(report.divided) - _SHOWN} more (--json and --html have them all)"
    for note in report.notes:
        yield ""
        yield note


def _graph(outcome: Outcome, name: str) -> str:
    return f"{outcome.counts.get(name, 0):,}" if outcome.has_graph else ABSENT


def _mode(row: ResultRow) -> str:
    return row.mode if row.ran is None else f"{row.mode} ({row.ran})"
