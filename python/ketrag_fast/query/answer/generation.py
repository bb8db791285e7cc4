"""Asks a model for an answer from a context, and reads its citations as they come."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import BackendError, Cancelled, DeadlineExceeded
from ketrag_fast.models.llms.models import Models
from ketrag_fast.models.llms.protocol import LanguageModel, Loadable
from ketrag_fast.models.tasks.driver import Driver
from ketrag_fast.models.tasks.task import ParsedReply, Task
from ketrag_fast.query.answer.citations import CitationReader
from ketrag_fast.query.answer.forms import FREE, Form
from ketrag_fast.query.answer.prompt import NOTHING, fence_in, fitting, instructions
from ketrag_fast.secrets import Cover
from ketrag_fast.types import Answer, Citation, Context

OnText = Callable[[str], bool | None]
"""Takes the next piece of an answer; False stops."""
TOKENS: Final = 512
"""Of an answer, at most."""
SECONDS: Final = 300.0
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""What moves a terminal's cursor or ends a text; lines and tabs stay."""


def answer_by(
    models: Models,
    spec: str,
    context: Context,
    *,
    seconds: float | None = SECONDS,
    deadline: float | None = None,
    **options: Any,
) -> Answer:
    """As `answer`, with the model of a spec; `seconds` bound its opening too. Raises what opening it raises,
    and DeadlineExceeded where that, or others who keep the model busy, takes all the time.
    """
    limits = [bound for bound in (seconds, deadline) if bound is not None]
    limit = Limited(None, min(limits) if limits else None, time.monotonic())
    with models.lend(spec, limit.left) as model:
        before = models.account.usd
        made = answer(context, model, seconds=limit.left, **options)
        after = models.account.usd
    return made if before is None or after is None else replace(made, usd=after - before)


def answer_without_model(context: Context, reason: str | None = None) -> Answer:
    """The answer where no model is asked: there is none, or there are no passages."""
    why = reason or context.reason or "no_match"
    return Answer(
        context.question,
        "" if reason else NOTHING,
        context,
        reason=why,
        timings_ms=dict(context.timings_ms),
        warnings=context.warnings,
    )


def answer_task(tokens: int, seconds: float | None, form: Form = FREE) -> Task[str, str]:
    """What is asked: a question below its passages, for free text with citations."""
    return Task(
        name="answer",
        version=1,
        instructions=instructions(form),
        text=str,
        parse=lambda _, text, finish: ParsedReply(text),
        tokens=tokens,
        seconds=seconds,
        subject="the question with its passages",
        activity="answering",
    )


def answer(
    context: Context,
    model: LanguageModel,
    *,
    tokens: int = TOKENS,
    seconds: float | None = SECONDS,
    deadline: float | None = None,
    on_text: OnText | None = None,
    form: Form = FREE,
) -> Answer:
    """The model's answer from a context with passages. Raises BackendError where the model fails.

    `seconds` bounds the reply; `deadline` are the seconds that are left of the question's own: what is there
    by then is the answer, and it says that it was cut. `form` says what the answer begins with.
    """
    limits = [bound for bound in (seconds, deadline) if bound is not None]
    limit = Limited(None, min(limits) if limits else None, time.monotonic())
    if isinstance(model, Loadable):  # else the first look at the prompt would, whatever the time
        try:
            model.load(lambda: limit.reached)
        except Cancelled:
            raise DeadlineExceeded(
                f"{model.identity.spec} was not loaded in time", hint="give more seconds, or another model"
            ) from None
    prompt, used = fitting(context, model, tokens, form)
    task = answer_task(tokens, limit.left, form)
    reader = CitationReader(used)
    cover = Cover()  # of what is left when control characters are gone
    began = time.perf_counter()
    first: float | None = None
    said: list[str] = []

    def give(text: str) -> bool:
        nonlocal first
        text = cover.feed(_CONTROL.sub("", text))
        if not text:
            return True
        first = time.perf_counter() - began if first is None else first
        said.append(text)
        return on_text is None or on_text(text) is not False

    try:
        reply = Driver(model, limit=limit).stream(prompt, task.limits, lambda piece: give(reader.feed(piece)))
    except BackendError as error:
        if error.hint is None:
            error.hint = "ask again, or with --llm none to see the passages alone"
        raise
    give(reader.finish())
    if rest := cover.finish():
        said.append(rest)
        if on_text is not None:
            on_text(rest)
    passages = context.passages
    whole = time.perf_counter() - began
    warnings = list(context.warnings)
    if used < len(passages):
        warnings.append(f"the model's context holds {used} of the {len(passages)} passages")
    if fence_in(prompt) in "".join(said):
        warnings.append("the answer repeats the marks between passages, which no answer needs")
    finish = "time" if reply.finish == "cancelled" and limit.reached else reply.finish
    if finish != "stop":
        warnings.append(f"the answer was cut ({finish})")
    text = "".join(said).strip()
    return Answer(
        context.question,
        text,
        context,
        tuple(Citation(number, passages[number - 1]) for number in reader.cited),
        reader.removed,
        used,
        None,
        finish,
        {"spec": model.identity.spec, "fingerprint": model.identity.fingerprint},
        reply.tokens_in,
        reply.tokens_out,
        reply.tokens_shared,
        timings_ms={**context.timings_ms, "first": 1e3 * (first or whole), "model": 1e3 * whole},
        warnings=tuple(warnings),
        decision=form.decision(text),
        ranking=form.ranking(text),
    )
