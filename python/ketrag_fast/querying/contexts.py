"""What the core gives back for a question, as contexts and passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ketrag_fast import _core
from ketrag_fast.explain import why
from ketrag_fast.querying.asked import Asked, ranking
from ketrag_fast.querying.opened import Opened
from ketrag_fast.types import Context, Lazy, Passage, Section


def contexts_of(
    opened: Opened,
    question: str,
    mode: str,
    budgets: Sequence[int],
    reply: _core._Reply,
    explain: bool,
    asked: Asked,
) -> list[Context]:
    """A context for each budget, from the core's reply to one question. Passages are made when looked at."""
    reason, printed, milliseconds, no_skeleton = reply
    warnings = (*asked.warnings, _NO_SKELETON) if no_skeleton else asked.warnings
    contexts = []
    for budget, row in zip(budgets, printed, strict=True):
        text, tokens = row[0], row[1]

        def passages(row: _core._Printed = row) -> Sequence[Passage]:
            found = _passages(opened, mode, row)
            return [replace(p, why=why(question, p)) for p in found] if explain else found

        nothing = None if text else reason or "budget_too_small"
        if budget == 0 and nothing == "no_match":  # no budget says nothing about the question
            nothing = "budget_too_small"
        contexts.append(
            Context(
                question=question,
                mode=mode,
                budget=budget,
                tokens=tokens,
                text=text,
                passages=Lazy(passages),
                sections=_sections(text, row[6]),
                reason=nothing,
                timings_ms={"embed": asked.milliseconds, "search": milliseconds},
                generation=opened.generation.number,
                warnings=warnings,
            )
        )
    return contexts


_NO_SKELETON = "the skeleton is empty: its share of the budget went to the texts"


def _sections(text: str, tables: list[_core._Table]) -> tuple[Section, ...]:
    if len(tables) == 1:
        return (Section(tables[0][0], tables[0][2], text),)
    whole = text.encode()  # the core counts bytes
    return tuple(Section(name, tokens, whole[a:b].decode()) for name, _, tokens, a, b in tables)


def _passages(opened: Opened, mode: str, row: _core._Printed) -> list[Passage]:
    _, _, units, tokens, spans, scores, tables = row
    split = opened.generation.manifest.settings.get("split_level", 0) != 0
    kind = "subchunk" if split else "chunk"
    # A row belongs to the last table that begins before it.
    channels = [next(t[1] for t in reversed(tables) if t[3] <= start) for start, _ in spans]
    places = opened.searcher.places(units.tolist(), [end - start for start, end in spans])
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
            channel=mode if len(tables) == 1 and tables[0][1] == ranking(mode) else channel,
            text=text,
        )
        for rank, (unit, cost, score, channel, (chunk, document, title, start, end, text)) in enumerate(
            zip(units.tolist(), tokens.tolist(), scores.tolist(), channels, places, strict=True), 1
        )
    ]
