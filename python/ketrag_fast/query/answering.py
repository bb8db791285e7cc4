"""From a context to an answer: what is around its passages is summarised first, where that is asked for."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.progress import Limited
from ketrag_fast.query import neighbours as around
from ketrag_fast.query.answer.generation import answer, answer_by
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.preparation import Clock
from ketrag_fast.types import Answer, Context

if TYPE_CHECKING:
    from ketrag_fast.models.llms.protocol import LanguageModel


def answer_with_model(
    opened: Opened,
    chosen: str | LanguageModel,
    context: Context,
    clock: Clock,
    *,
    seconds: float,
    **options: Any,
) -> Answer:
    """The answer of a model, open or named by its spec. `seconds` bound each reply, the clock all of them."""
    if not around.count(opened, context.mode):
        return _answer_open_model(opened, chosen, context, seconds=seconds, deadline=clock.left(), **options)
    account = opened.models.account
    left, before = clock.left(), account.usd
    limit = Limited(None, left, time.monotonic())
    lent = opened.models.lend(chosen, left) if isinstance(chosen, str) else nullcontext(chosen)
    with lent as model:
        context, spent = around.add_summaries(opened, context, model, limit)
    after = account.usd
    made = _answer_open_model(opened, chosen, context, seconds=seconds, deadline=clock.left(), **options)
    if spent is None:
        return made
    usd = made.usd
    if usd is not None and before is not None and after is not None:
        usd += after - before
    return replace(
        made,
        usd=usd,
        tokens_in=made.tokens_in + spent.tokens_in,
        tokens_out=made.tokens_out + spent.tokens_out,
        tokens_shared=made.tokens_shared + spent.tokens_shared,
    )


def _answer_open_model(
    opened: Opened, chosen: str | LanguageModel, context: Context, **options: Any
) -> Answer:
    if isinstance(chosen, str):
        return answer_by(opened.models, chosen, context, **options)
    return answer(context, chosen, **options)
