"""Answers: retrieval, optional summaries of neighbouring units, and a model that writes or quotes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.config.fields import LONGEST_SECONDS, short_repr
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import InputError
from ketrag_fast.models.extractive import is_extractive
from ketrag_fast.query.answer.extraction import extract_answer, require_free
from ketrag_fast.query.answer.forms import Form, form_of
from ketrag_fast.query.answer.generation import (
    SECONDS,
    TOKENS,
    OnText,
    answer,
    answer_by,
    answer_without_model,
)
from ketrag_fast.query.answer.quotes import MOST, best_sentences
from ketrag_fast.query.limits import whole
from ketrag_fast.query.neighbours import add_summaries
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.plan import QueryPlan, plan_query
from ketrag_fast.query.query import Query
from ketrag_fast.query.retrieval import run_plan
from ketrag_fast.query.survey import digest
from ketrag_fast.query.themes.notes import add_theme_notes, relevant_themes
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.shared.document_languages import languages_of
from ketrag_fast.types import Answer, Context

if TYPE_CHECKING:
    from ketrag_fast.models.llms.protocol import LanguageModel
    from ketrag_fast.models.tasks.driver import Spent

_MOST_TOKENS = 1_000_000
_MOST_QUOTES = 100
_NO_MODEL = "none"


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Which model answers a query, how long the answer may be, and in which form."""

    llm: str | LanguageModel | None
    tokens: int
    seconds: float
    on_text: OnText | None
    on_context: Callable[[Context], bool | None] | None
    form: Form
    quotes: int


def answer_options(
    *,
    llm: str | LanguageModel | None = None,
    tokens: int | None = None,
    seconds: float | None = None,
    on_text: OnText | None = None,
    on_context: Callable[[Context], bool | None] | None = None,
    kind: str | None = None,
    options: Sequence[str] = (),
    quotes: int = MOST,
) -> AnswerOptions:
    """Return the options of an answer. Raises InputError for a bad limit, ConfigError for a bad form."""
    limit = TOKENS if tokens is None else tokens
    if not 0 < whole("tokens", limit) <= _MOST_TOKENS:
        raise InputError(f"tokens must be from 1 to {_MOST_TOKENS:,}, got {short_repr(limit)}")
    longest = SECONDS if seconds is None else seconds
    if not isinstance(longest, (int, float)) or not 0 < longest <= LONGEST_SECONDS:
        raise InputError(
            f"seconds must be above 0 and at most {LONGEST_SECONDS:g}, got {short_repr(longest)}"
        )
    if not 0 < whole("quotes", quotes) <= _MOST_QUOTES:
        raise InputError(f"quotes must be from 1 to {_MOST_QUOTES}, got {short_repr(quotes)}")
    return AnswerOptions(llm, limit, longest, on_text, on_context, form_of(kind, options), quotes)


def answer_query(
    opened: Opened, path: Path, query: Query, options: AnswerOptions, context: Context | None = None
) -> Answer:
    """Return a model's answer to a query; without a model, the best sentences and the reason.

    A `context` that was retrieved already is used instead of that of the query. Raises the errors of
    retrieval and of the model.
    """
    plan = plan_query(opened, path, query)
    if context is not None:
        plan = replace(plan, neighbourhoods=0)  # its units may be those of other indexes
    llm = (opened.answering or _NO_MODEL) if options.llm is None else options.llm
    is_quoting = isinstance(llm, str) and is_extractive(llm)
    if is_quoting:
        require_free(options.form)
    if context is None:
        context = run_plan(plan, [query.text], quoted=llm == _NO_MODEL)[0][0]
    if options.on_context is not None and options.on_context(context) is False:
        return answer_without_model(context, "cancelled")
    if llm == _NO_MODEL or not context.passages:
        if not context.passages:
            return answer_without_model(context)
        surveys = plan.mode.recipe.surveys
        quotes = digest(context) if surveys else best_sentences(context, options.quotes)
        return replace(answer_without_model(context, "no_model"), quotes=quotes)
    if isinstance(llm, str) and is_quoting:
        return _answer_by_quoting(plan, llm, context, options)
    if options.llm is None and opened.writer is not None:
        opened.writer.require_permission()
    return _answer_with_model(plan, llm, context, options, Layout(path).tables)


def _answer_by_quoting(plan: QueryPlan, spec: str, context: Context, options: AnswerOptions) -> Answer:
    """Return the span that an extractive model quotes."""
    model, identity = plan.opened.extractors.find(spec)
    left = plan.clock.left()
    return extract_answer(
        context,
        model,
        identity,
        threshold=plan.settings.answer_threshold,
        seconds=options.seconds if left is None else min(options.seconds, left),
        on_text=options.on_text,
        sentences=options.quotes,
    )


def _answer_with_model(
    plan: QueryPlan, llm: str | LanguageModel, context: Context, options: AnswerOptions, tables: Path
) -> Answer:
    """Return a model's answer. `options.seconds` limits each reply, the plan's clock all of them."""
    limits: dict[str, Any] = {
        "tokens": options.tokens,
        "seconds": options.seconds,
        "on_text": options.on_text,
        "form": options.form,
        "languages": languages_of(plan.opened.generation.stages.get("links")),
    }
    opened, clock = plan.opened, plan.clock
    themes = relevant_themes(plan, context, tables) if plan.mode.recipe.surveys else []
    if not plan.neighbourhoods and not themes:
        return _generate(opened, llm, context, deadline=clock.left(), **limits)
    account = opened.models.account
    left, before = clock.left(), account.usd
    limit = Limited(None, left, time.monotonic())
    lease = opened.models.lend(llm, left) if isinstance(llm, str) else nullcontext(llm)
    usage: Spent | None
    with lease as model:
        if themes:
            read, usage = add_theme_notes(context, themes, model, limit)
        else:
            read, usage = add_summaries(plan, context, model, limit)
    after = account.usd
    result = _generate(opened, llm, read, deadline=clock.left(), **limits)
    if themes:  # the notes are not part of the context
        result = replace(result, context=context)
    if usage is None:
        return result
    usd = result.usd
    if usd is not None and before is not None and after is not None:
        usd += after - before
    return replace(
        result,
        usd=usd,
        tokens_in=result.tokens_in + usage.tokens_in,
        tokens_out=result.tokens_out + usage.tokens_out,
        tokens_shared=result.tokens_shared + usage.tokens_shared,
    )


def _generate(opened: Opened, llm: str | LanguageModel, context: Context, **options: Any) -> Answer:
    if isinstance(llm, str):
        return answer_by(opened.models, llm, context, **options)
    return answer(context, llm, **options)
