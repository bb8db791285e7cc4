"""Questions put to the core, and the first passages of each put in a new order by a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.errors import ConfigError
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.preparation import Clock, Prepared
from ketrag_fast.query.recipes import request_of
from ketrag_fast.systems.registry import registry

if TYPE_CHECKING:
    from ketrag_fast.query.python_channels import Ranking

DEPTH: Final = 30
"""Passages that the cross-encoder reads for a question; those after them keep their places."""
_LONG: Final = 1024
"""Tokens of a passage, at most nearly always: a context that so many more fit ranks enough to read."""
_NAME: Final = "rerank"


def replies_of(
    opened: Opened,
    questions: Sequence[str],
    mode: str,
    budgets: Sequence[int],
    prepared: Prepared,
    clock: Clock,
    *,
    top: int | None,
    threads: int | None,
) -> list[_core.Reply]:
    """The core's reply to each question, reranked where the settings name a cross-encoder.

    `threads` is None for one question on this thread. Raises ConfigError where the mode prints more than a
    list of passages, what loading the model raises, and DeadlineExceeded.
    """
    settings = opened.settings
    mask = prepared.mask
    plain = request_of(settings, mode, budgets, top=top, deadline=clock.each(), mask=mask)
    model = opened.reranker
    if model is None or not questions:
        return _run_request(opened, plain, prepared, threads)
    recipe = registry().recipe(mode)
    if len(recipe.shares) > 1 and recipe.join != "fuse":
        raise ConfigError(
            f"rerank: mode {mode} prints tables or several lists, and a cross-encoder orders one list",
            hint="name a mode of passages (bm25, text, fused, walk, ...) or leave rerank out",
        )
    wide = max(budgets, default=0) + DEPTH * _LONG
    first = request_of(settings, mode, [wide], deadline=clock.each(), mask=mask)
    rankings: list[Ranking] = []
    found = _run_request(opened, first, prepared, threads)
    for question, reply in zip(questions, found, strict=True):
        printed = reply.contexts[0]
        units, scores = printed.units[:DEPTH].tolist(), np.asarray(printed.scores, np.float64)
        spans = printed.spans[:DEPTH]
        if (not units and printed.text) or len(printed.nodes):
            raise ConfigError(f"rerank: mode {mode} prints tables, which a cross-encoder does not order")
        texts = [place[-1] for place in opened.searcher.places(units, [end - start for start, end in spans])]
        own = model.scores(question, texts, threads=threads, seconds=clock.each()).astype(np.float64)
        # The best first; equal ones as they came.
        order = np.argsort(-own, kind="stable")
        ids = np.concatenate([printed.units[:DEPTH][order], printed.units[DEPTH:]])
        rankings.append((ids.astype(np.uint32), np.concatenate([own[order], scores[DEPTH:]])))
    request = _core.Request(
        mode,
        [(_NAME, 1.0)],
        list(budgets),
        top=top,
        skip=settings.fill_policy == "skip_and_continue",
        truncate=settings.oversize_policy == "truncate",
        deadline=clock.each(),
    )
    return _run_request(opened, request, replace(prepared, near={}, rankings={_NAME: rankings}), threads)


def _run_request(
    opened: Opened, request: _core.Request, prepared: Prepared, threads: int | None
) -> list[_core.Reply]:
    if threads is not None:
        return opened.searcher.answer_many(
            request,
            prepared.texts,
            vectors=prepared.vectors,
            near=dict(prepared.near),
            given=dict(prepared.rankings),
            threads=threads,
        )
    return [
        opened.searcher.answer(
            request,
            prepared.texts[0],
            vector=None if prepared.vectors is None else prepared.vectors[0],
            near={name: ids[0] for name, ids in prepared.near.items()},
            given={name: rows[0] for name, rows in prepared.rankings.items()},
        )
    ]
