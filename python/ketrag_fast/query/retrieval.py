"""Retrieval: runs a resolved query and returns contexts."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ketrag_fast.base.config.fields import short_repr
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import InputError
from ketrag_fast.query.contexts import build_contexts
from ketrag_fast.query.limits import core_text, whole
from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.query.preparation import prepare
from ketrag_fast.query.reranking import rank
from ketrag_fast.types import Context

_MOST_THREADS = 4096


def run_plan(
    plan: QueryPlan, questions: Sequence[str], threads: int | None = None, *, quoted: bool = True
) -> list[list[Context]]:
    """Return the contexts of each question, one per budget.

    Args:
        plan: The plan that the questions share.
        questions: Validated texts.
        threads: Number of threads, 0 for all cores; None ranks a single question on this thread.
        quoted: Whether the best sentences of neighbouring units are added, in modes that read them.
    """
    prepared = prepare(plan, [core_text(plan.ranked_text(one)) for one in questions], threads or 0)
    if plan.mode.recipe.surveys:
        from ketrag_fast.query.survey import survey_all  # it imports the code for themes

        return survey_all(plan, questions, prepared, threads)
    request, replies = rank(plan, questions, prepared, threads)
    rows = []
    for row, (question, reply) in enumerate(zip(questions, replies, strict=True)):
        explainer = None
        if plan.explain:
            from ketrag_fast.query.explanations import Explainer

            vector = None if prepared.vectors is None else prepared.vectors[row]
            terms = None if prepared.terms is None else prepared.terms[row]
            explainer = Explainer(plan.opened, request, question, prepared.texts[row], vector, terms)
        rows.append(build_contexts(plan, question, reply, explainer, prepared))
    if plan.neighbourhoods and quoted:
        from ketrag_fast.query.neighbours import add_quoted_sentences

        limit = Limited(None, plan.clock.left(), time.monotonic())
        rows = [[add_quoted_sentences(plan, context, limit) for context in row] for row in rows]
    return rows


def check_threads(threads: int) -> int:
    """Return a valid number of threads. Raises InputError if it is out of range."""
    if not 0 <= whole("threads", threads) <= _MOST_THREADS:
        raise InputError(f"threads must be from 0 to {_MOST_THREADS}, got {short_repr(threads)}")
    return threads
