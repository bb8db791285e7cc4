"""Retrieval: runs a resolved query and builds contexts and passages from the core's replies."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast import _core
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import InternalError
from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.query.query import core_text
from ketrag_fast.query.ranking import Prepared, prepare, rank
from ketrag_fast.query.reading import add_reading, read_question
from ketrag_fast.systems.spec.stage import resolve
from ketrag_fast.types import Cited, Context, Copy, Lazy, Passage, Section
from ketrag_fast.types.contexts import NOTHING_FITS

if TYPE_CHECKING:
    from ketrag_fast.query.explanations import Explainer

NO_NODE: Final = 2**32 - 1
"""Node number of a printed row that is a unit instead of a node of a graph."""


def run_plan(
    plan: QueryPlan, questions: Sequence[str], threads: int | None = None, *, quoted: bool = True
) -> list[list[Context]]:
    """Return the contexts of each question, one per budget.

    Args:
        plan: The plan that the questions share.
        questions: Validated texts.
        threads: Number of threads, 0 for all cores; None ranks a single question on this thread.
        quoted: Whether the best sentences of neighbouring units are added, in modes that read them.
    """
    readings = [read_question(plan, one) for one in questions]
    texts = [reading.text for reading in readings]
    meanings = [core_text(plan.ranked_text(one)) for one in questions]
    prepared = prepare(plan, texts, threads or 0, meanings=meanings)
    if plan.mode.recipe.surveys:
        from ketrag_fast.query.survey import survey_all  # it imports the code for themes

        surveys = survey_all(plan, questions, prepared, threads)
        return [
            [add_reading(plan, reading, one) for one in row]
            for reading, row in zip(readings, surveys, strict=True)
        ]
    request, replies = rank(plan, questions, prepared, threads)
    if plan.typed is not None:
        from ketrag_fast.query.listing import list_selected

        replies = list_selected(plan, prepared, replies, threads)
    rows = []
    for row, (question, reply) in enumerate(zip(questions, replies, strict=True)):
        explainer = None
        if plan.explain:
            from ketrag_fast.query.explanations import Explainer

            vector = None if prepared.vectors is None else prepared.vectors[row]
            terms = None if prepared.terms is None else prepared.terms[row]
            explainer = Explainer(plan.opened, request, question, prepared.texts[row], vector, terms)
        contexts = build_contexts(plan, question, reply, explainer, prepared)
        rows.append([add_reading(plan, readings[row], context) for context in contexts])
    if plan.neighbourhoods and quoted:
        from ketrag_fast.query.neighbours import add_quoted_sentences

        limit = Limited(None, plan.clock.left(), time.monotonic())
        rows = [[add_quoted_sentences(plan, context, limit) for context in row] for row in rows]
    return rows


def build_contexts(
    plan: QueryPlan, question: str, reply: _core.Reply, explainer: Explainer | None, prepared: Prepared
) -> list[Context]:
    """Return one context per budget, built from the core's reply to one question.

    Passages are built on first access. With an `explainer` they include the reasons for their rank.
    """
    opened, filtered = plan.opened, plan.filtered
    empty = (f"the {name} is empty: the texts got its share of the budget" for name in reply.empty_channels)
    cautions = (opened.cautions.get(channel.name) for channel in plan.mode.channels)
    about = (text for text in cautions if text is not None)
    warnings = (*prepared.warnings, *empty, *about)
    contexts = []
    is_listed = plan.typed is not None and plan.typed.is_listed
    for budget, printed in zip(plan.budgets, reply.contexts, strict=True):
        nothing_fits = printed.nothing_fits and not is_listed  # a list is complete, and needs no relevance

        def passages(printed: _core.Printed = printed) -> Sequence[Passage]:
            built = _build_passages(plan, printed)
            return built if explainer is None else explainer.explained(built)

        contexts.append(
            Context(
                question=question,
                mode=plan.mode.name,
                budget=budget,
                tokens=printed.tokens,
                text=printed.text,
                passages=Lazy(passages),
                sections=_sections(printed),
                reason=_empty_reason(plan, budget, reply, printed),
                timings_ms={"embed": prepared.milliseconds, "search": reply.milliseconds},
                generation=opened.generation.number,
                warnings=(*warnings, NOTHING_FITS) if nothing_fits else warnings,
                nothing_fits=nothing_fits,
                fitting=None if filtered is None else filtered.units,
            )
        )
    return contexts


def _empty_reason(plan: QueryPlan, budget: int, reply: _core.Reply, printed: _core.Printed) -> str | None:
    """Return the reason why a context has no passages, or None if it has passages."""
    if plan.filtered is not None and not plan.filtered.units:
        lacks = plan.typed is not None and plan.typed.lacks_terms
        return "no_match" if lacks else "nothing_fits_filter"
    if printed.text:
        return None
    if budget == 0 and reply.reason in (None, "no_match"):  # nothing was ranked
        return "budget_too_small"
    return reply.reason or "budget_too_small"


def _sections(printed: _core.Printed) -> tuple[Section, ...]:
    sections, text = printed.sections, printed.text
    starts = [start for start, _ in printed.spans]
    if len(sections) == 1:
        return (Section(sections[0][0], sections[0][2], text, bool(starts)),)
    whole = text.encode()  # the core counts in bytes
    return tuple(
        Section(name, tokens, whole[a:b].decode(), any(a <= start < b for start in starts))
        for name, _, tokens, a, b in sections
    )


def _build_passages(plan: QueryPlan, printed: _core.Printed) -> list[Passage]:
    opened = plan.opened
    sections, spans = printed.sections, printed.spans
    if len(sections) == 1:
        channels = [sections[0][1]] * len(spans)
    else:  # a row belongs to the last section that begins before it
        channels = [next(s[1] for s in reversed(sections) if s[3] <= start) for start, _ in spans]
    runs, also_in = printed.runs, _copies(plan, printed)
    units, nodes = printed.units, printed.nodes or [NO_NODE] * len(spans)
    rows = [row for row, node in enumerate(nodes) if node == NO_NODE]
    sizes = [spans[row][1] - spans[row][0] for row in rows]
    places = opened.searcher.places([units[row] for row in rows], sizes, [runs[row] for row in rows])
    place_of = dict(zip(rows, places, strict=True))
    cited = _cited_sources(plan, channels, nodes)
    whole = printed.text.encode() if cited else b""
    scores, costs = printed.scores, printed.row_tokens
    relevance = printed.relevance
    passages = []
    for row, (begin, stop) in enumerate(spans):
        fields: dict[str, Any]
        if row in place_of:
            chunk, document, title, start, end, text, before = place_of[row]
            own = range(runs[row][0], sum(runs[row]))
            location = opened.places.of_unit(own[0], start, end)
            metadata = opened.document_metadata.of_unit(units[row])
            about = (opened.unit_kind, units[row], chunk, document, title, start, end)
            fields = {
                "text": text,
                "context": before,
                "units": tuple(own) if len(own) > 1 else (),
                "also_in": tuple(copy for unit, copy in also_in if unit in own),
            }
        else:
            node = cited[row]
            first = node.sources[0]
            document, start, end = first.document, first.start, first.end
            location = opened.places.of_document(document, start, end)
            metadata = opened.document_metadata.of_document(document)
            about = (node.kind, node.unit, node.chunk, document, first.title, start, end)
            printed_text = whole[begin:stop].decode()
            fields = {"text": first.text, "printed": printed_text, "sources": node.sources}
        passages.append(
            Passage(
                row + 1,
                *about,
                scores[row],
                costs[row],
                channels[row],
                **fields,
                page=location.get("page"),
                location=location,
                metadata=metadata,
                relevance=relevance[row],
            )
        )
    return passages


def _copies(plan: QueryPlan, printed: _core.Printed) -> list[tuple[int, Copy]]:
    """Return the units that are omitted as copies, with the printed unit that each one repeats."""
    if not printed.copies:
        return []
    others = [other for _, other in printed.copies]
    places = plan.opened.searcher.places(others, [0] * len(others))
    spans = plan.opened.generation.stages["units"].columns["unit_span"]
    return [
        (unit, Copy(other, document, title, start, spans[other, 1]))
        for (unit, other), (_, document, title, start, *_) in zip(printed.copies, places, strict=True)
    ]


def _cited_sources(plan: QueryPlan, channels: Sequence[str], nodes: Sequence[int]) -> dict[int, Cited]:
    """Return the sources of each printed node by row, without sources that a filter excludes."""
    rows: dict[str, list[int]] = {}
    for row, node in enumerate(nodes):
        if node != NO_NODE:
            rows.setdefault(channels[row], []).append(row)
    cited: dict[int, Cited] = {}
    for channel, own in rows.items():
        cite = plan.mode.channel(channel).cite
        if cite is None:
            raise InternalError(f"the channel {channel} prints nodes and does not declare what they cite")
        matches = () if plan.filtered is None else (plan.filtered.fits,)
        sources = resolve(cite)(plan.opened.generation.stages, [nodes[row] for row in own], *matches)
        cited |= zip(own, sources, strict=True)
    return cited
