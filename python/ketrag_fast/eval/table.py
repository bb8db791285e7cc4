"""Rows of an evaluation as a text table for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ketrag_fast.eval.rows import ResultRow

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
