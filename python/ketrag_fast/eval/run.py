"""Runs every question of a data set on an index and scores the results, question by question."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from ketrag_fast.errors import BackendMissing, ModeUnavailable
from ketrag_fast.eval import metrics
from ketrag_fast.eval.datasets import DataSet, Question
from ketrag_fast.eval.results import CUT, Result, ResultRow, summarise
from ketrag_fast.query.answer.prompt import LETTERS, ranking
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.types import Context, Passage

_KEPT_LINES = 8192  # with lines of up to _KEPT_LENGTH characters: up to about 64 MB
_KEPT_LENGTH = 4096
_BATCH = 256  # questions in memory at once: about 40 MB of contexts at three budgets


class Retriever(Protocol):
    """The methods of an index that scoring needs."""

    def retrieve_many(
        self,
        questions: Sequence[str],
        *,
        mode: str,
        budgets: Sequence[int],
        top: int | None = None,
        explain: bool = False,
    ) -> Sequence[Sequence[Context]]:
        """Return for each question a context for each budget, from one ranking."""


Answerer = Callable[[Question, str, int, str], str | None]
"""(question, mode, budget, context) -> the answer to score, or None."""


@dataclass(frozen=True, slots=True)
class Collected:
    """All results by mode, then budget, then question; `skipped` has the reason for each skipped mode."""

    modes: tuple[str, ...]
    budgets: tuple[int, ...]
    results: tuple[Result, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)

    def of(self, mode: str, budget: int) -> list[Result]:
        """Return the results of one row, in the order of the questions."""
        return [r for r in self.results if r.mode == mode and r.budget == budget]

    def rows(self) -> list[ResultRow]:
        """Return a row for each mode and budget, in order."""
        groups: dict[tuple[str, int], list[Result]] = {}
        for result in self.results:
            groups.setdefault((result.mode, result.budget), []).append(result)
        return [
            ResultRow(mode, budget, 0, reason=self.skipped[mode])
            if mode in self.skipped
            else summarise(mode, budget, groups.get((mode, budget), []))
            for mode in self.modes
            for budget in self.budgets
        ]


def collect(
    index: Retriever,
    dataset: DataSet,
    modes: Sequence[str],
    budgets: Sequence[int],
    *,
    top: int | None = None,
    substring: bool = False,
    answer: Answerer | None = None,
    explain: bool = False,
) -> Collected:
    """Retrieve for every question of `dataset` and score each context separately.

    `top` limits the passages of a context. `substring` counts an answer inside a word as covered. `answer`
    returns the answers for EM and F1, which are None without it. `explain` stores with each result why its
    passages are in the context. A mode that the index cannot run is skipped with its reason; any other error
    is raised.
    """
    golds = [tuple(map(metrics.normalise, question.answers)) for question in dataset.questions]
    normalise = _line_by_line()
    results: list[Result] = []
    skipped: dict[str, str] = {}
    for mode in modes:
        own: list[list[Result]] = [[] for _ in budgets]
        try:
            for start in range(0, len(dataset.questions), _BATCH):
                batch = dataset.questions[start : start + _BATCH]
                found = index.retrieve_many(
                    [q.text for q in batch], mode=mode, budgets=budgets, top=top, explain=explain
                )
                forms = golds[start : start + _BATCH]
                for question, gold, contexts in zip(batch, forms, found, strict=True):
                    for row, budget, context in zip(own, budgets, contexts, strict=True):
                        reply = None if answer is None else answer(question, mode, budget, context.text)
                        result = _result(question, mode, budget, context, reply)
                        if any(gold):  # else the context need not be normalised
                            text = normalise(context.text)
                            covered = metrics.is_covered(text, gold, substring=substring)
                            result = replace(result, covered=covered)
                        row.append(replace(result, why=_reasons(context)) if explain else result)
        except (ModeUnavailable, BackendMissing) as error:
            skipped[mode] = error.message
            continue
        results.extend(result for row in own for result in row)
    return Collected(tuple(modes), tuple(budgets), tuple(results), skipped)


def _result(question: Question, mode: str, budget: int, context: Context, reply: str | None) -> Result:
    """Return the scores of a context and an answer, without coverage."""
    found = tuple(
        dict.fromkeys(name for passage in context.passages for name in _documents(passage, question))
    )
    timings = context.timings_ms
    result = Result(
        question=question.id,
        mode=mode,
        budget=budget,
        ran=context.mode,
        tokens=context.tokens,
        ms=(timings["total"] if "total" in timings else math.fsum(timings.values())) if timings else None,
        yes_no=metrics.is_yes_no(question.answers),
        recall=metrics.recall(found, question.gold),
        all_gold=metrics.all_gold(found, question.gold),
        rank=metrics.first_rank(found, question.gold),
        ndcg=metrics.ndcg_at(found, question.graded, CUT),
        precision=metrics.precision_at(found, question.gold, CUT),
        average_precision=metrics.average_precision(found, question.gold),
        found=found,
    )
    if reply is None:
        return result
    return replace(
        result,
        decided=_decision(question, reply),
        option_rank=_option_rank(question, reply),
        answer=reply,
        em=metrics.best_exact_match(reply, question.answers),
        f1=metrics.best_f1(reply, question.answers),
        f1_plain=metrics.best_f1(reply, question.answers, special=False),
    )


def _documents(passage: Passage, question: Question) -> list[str]:
    """Return the document of a passage; if copies of the passage are in judged documents, return these."""
    names = [passage.document, *(copy.document for copy in getattr(passage, "also_in", ()))]
    return [name for name in names if name in question.gold] or names[:1]


def _decision(question: Question, reply: str) -> tuple[str, str | None] | None:
    """Return (gold, answered) of an answered question whose only answer is yes, no or maybe."""
    forms = {metrics.normalise(answer) for answer in question.answers}
    if len(forms) != 1 or not forms <= set(metrics.CLASSES):
        return None
    return forms.pop(), metrics.decision(reply)


def _option_rank(question: Question, reply: str) -> int | None:
    """Return the rank of the right option, from 1, in an answer to a question with options.

    The gold answer is the text of an option, or its letter; None if it is neither, or there is no answer.
    """
    options = [metrics.normalise(option) for option in question.options]
    if len(options) < 2:
        return None
    gold = {metrics.normalise(answer) for answer in question.answers}
    right = {letter for letter, option in zip(LETTERS, options, strict=False) if option in gold}
    right = right or {answer.strip(" ().").lower() for answer in question.answers}
    ranked = ranking(reply, len(options))
    return next((rank for rank, letter in enumerate(ranked, 1) if letter in right), None)


_EXPLAINED = ("rank", "unit", "document", "start", "end", "score", "channel", "why")


def _reasons(context: Context) -> tuple[Mapping[str, Any], ...]:
    """Return source and explanation of each passage, without its text, which is in the index."""
    passages = (passage.to_json() for passage in context.passages)
    return tuple({name: passage[name] for name in _EXPLAINED} for passage in passages)


def _line_by_line() -> Callable[[str], str]:
    """Return `metrics.normalise` with a cache of lines: passages recur in budgets, modes and questions.

    No step of the normalisation looks beyond white space, so lines can be normalised separately.
    """
    remembered = lru_cache(maxsize=_KEPT_LINES)(metrics.normalise)

    def normalise(text: str) -> str:
        lines = text.split("\n")
        forms = (remembered(line) if len(line) <= _KEPT_LENGTH else metrics.normalise(line) for line in lines)
        return " ".join(form for form in forms if form)

    return normalise
