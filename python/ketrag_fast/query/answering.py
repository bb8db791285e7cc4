"""Answers: retrieval, optional summaries of neighbouring units, and a model that writes or quotes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ketrag_fast.base.config.fields import LONGEST_SECONDS, short_repr
from ketrag_fast.errors import ConfigError, InputError
from ketrag_fast.models.cross_encoders import is_extractive
from ketrag_fast.query.answer.generation import (
    SECONDS,
    TOKENS,
    OnText,
    answer,
    answer_without_model,
    limit_of,
)
from ketrag_fast.query.answer.notes import add_theme_notes, relevant_summaries
from ketrag_fast.query.answer.prompt import NOTHING, Form, form_of, strip_citation_marks
from ketrag_fast.query.answer.quotes import MOST, best_sentences
from ketrag_fast.query.neighbours import add_summaries
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.plan import QueryPlan, plan_query
from ketrag_fast.query.query import Query, whole
from ketrag_fast.query.retrieval import run_plan
from ketrag_fast.query.themes.describe import QUOTES
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.shared.stored_rows import languages_of
from ketrag_fast.types import Answer, Citation, Context, Passage, Quote, Turn

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """Which model answers a query, how long the answer may be, and in which form.

    Raises InputError for a bad limit, ConfigError for a bad form.
    """

    llm: str | LanguageModel | None = None
    tokens: int | None = None
    seconds: float | None = None
    on_text: OnText | None = None
    on_context: Callable[[Context], bool | None] | None = None
    kind: str | None = None
    options: Sequence[str] = ()
    quotes: int = MOST
    form: Form = field(init=False)

    def __post_init__(self) -> None:
        assign = object.__setattr__  # the dataclass is frozen
        assign(self, "tokens", TOKENS if self.tokens is None else self.tokens)
        if not 0 < whole("tokens", self.tokens) <= _MOST_TOKENS:
            raise InputError(f"tokens must be from 1 to {_MOST_TOKENS:,}, got {short_repr(self.tokens)}")
        seconds = SECONDS if self.seconds is None else self.seconds
        assign(self, "seconds", seconds)
        if not isinstance(seconds, (int, float)) or not 0 < seconds <= LONGEST_SECONDS:
            raise InputError(
                f"seconds must be above 0 and at most {LONGEST_SECONDS:g}, got {short_repr(seconds)}"
            )
        if not 0 < whole("quotes", self.quotes) <= _MOST_QUOTES:
            raise InputError(f"quotes must be from 1 to {_MOST_QUOTES}, got {short_repr(self.quotes)}")
        assign(self, "form", form_of(self.kind, self.options))


Retrieve = Callable[[Query], Context]


def answer_query(
    opened: Opened, path: Path, query: Query, options: AnswerOptions, retrieve: Retrieve | None = None
) -> Answer:
    """Return a model's answer to a query; without a model, the best sentences and the reason.

    A question that continues a conversation is rewritten by the model first. If `retrieve` is given, it
    returns the context. Raises the errors of retrieval and of the model.
    """
    question = query.text
    query, spent = _standing_alone(opened, path, query, options)
    result = _answer_query(opened, path, query, options, retrieve)
    continued = query.continued
    if continued is not None and continued.taken:
        result = replace(result, taken=continued.taken, asked=continued.text)
    if spent is None:
        return result
    result = _with_usage(result, spent)
    return result if query.text == question else replace(result, question=question, read_as=query.text)


def _standing_alone(
    opened: Opened, path: Path, query: Query, options: AnswerOptions
) -> tuple[Query, Spent | None]:
    """Return a query whose question a model has rewritten, and the model's usage; None if no model was
    called.

    Without a usable reply the query is returned as it is.
    """
    llm = opened.answering if options.llm is None else options.llm
    is_needed = query.continued is not None and query.continued.taken
    if not is_needed or llm in (None, _NO_MODEL) or (isinstance(llm, str) and is_extractive(llm)):
        return query, None
    if options.llm is None and opened.writer is not None:
        opened.writer.require_permission()
    from ketrag_fast.query.answer.rewriting import rewrite

    plan = plan_query(opened, path, query)
    limit = limit_of(options.seconds, plan.clock.left())
    lease = opened.models.lend(llm, limit.left) if isinstance(llm, str) else nullcontext(llm)
    turns = [turn for turn in query.history if isinstance(turn, Turn)]
    with lease as model:
        text, spent = rewrite(query.text, turns, model, limit)
    return (query if text is None else replace(query, text=text, history=())), spent


def _answer_query(
    opened: Opened, path: Path, query: Query, options: AnswerOptions, retrieve: Retrieve | None
) -> Answer:
    plan = plan_query(opened, path, query)
    if retrieve is not None:
        plan = replace(plan, neighbourhoods=0)  # its units may come from other indexes
    llm = (opened.answering or _NO_MODEL) if options.llm is None else options.llm
    quotes_by = llm if isinstance(llm, str) and is_extractive(llm) else None
    if quotes_by is not None and options.form.kind != "free":
        raise ConfigError(
            "an extractive model (native:) quotes a span, it cannot answer a question of kind "
            f"{options.form.kind}",
            hint="name a language model: --answer-llm llama-cpp:PATH.gguf or openai:MODEL@URL",
        )
    if retrieve is None:
        context = run_plan(plan, [query.text], quoted=llm == _NO_MODEL)[0][0]
    else:
        context = retrieve(query)
    if options.on_context is not None and options.on_context(context) is False:
        return answer_without_model(context, "cancelled")
    if llm == _NO_MODEL or not context.passages:
        if not context.passages:
            return answer_without_model(context)
        surveys = plan.mode.recipe.surveys
        plain = replace(context, question=plan.asked_text(query.text))
        quotes = _digest(plain) if surveys else best_sentences(plain, options.quotes)
        return replace(answer_without_model(context, "no_model"), quotes=quotes)
    if quotes_by is not None:
        return _quote_span(plan, quotes_by, context, options)
    if options.llm is None and opened.writer is not None:
        opened.writer.require_permission()
    return _answer_with_model(plan, llm, context, options, Layout(path).tables)


def quote_context(context: Context, options: AnswerOptions) -> Answer:
    """Return the best sentences of a context, without a model."""
    if options.form.kind != "free":
        raise ConfigError(
            f"a question of kind {options.form.kind} needs a language model",
            hint="name one: --answer-llm SPEC (llama-cpp:PATH.gguf or openai:MODEL@URL)",
        )
    if options.on_context is not None and options.on_context(context) is False:
        return answer_without_model(context, "cancelled")
    if not context.passages:
        return answer_without_model(context)
    quotes = best_sentences(context, options.quotes)
    return replace(answer_without_model(context, "no_model"), quotes=quotes)


def _digest(context: Context) -> tuple[Quote, ...]:
    """Return the best sentences of each theme of a survey, theme by theme."""
    found: list[Quote] = []
    for theme in dict.fromkeys(map(_theme_of, context.passages)):
        own = [passage for passage in context.passages if _theme_of(passage) == theme]
        quotes = best_sentences(replace(context, passages=own), QUOTES)
        found += [replace(quote, number=own[quote.number - 1].rank) for quote in quotes]
    return tuple(found)


def _theme_of(passage: Passage) -> str:
    return str(next(reason["theme"] for reason in passage.why if "theme" in reason))


def _answer_with_model(
    plan: QueryPlan, llm: str | LanguageModel, context: Context, options: AnswerOptions, tables: Path
) -> Answer:
    """Return a model's answer.

    `options.seconds` limits each reply, the first one with opening the model, and the plan's clock limits
    all of them.
    """
    models, clock = plan.opened.models, plan.clock
    themes = relevant_summaries(plan, context, tables) if plan.mode.recipe.surveys else []
    before = models.account.usd
    limit = limit_of(options.seconds, clock.left())
    lease = models.lend(llm, limit.left) if isinstance(llm, str) else nullcontext(llm)
    read, usage, seconds = context, None, options.seconds
    with lease as model:
        whole_limit = limit_of(clock.left())
        if themes:
            read, usage = add_theme_notes(context, themes, model, whole_limit)
        elif plan.neighbourhoods:
            read, usage = add_summaries(plan, context, model, whole_limit)
        else:
            seconds = limit.left
        result = answer(
            read,
            model,
            tokens=options.tokens or TOKENS,
            seconds=seconds,
            deadline=clock.left(),
            on_text=options.on_text,
            form=options.form,
            languages=languages_of(plan.opened.generation.stages.get("links")),
        )
    after = models.account.usd
    if isinstance(llm, str) and before is not None and after is not None:
        result = replace(result, usd=after - before)
    if themes:  # the notes are not part of the context
        result = replace(result, context=context)
    return result if usage is None else _with_usage(result, usage)


def _with_usage(answer: Answer, usage: Spent) -> Answer:
    """Return an answer whose tokens include those of other replies."""
    return replace(
        answer,
        tokens_in=answer.tokens_in + usage.tokens_in,
        tokens_out=answer.tokens_out + usage.tokens_out,
        tokens_shared=answer.tokens_shared + usage.tokens_shared,
    )


def _quote_span(plan: QueryPlan, spec: str, context: Context, options: AnswerOptions) -> Answer:
    """Return the span in the first 20 passages that best answers the question, by an extractive model.

    Each passage has one span; its score is its lead over "no answer" for that passage. Spans with a
    lead below 0 are dropped. The best one is the answer and the first of up to five quotes; ties are broken
    by rank. If every span is dropped, the answer has the reason `no_answer` and the best
    sentences.
    """
    model, identity = plan.opened.extractors.find(spec)
    limits = [limit for limit in (options.seconds, plan.clock.left()) if limit is not None]
    started = time.perf_counter()
    passages = context.passages[:READ]
    found = model.spans(context.question, [passage.text for passage in passages], seconds=min(limits))
    margins = found.margins
    order = np.argsort(-margins, kind="stable").tolist()
    quotes = []
    for at in (at for at in order if margins[at] >= 0):
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
    if options.on_text is not None:
        options.on_text(text)
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
        quotes=tuple(quotes) or best_sentences(context, options.quotes),
    )
