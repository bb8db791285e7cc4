"""Adds the best sentences of neighbouring units in a graph, or an LLM's summaries of them, to a context."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.progress import Limited
from ketrag_fast.kernels.text import sentence_spans
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.query.python_channels import fitted_vectors
from ketrag_fast.records import dataclass, replace
from ketrag_fast.systems.shared.stored_rows import languages_of, span_of
from ketrag_fast.systems.spec.stage import resolve
from ketrag_fast.systems.spec.system import Around, ChannelQuery
from ketrag_fast.types import Context, Passage, Section, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.models.llms.protocol import LanguageModel
    from ketrag_fast.models.tasks.driver import Spent
    from ketrag_fast.query.answer.notes import Surroundings

KIND: Final = "subgraph"
SENTENCES: Final = 3
"""Maximum number of quoted sentences per unit."""
READ: Final = 32
"""Maximum number of sentences per unit that are compared with the question, strongest neighbours first.
A model of MiniLM's size embeds one or two thousand sentences per second."""
_SHORTEST: Final = 20
"""Minimum length of a quoted sentence in characters."""
_OWN: Final = 900
"""Tokens of a model's context that are reserved for the instructions, the marks and the reply."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_Addition = tuple[str, tuple[Span, ...]]
"""Text that is printed below a unit, and the sources of the text."""


@dataclass(frozen=True, slots=True)
class _Neighbourhood:
    passage: Passage
    others: list[Span]


def add_quoted_sentences(plan: QueryPlan, context: Context, limit: Limited) -> Context:
    """Return the context with the sentences of neighbouring units that are most similar to the question.

    Sentences are added until the budget is used up. Answers without summaries are based on this context.
    """
    opened = plan.opened
    started = time.perf_counter()
    every = _neighbourhoods(plan, context)
    if not every:
        return context
    additions = _sentences(opened, context.question, every, limit)
    return _append_additions(opened, context, additions, started)


def add_summaries(
    plan: QueryPlan, context: Context, model: LanguageModel, limit: Limited
) -> tuple[Context, Spent | None]:
    """Return the context with an LLM's summary of the neighbours of each unit, and the model's usage.

    Units without a usable summary get their best sentences instead. Raises DeadlineExceeded, and the errors
    of the model.
    """
    from ketrag_fast.query.answer.notes import TASK, write_summaries

    opened = plan.opened
    started = time.perf_counter()
    every = _neighbourhoods(plan, context)
    if not every:
        return context, None
    tokens = _around(plan).tokens
    if model.identity.context is not None:
        tokens = max(min(tokens, model.identity.context - _OWN), 1)
    subjects = [_fill_surroundings(opened, context.question, one, tokens) for one in every]
    summaries, spent = write_summaries(TASK, [subject for subject, _ in subjects], model, limit)
    lacking = [one for one, summary in zip(every, summaries, strict=True) if summary is None]
    instead = iter(_sentences(opened, context.question, lacking, limit) if lacking else ())
    additions: list[_Addition] = []
    for summary, (_, read) in zip(summaries, subjects, strict=True):
        if summary is None:
            additions.append(next(instead))
        else:
            additions.append((f"> Around it: {_line(summary)}", read) if summary else ("", ()))
    if lacking:
        warning = (
            f"{len(lacking)} of {len(every)} summaries were not written: the best sentences replace them"
        )
        context = replace(context, warnings=(*context.warnings, warning))
    return _append_additions(opened, context, additions, started), spent


def _around(plan: QueryPlan) -> Around:
    """Return how the mode reads neighbours. Requires a plan whose `neighbourhoods` is above 0."""
    around = plan.mode.recipe.around
    assert around is not None  # noqa: S101 - neighbourhoods is 0 without it
    return around


def _neighbourhoods(plan: QueryPlan, context: Context) -> list[_Neighbourhood]:
    passages = list(context.passages)
    if not passages:
        return []
    languages = languages_of(plan.opened.generation.stages.get("links"))
    query = ChannelQuery(
        question=context.question,
        keywords=tuple(_core.lexical_keywords(context.question, languages=languages)),
        vector=None,
        wanted=len(passages),
        budget=context.budget,
        settings=plan.settings,
    )
    stages = plan.opened.generation.stages
    neighbours = resolve(_around(plan).find)(query, stages, [passage.unit for passage in passages])
    return [
        _Neighbourhood(passage, [span_of(stages["units"], unit) for unit in units])
        for passage, units in zip(passages, neighbours, strict=True)
    ]


def _sentences(
    opened: Opened, question: str, every: Sequence[_Neighbourhood], limit: Limited
) -> list[_Addition]:
    """Return for each unit the sentences of its neighbours that are most similar to the question.

    Each sentence is used once, and sentences of units in the context are skipped.
    """
    printed = {(one.passage.document, one.passage.start) for one in every}
    seen: set[str] = set()
    rows: list[list[Span]] = []
    for one in every:
        own: list[Span] = []
        for span in one.others:
            if (span.document, span.start) in printed or len(own) >= READ:
                continue
            fresh = [s for s in _split(span) if s.text not in seen]
            own += fresh[: READ - len(own)]
            seen.update(s.text for s in fresh)
        rows.append(own)
    texts = [" ".join(span.text.split()) for row in rows for span in row]
    near = iter(_similar(opened, question, texts, limit))
    additions: list[_Addition] = []
    for row in rows:
        scores = [(-next(near), at) for at in range(len(row))]
        best = [row[at] for _, at in sorted(scores)[:SENTENCES]]
        lines = [f"> {_line(span.title or span.document)}: {_line(span.text)}" for span in best]
        additions.append(("\n".join(lines), tuple(best)))
    return additions


def _split(span: Span) -> list[Span]:
    found = []
    for first, last in sentence_spans(span.text).tolist():
        text = span.text[first:last]
        if len(text.strip()) < _SHORTEST:
            continue
        start = span.start + first
        found.append(replace(span, start=start, end=start + len(text), text=text))
    return found


def _similar(opened: Opened, question: str, texts: list[str], limit: Limited) -> NDArray[np.float64]:
    """Return the cosine similarity of each text to the question."""
    if not texts:
        return np.zeros(0)
    if opened.questions is not None:
        own = opened.questions.vectors([question], limit.left)[0]
        vectors = opened.questions.embed(texts, "document", limit)
    else:
        every = fitted_vectors(opened, [question, *texts])
        if every is None:  # no vectors: take the first sentences of the strongest neighbours
            return -np.arange(len(texts), dtype=np.float64)
        own, vectors = every[0], every[1:]
    found: NDArray[np.float64] = vectors.astype(np.float64) @ own.astype(np.float64)
    return found


def _fill_surroundings(
    opened: Opened, question: str, one: _Neighbourhood, budget: int
) -> tuple[Surroundings, tuple[Span, ...]]:
    """Return a unit with its neighbours, strongest first, until one exceeds the budget, and their sources."""
    from ketrag_fast.query.answer.notes import Surroundings
    from ketrag_fast.query.answer.prompt import row

    text = row(one.passage)
    left = budget - opened.count_tokens([text])[0]
    others, read = [], []
    rows = [f"{span.title}\n{span.text}" if span.title else span.text for span in one.others]
    for span, other, tokens in zip(one.others, rows, opened.count_tokens(rows), strict=True):
        if tokens > left:
            break
        left -= tokens
        others.append(other)
        read.append(span)
    return Surroundings(question, text, tuple(others)), tuple(read)


def _append_additions(
    opened: Opened, context: Context, additions: Sequence[_Addition], started: float
) -> Context:
    """Return the context with an addition below each unit, in order, until the budget is exceeded."""
    left = context.budget - context.tokens
    costs = opened.count_tokens([text + "\n" for text, _ in additions])
    passages, below = [], []
    for passage, (text, sources), cost in zip(context.passages, additions, costs, strict=True):
        if not text or cost > left:
            passages.append(passage)
            below.append("")
            continue
        left -= cost
        below.append(f"\n{text}")
        own = Span(passage.document, passage.title, passage.start, passage.end, passage.text)
        passages.append(
            replace(
                passage,
                kind=KIND,
                tokens=passage.tokens + cost,
                printed=passage.said + below[-1],
                sources=(own, *sources),
            )
        )
    tokens, whole = context.budget - left, _splice_rows(context, below)
    return replace(
        context,
        text=whole,
        tokens=tokens,
        passages=passages,
        sections=tuple(Section(section.name, tokens, whole, True) for section in context.sections[:1]),
        timings_ms={**context.timings_ms, "around": 1000 * (time.perf_counter() - started)},
    )


def _splice_rows(context: Context, additions: Sequence[str]) -> str:
    """Return the core's text with an addition below each row.

    No line of a text looks like the mark of a row.
    """
    text, at = context.text, 0
    starts: list[int] = []
    for passage in context.passages:
        mark = f"[{passage.rank}]\n"
        at = 0 if text.startswith(mark) and not starts else text.index(f"\n{mark}", at) + 1
        starts.append(at)
    rows = [text[a:b].rstrip("\n") for a, b in pairwise([*starts, len(text)])]
    return "\n\n".join(row + added for row, added in zip(rows, additions, strict=True)) + "\n"


def _line(text: str) -> str:
    """Return a text on one line, without control characters that could end it."""
    return " ".join(_CONTROL.sub(" ", text).split())
