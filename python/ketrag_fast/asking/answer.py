"""Asks a model for an answer from a context, and reads its citations as they come."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ketrag_fast.asking.citations import CitationReader
from ketrag_fast.asking.prompt import NOTHING, fitting
from ketrag_fast.backends.llms.models import Models
from ketrag_fast.backends.llms.protocol import LanguageModel, Limits, Reply
from ketrag_fast.errors import BackendError
from ketrag_fast.types import Answer, Citation, Context

OnText = Callable[[str], bool | None]
"""Takes the next piece of an answer; False stops."""
TOKENS: Final = 512
"""Of an answer, at most."""
SECONDS: Final = 300.0
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""What moves a terminal's cursor or ends a text; lines and tabs stay."""


def answer_by(models: Models, spec: str, context: Context, **options: Any) -> Answer:
    """As `answer`, with the model of a spec. Raises what opening it raises, too."""
    with models.lend(spec) as model:
        before = models.account.usd
        told = answer(context, model, **options)
        after = models.account.usd
    return told if before is None or after is None else replace(told, usd=after - before)


def unasked(context: Context, reason: str | None = None) -> Answer:
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


def answer(
    context: Context,
    model: LanguageModel,
    *,
    tokens: int = TOKENS,
    seconds: float | None = SECONDS,
    on_text: OnText | None = None,
) -> Answer:
    """The model's answer from a context with passages. Raises BackendError where the model fails."""
    prompt, used = fitting(context, model, tokens)
    reader = CitationReader(used)
    began = time.perf_counter()
    first: float | None = None
    said: list[str] = []
    wanted = True
    reply: Reply | None = None

    def give(text: str) -> None:
        nonlocal first, wanted
        text = _CONTROL.sub("", text)
        if text:
            first = time.perf_counter() - began if first is None else first
            said.append(text)
            if on_text is not None and on_text(text) is False:
                wanted = False

    for item in model.stream(prompt, Limits(tokens, seconds), lambda: not wanted):
        if isinstance(item, Reply):
            reply = item
        else:
            give(reader.feed(item))
    give(reader.finish())
    if reply is None or reply.finish == "error":
        raise BackendError(
            f"{model.identity.spec} gave no answer: {reply.error if reply is not None else 'nothing came'}",
            hint="ask again, or with --llm none to see the passages alone",
        )
    passages = context.passages
    whole = time.perf_counter() - began
    warnings = list(context.warnings)
    if used < len(passages):
        warnings.append(f"the model's context holds {used} of the {len(passages)} passages")
    if reply.finish != "stop":
        warnings.append(f"the answer was cut ({reply.finish})")
    return Answer(
        context.question,
        "".join(said).strip(),
        context,
        tuple(Citation(number, passages[number - 1]) for number in reader.cited),
        reader.removed,
        used,
        None,
        reply.finish,
        {"spec": model.identity.spec, "fingerprint": model.identity.fingerprint},
        reply.tokens_in,
        reply.tokens_out,
        reply.tokens_shared,
        timings_ms={**context.timings_ms, "first": 1e3 * (first or whole), "model": 1e3 * whole},
        warnings=tuple(warnings),
    )
