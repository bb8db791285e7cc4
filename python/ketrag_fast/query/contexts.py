"""What the core gives back for a question, as contexts and passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from ketrag_fast import _core
from ketrag_fast.errors import InternalError
from ketrag_fast.query.explanations import Explainer
from ketrag_fast.query.open_generation import FilterMask, Opened
from ketrag_fast.query.preparation import Prepared
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.function_ref import resolve
from ketrag_fast.types import Cited, Context, Lazy, Passage, Section

NO_NODE: Final = 2**32 - 1
"""Where a printed row is a unit, and no node of a graph."""


def contexts_of(
    opened: Opened,
    question: str,
    mode: str,
    budgets: Sequence[int],
    reply: _core.Reply,
    explainer: Explainer | None,
    prepared: Prepared,
) -> list[Context]:
    """A context for each budget, from the core's reply to one question. Passages are made when looked
    at, and explained where there is an `explainer`.
    """
    empty = (
        f"the {name} is empty: its share of the budget went to the texts" for name in reply.empty_channels
    )
    cautions = (opened.cautions.get(name) for name in registry().recipe(mode).channels)
    warnings = (*prepared.warnings, *empty, *(said for said in cautions if said is not None))
    contexts = []
    for budget, printed in zip(budgets, reply.contexts, strict=True):

        def passages(printed: _core.Printed = printed) -> Sequence[Passage]:
            found = _passages(opened, mode, printed, prepared.filtered)
            return found if explainer is None else explainer.explained(found)

        nothing = None if printed.text else reply.reason or "budget_too_small"
        if prepared.filtered is not None and not prepared.filtered.units:
            nothing = "nothing_fits_filter"
        if budget == 0 and nothing == "no_match":  # no budget says nothing about the question
            nothing = "budget_too_small"
        contexts.append(
            Context(
                question=question,
                mode=mode,
                budget=budget,
                tokens=printed.tokens,
                text=printed.text,
                passages=Lazy(passages),
                sections=_sections(printed),
                reason=nothing,
                timings_ms={"embed": prepared.milliseconds, "search": reply.milliseconds},
                generation=opened.generation.number,
                warnings=warnings,
                fitting=None if prepared.filtered is None else prepared.filtered.units,
            )
        )
    return contexts


def _sections(printed: _core.Printed) -> tuple[Section, ...]:
    sections, text = printed.sections, printed.text
    starts = [start for start, _ in printed.spans]
    if len(sections) == 1:
        return (Section(sections[0][0], sections[0][2], text, bool(starts)),)
    whole = text.encode()  # the core counts bytes
    return tuple(
        Section(name, tokens, whole[a:b].decode(), any(a <= start < b for start in starts))
        for name, _, tokens, a, b in sections
    )


def _passages(
    opened: Opened, mode: str, printed: _core.Printed, filtered: FilterMask | None
) -> list[Passage]:
    sections, spans = printed.sections, printed.spans
    split = opened.generation.manifest.settings.get("split_level", 0) != 0
    kind = "subchunk" if split else "chunk"
    if len(sections) == 1:
        channels = [sections[0][1]] * len(spans)
        rewritten = registry().recipe(mode).rewrite is not None
    else:  # a row belongs to the last section that begins before it
        channels = [next(s[1] for s in reversed(sections) if s[3] <= start) for start, _ in spans]
        rewritten = False
    units, nodes = printed.units.tolist(), printed.nodes.tolist() or [NO_NODE] * len(spans)
    rows = [row for row, node in enumerate(nodes) if node == NO_NODE]
    found = opened.searcher.places(
        [units[row] for row in rows], [spans[row][1] - spans[row][0] for row in rows]
    )
    places = dict(zip(rows, found, strict=True))
    cited = _cited_sources(opened, channels, nodes, filtered)
    whole = printed.text.encode() if cited else b""
    scores, costs = printed.scores.tolist(), printed.row_tokens.tolist()
    passages = []
    for row, (begin, stop) in enumerate(spans):
        place = places.get(row)
        if place is not None:  # by position: a question has many of them
            chunk, document, title, start, end, text = place
            channel = mode if rewritten else channels[row]
            about = (row + 1, kind, units[row], chunk, document, title, start, end)
            location = opened.places.of_unit(units[row], start, end)
            page = location.get("page")
            metadata = opened.document_metadata.of_unit(units[row])
            rated = (scores[row], costs[row], channel, text)
            passages.append(Passage(*about, *rated, page=page, location=location, metadata=metadata))
            continue
        node = cited[row]
        first = node.sources[0]
        location = opened.places.of_document(first.document, first.start, first.end)
        passages.append(
            Passage(
                **asdict(first),
                rank=row + 1,
                kind=node.kind,
                unit=node.unit,
                chunk=node.chunk,
                score=scores[row],
                tokens=costs[row],
                channel=channels[row],
                printed=whole[begin:stop].decode(),
                sources=node.sources,
                page=location.get("page"),
                location=location,
                metadata=opened.document_metadata.of_document(first.document),
            )
        )
    return passages


def _cited_sources(
    opened: Opened, channels: Sequence[str], nodes: Sequence[int], filtered: FilterMask | None
) -> dict[int, Cited]:
    """By row, what each printed node of a graph stands on, as far as a filter leaves it; the channel that
    printed it knows.
    """
    rows: dict[str, list[int]] = {}
    for row, node in enumerate(nodes):
        if node != NO_NODE:
            rows.setdefault(channels[row], []).append(row)
    made: dict[int, Cited] = {}
    for channel, own in rows.items():
        cite = registry().channels[channel].cite
        if cite is None:
            raise InternalError(f"the channel {channel} prints nodes and does not say what they cite")
        own_nodes = [nodes[row] for row in own]
        left = () if filtered is None else (filtered.fits,)
        found = resolve(cite)(opened.generation.stages, own_nodes, *left)
        made |= zip(own, found, strict=True)
    return made
