"""Answers: retrieval, optional summaries of neighbouring units, and a model that writes or quotes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast.base.config.fields import LONGEST_SECONDS, short_repr
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import ConfigError, InputError
from ketrag_fast.models.cross_encoders import Extractor, is_extractive
from ketrag_fast.query.answer.forms import Form, form_of
from ketrag_fast.query.answer.generation import (
    SECONDS,
    TOKENS,
    OnText,
    answer,
    answer_by,
    answer_without_model,
)
from ketrag_fast.query.answer.prompt import NOTHING, strip_citation_marks
from ketrag_fast.query.answer.quotes import MOST, best_sentences
from ketrag_fast.query.neighbours import add_summaries
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.plan import QueryPlan, plan_query
from ketrag_fast.query.query import Query, whole
from ketrag_fast.query.retrieval import run_plan
from ketrag_fast.query.survey import digest
from ketrag_fast.query.themes.notes import add_theme_notes, relevant_summaries
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.shared.document_languages import languages_of
from ketrag_fast.types import Answer, Citation, Context, Quote

if TYPE_CHECKING:
    from ketrag_fast.models.llms.protocol import LanguageModel
    from ketrag_fast.models.tasks.driver import Spent

_MOST_TOKENS = 1_000_000
_MOST_QUOTES = 100
_NO_MODEL = "none"


READ: Final = 20
"""Passages that the model reads."""
_SPANS: Final = 5
"""Maximum number of spans in `quotes`."""


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

    If `context` is given, it is used instead of retrieving one. Raises the errors of
    retrieval and of the model.
    """
    plan = plan_query(opened, path, query)
    if context is not None:
        plan = replace(plan, neighbourhoods=0)  # its units may come from other indexes
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
    """Return a model's answer.

    `options.seconds` limits each reply, and the plan's clock limits all of them.
    """
    limits: dict[str, Any] = {
        "tokens": options.tokens,
        "seconds": options.seconds,
        "on_text": options.on_text,
        "form": options.form,
        "languages": languages_of(plan.opened.generation.stages.get("links")),
    }
    opened, clock = plan.opened, plan.clock
    themes = relevant_summaries(plan, context, tables) if plan.mode.recipe.surveys else []
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


def require_free(form: Form) -> None:
    """Raise ConfigError if the options request a form of answer that an extractive model cannot give."""
    if form.kind != "free":
        raise ConfigError(
            f"an extractive model (native:) quotes a span, it cannot answer a question of kind {form.kind}",
            hint="name a language model: --answer-llm llama-cpp:PATH.gguf or openai:MODEL@URL",
        )


def extract_answer(
    context: Context,
    model: Extractor,
    identity: Mapping[str, Any],
    *,
    threshold: float = 0.0,
    seconds: float | None = None,
    on_text: OnText | None = None,
    sentences: int = MOST,
) -> Answer:
    """Return the span in the first 20 passages that best answers the question of a context.

    Each passage has one span; its score is its lead over "no answer" for that passage. Spans below
    `threshold` are dropped. The best one is the answer and the first of up to five quotes; ties are broken
    by rank. If every span is dropped, the answer has the reason `no_answer` and up to `sentences` of the
    best sentences.

    Raises DeadlineExceeded after `seconds`, BackendError.
    """
    started = time.perf_counter()
    passages = context.passages[:READ]
    found = model.spans(context.question, [passage.text for passage in passages], seconds=seconds)
    margins = found.margins
    order = np.argsort(-margins, kind="stable").tolist()
    quotes = []
    for at in (at for at in order if margins[at] >= threshold):
        passage, start, end = passages[at], int(found.starts[at]), int(found.ends[at])
        quotes.append(
            Quote(
                at + 1,
                passage.text[start:end],
                passage.document,
                passage.start + start,
                passage.start + end,
                float(margins[at]),
            )
        )
    quotes = quotes[:_SPANS]
    text = NOTHING
    citations: tuple[Citation, ...] = ()
    if quotes:
        first = quotes[0]
        text = f"“{strip_citation_marks(' '.join(first.text.split()))}” [{first.number}]"
        citations = (Citation(first.number, passages[first.number - 1]),)
    if on_text is not None:
        on_text(text)
    elapsed = 1e3 * (time.perf_counter() - started)
    cut = ("the model read only the beginning of the question, which is too long for it",)
    return Answer(
        context.question,
        text,
        context,
        citations,
        passages_used=len(passages),
        reason=None if citations else "no_answer",
        finish="stop",
        model=identity,
        timings_ms={**context.timings_ms, "first": elapsed, "model": elapsed},
        warnings=(*context.warnings, *(cut if found.is_cut else ())),
        quotes=tuple(quotes) or best_sentences(context, sentences),
    )
