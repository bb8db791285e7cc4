"""Runs and judgements in TREC format, for trec_eval and similar tools.

A run line is `question Q0 document rank score tag`; a judgement is `question 0 document 1`. White space and
`%` in ids are percent-encoded (`%20`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from ketrag_fast.lab.eval.question import DataSet
from ketrag_fast.lab.eval.results import Result
from ketrag_fast.lab.eval.run import Collected

QRELS = "qrels.trec"


def write_runs(folder: Path, dataset: DataSet, found: Collected) -> None:
    """Write `MODE-BUDGET.trec` for each mode and budget that ran, and `qrels.trec` if any are judged."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.trec"):
        old.unlink()
    for mode in found.modes:
        for budget in found.budgets if mode not in found.skipped else ():
            lines = run_lines(found.of(mode, budget), f"ketrag-{mode}-{budget}")
            _write(folder / f"{mode}-{budget}.trec", lines)
    judged = [
        (q.id, document, q.grades.get(document, 1.0))
        for q in dataset.questions
        for document in sorted(q.gold)
    ]
    if judged:
        _write(folder / QRELS, (f"{_name(q)} 0 {_name(document)} {grade:g}" for q, document, grade in judged))


def run_lines(results: Iterable[Result], tag: str) -> Iterable[str]:
    """Yield the documents of each context by rank. The score is 1 / rank: sections have different scores."""
    for result in results:
        for rank, document in enumerate(result.found, 1):
            yield f"{_name(result.question)} Q0 {_name(document)} {rank} {1 / rank:.6f} {tag}"


def _name(identity: str) -> str:
    if any(character.isspace() for character in identity) or "%" in identity:
        return "".join(quote(c) if c.isspace() or c == "%" else c for c in identity)
    return identity


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)
