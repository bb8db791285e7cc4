"""Answers quoted from a passage by an extractive model: a span of the source, or none above a threshold."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ketrag_fast.errors import ConfigError
from ketrag_fast.models.extractive import Extractor
from ketrag_fast.query.answer.forms import Form
from ketrag_fast.query.answer.generation import OnText
from ketrag_fast.query.answer.prompt import NOTHING, strip_citation_marks
from ketrag_fast.query.answer.quotes import MOST, best_sentences
from ketrag_fast.types import Answer, Citation, Context, Quote

READ: Final = 20
"""Passages that the model reads."""
_SPANS: Final = 5
"""Maximum number of spans in `quotes`."""


def require_free(form: Form) -> None:
    """Raise ConfigError for a form of answer that a quoted span cannot have."""
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
    """Return the span of the first 20 passages that answers the question of a context best.

    Each passage has one span; its score is how far it is above "no answer" for that passage. Spans below
    `threshold` are dropped. The best one is the answer and the first of up to five quotes; ties are broken by
    rank. If none is left, the answer has the reason `no_answer` and up to `sentences` of the best sentences.

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
