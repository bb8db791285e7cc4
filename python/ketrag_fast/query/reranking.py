"""Ranking by the core, then reranking of the top passages by a cross-encoder, by date, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.errors import ConfigError
from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.query.preparation import Prepared
from ketrag_fast.query.recipes import prints_once

if TYPE_CHECKING:
    from ketrag_fast.models.cross_encoders import CrossEncoder
    from ketrag_fast.query.python_channels import Ranking

DEPTH: Final = 30
"""Number of top passages per question that are reranked; later passages keep their ranks."""
_LONG: Final = 1024
"""Token count that few passages exceed; a budget with room for DEPTH such passages has enough to rerank."""
_NAME: Final = "rerank"


def rank(
    plan: QueryPlan, questions: Sequence[str], prepared: Prepared, threads: int | None
) -> tuple[_core.Request, list[_core.Reply]]:
    """Return the request of the mode and the core's reply to each question, reranked if the plan says so.

    If `threads` is None, a single question is ranked on the calling thread.

    Raises:
        ConfigError: The mode prints more than one list of passages and cannot be reranked.
        DeadlineExceeded: Time is over.
    """
    model = plan.opened.reranker
    if (model is None and plan.newest is None) or not questions:
        request = plan.request()
        return request, run(plan, request, prepared, threads)
    recipe = plan.mode.recipe
    if len(recipe.shares) > 1 and recipe.join != "fuse":
        raise ConfigError(
            f"{_wish(plan)}: mode {plan.mode.name} prints tables or several lists, which cannot be reordered",
            hint=f"use a mode of passages (bm25, text, fused, walk, ...) or leave out {_wish(plan)}",
        )
    request = plan.request([max(plan.budgets, default=0) + DEPTH * _LONG])
    replies = run(plan, request, prepared, threads)
    rankings = [
        _reorder(plan, model, question, reply, threads)
        for question, reply in zip(questions, replies, strict=True)
    ]
    settings = plan.settings
    final = _core.Request(
        plan.mode.name,
        [(_NAME, 1.0)],
        list(plan.budgets),
        top=plan.top,
        skip=settings.fill_policy == "skip_and_continue",
        truncate=settings.oversize_policy == "truncate",
        deadline=plan.clock.each(),
        once=prints_once(settings),
        min_score=plan.min_score,
    )
    reordered = replace(prepared, near={}, rankings={_NAME: rankings})
    return request, run(plan, final, reordered, threads)


def _wish(plan: QueryPlan) -> str:
    """Return the name of the setting that requests reranking."""
    return "newest" if plan.opened.reranker is None else "rerank"


def _reorder(
    plan: QueryPlan, model: CrossEncoder | None, question: str, reply: _core.Reply, threads: int | None
) -> Ranking:
    """Return the units of a reply, with the first DEPTH reordered by a cross-encoder's scores or by date."""
    printed = reply.contexts[0]
    units, spans = printed.units[:DEPTH].tolist(), printed.spans[:DEPTH]
    if (not units and printed.text) or len(printed.nodes):
        raise ConfigError(f"{_wish(plan)}: mode {plan.mode.name} prints tables, which cannot be reordered")
    first, all_scores = printed.units[:DEPTH], np.asarray(printed.scores, np.float64)
    scores = all_scores[:DEPTH]
    if model is not None:
        places = plan.opened.searcher.places(units, [end - start for start, end in spans])
        texts = [context + text for *_, text, context in places]
        found = model.scores(question, texts, threads=threads, seconds=plan.clock.each()).astype(np.float64)
        order = np.argsort(-found, kind="stable")  # equal scores keep the order of the core's ranking
        first, scores = first[order], found[order]
    if plan.newest is not None:
        from ketrag_fast.query.recency import days_of, newest_copies_first, newest_first

        days = days_of(plan.opened, plan.newest, first.tolist())
        preferred = newest_first(scores, days)
        stage = plan.opened.generation.stages["units"]
        if "unit_keys" in stage:
            keys = stage["unit_keys"].reshape(-1, 2)[first].tolist()
            preferred = newest_copies_first(preferred, days, keys)
        first, scores = first[preferred], scores[preferred]
    ids = np.concatenate([first, printed.units[DEPTH:]])
    return ids.astype(np.uint32), np.concatenate([scores, all_scores[DEPTH:]])


def run(
    plan: QueryPlan, request: _core.Request, prepared: Prepared, threads: int | None
) -> list[_core.Reply]:
    """Return the core's reply to each question; `threads` as in `rank`."""
    opened = plan.opened
    if threads is not None:
        return opened.searcher.answer_many(
            request,
            prepared.texts,
            vectors=prepared.vectors,
            terms=prepared.terms,
            near=dict(prepared.near),
            given=dict(prepared.rankings),
            threads=threads,
        )
    return [
        opened.searcher.answer(
            request,
            prepared.texts[0],
            vector=None if prepared.vectors is None else prepared.vectors[0],
            terms=None if prepared.terms is None else prepared.terms[0],
            near={name: ids[0] for name, ids in prepared.near.items()},
            given={name: rows[0] for name, rows in prepared.rankings.items()},
        )
    ]
