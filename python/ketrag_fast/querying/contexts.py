"""What the core gives back for a question, as contexts and passages."""

from __future__ import annotations

from collections.abc import Sequence

from ketrag_fast import _core
from ketrag_fast.querying.opened import Opened
from ketrag_fast.querying.preparing import Prepared
from ketrag_fast.querying.reasons import Explainer
from ketrag_fast.systems.registry import registry
from ketrag_fast.types import Context, Lazy, Passage, Section


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
    warnings = (*prepared.warnings, *empty)
    contexts = []
    for budget, printed in zip(budgets, reply.contexts, strict=True):

        def passages(printed: _core.Printed = printed) -> Sequence[Passage]:
            found = _passages(opened, mode, printed)
            return found if explainer is None else explainer.explained(found)

        nothing = None if printed.text else reply.reason or "budget_too_small"
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
            )
        )
    return contexts


def _sections(printed: _core.Printed) -> tuple[Section, ...]:
    sections, text = printed.sections, printed.text
    if len(sections) == 1:
        return (Section(sections[0][0], sections[0][2], text),)
    whole = text.encode()  # the core counts bytes
    return tuple(Section(name, tokens, whole[a:b].decode()) for name, _, tokens, a, b in sections)


def _passages(opened: Opened, mode: str, printed: _core.Printed) -> list[Passage]:
    sections, spans = printed.sections, printed.spans
    split = opened.generation.manifest.settings.get("split_level", 0) != 0
    kind = "subchunk" if split else "chunk"
    # A row belongs to the last section that begins before it.
    channels = [next(s[1] for s in reversed(sections) if s[3] <= start) for start, _ in spans]
    units = printed.units.tolist()
    places = opened.searcher.places(units, [end - start for start, end in spans])
    return [
        Passage(
            rank=rank,
            kind=kind,
            unit=unit,
            chunk=chunk,
            document=document,
            title=title,
            start=start,
            end=end,
            score=score,
            tokens=cost,
            channel=mode if len(sections) == 1 and registry().recipe(mode).rewrite is not None else channel,
            text=text,
        )
        for rank, (unit, cost, score, channel, (chunk, document, title, start, end, text)) in enumerate(
            zip(
                units,
                printed.row_tokens.tolist(),
                printed.scores.tolist(),
                channels,
                places,
                strict=True,
            ),
            1,
        )
    ]
