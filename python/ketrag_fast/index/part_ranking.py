"""Ranks the passages of several indexes: by keywords over all of them together, or in each index alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from ketrag_fast import _core
from ketrag_fast.errors import DeadlineExceeded, ModeUnavailable
from ketrag_fast.index.merged_results import Found, Row, merged_fields
from ketrag_fast.index.parts import LocalPart, Part, Printed, is_list
from ketrag_fast.query.query import Query
from ketrag_fast.query.ranking import DEPTH, PRINTED, Prepared, request_to_print
from ketrag_fast.query.reading import Reading, add_reading
from ketrag_fast.query.retrieval import build_contexts
from ketrag_fast.query.shards import WALK, Pending, Ranked, Together, rank_shards
from ketrag_fast.records import replace
from ketrag_fast.types import Context, Lazy, Passage

_KEYWORDS: Final = ("bm25", WALK)
"""Channels of the core that rank by keywords, whose rarity is counted over all indexes."""
_USUAL_TOKENS: Final = 40
"""Usual number of tokens of a passage, to estimate how many passages fit into a budget."""
_SPARE: Final = 2
"""Passages to rank for each passage to print, because copies are left out and neighbours are merged."""
_MOST: Final = 1000
"""Maximum number of passages to rank. It bounds the cost of a very large budget; it was not tuned."""


def with_same_mode(parts: list[Part], plan: Callable[[str, str], Part]) -> list[Part]:
    """Return the plans with the mode that `auto` chooses for all indexes, if it chooses different ones.

    Raises ModeUnavailable if an index lacks a part that this mode needs.
    """
    modes = list(dict.fromkeys(part.mode for part in parts))
    if len(modes) == 1:
        return parts
    common = [mode for mode in (*modes, *_KEYWORDS[::-1]) if all(mode in part.modes for part in parts)]
    if not common:
        raise ModeUnavailable(
            f"the indexes have no mode in common: {', '.join(part.name for part in parts)}",
            hint="choose one index, or add a mode: `ketrag index -i DIR --modes walk`",
        )
    return [plan(part.name, common[0]) for part in parts]


def rank_parts(parts: Sequence[Part], query: Query, together: Together) -> list[Found] | Context:
    """Return the passages of each index that is not late, with ranks among those of all indexes.

    Passages of open indexes alone that keywords rank are returned as one context, except for a search.
    """
    channels = parts[0].channels
    if len(channels) == 1 and channels[0] in _KEYWORDS and all(part.is_plain for part in parts):
        found = _rank_together(parts, query, together, walks=channels[0] == WALK)
        if found is not None:
            return found
    return _rank_each_alone([part for part in parts if part.name not in together.late], together)


def _rank_together(
    parts: Sequence[Part], query: Query, together: Together, *, walks: bool
) -> list[Found] | Context | None:
    """Return the passages of each index that are among the best of all; None if keywords cannot rank.

    Passages of open indexes alone are returned as one context, except for a search.
    """
    first = parts[0]
    reading = _read(parts, together)
    room = first.budget // _USUAL_TOKENS if first.top is None else first.top
    count = max(1, min(_SPARE * (room + 1), _MOST))
    depth = DEPTH if first.top is None else min(DEPTH, first.top)
    ranked = rank_shards(together, first.request(), reading.text, count, walks=walks, depth=depth)
    if ranked is None:
        return None
    local = [part for part in parts if isinstance(part, LocalPart) and part.hits is None]
    if len(local) == len(parts) and not ranked.late:
        with suppress(DeadlineExceeded):  # below, indexes that have the time are printed
            return _printed_together(local, reading, ranked)

    def prints(part: Part) -> Printed | Pending[Printed]:
        units, scores = ranked.units.get(part.name, []), ranked.scores.get(part.name, [])
        return part.print_units(reading, units, scores)

    left = [part for part in parts if part.name not in ranked.late]
    return _in_time(left, prints, lambda part, printed: _printed(part, printed, ranked), together)


def _printed_together(parts: Sequence[LocalPart], reading: Reading, ranked: Ranked) -> Context:
    """Return the passages of open indexes that are among the best of all, which are built when read."""
    units, scores = ranked.units, ranked.scores
    sheets = [
        (
            part.plan.opened.searcher,
            request_to_print(part.plan, min_score=0.0),
            units.get(part.name, ()),
            scores.get(part.name, ()),
            part.min_score,
        )
        for part in parts
    ]
    ranking = list(zip(ranked.numbers, ranked.places, strict=True))
    replies, (text, tokens, rows, chosen) = _core.print_shards(
        PRINTED, sheets, ranking, ranked.all_relevance, reading.text
    )
    prepared = Prepared([reading.text])
    contexts = [
        add_reading(part.plan, reading, build_contexts(part.plan, part.question, reply, None, prepared)[0])
        for part, reply in zip(parts, replies, strict=True)
    ]
    first = contexts[chosen or 0]
    if chosen is None and first.text:
        first = replace(first, reason="below_min_score")

    def passages() -> list[Passage]:
        return [
            replace(
                contexts[number].passages[row],
                rank=rank,
                relevance=ranked.all_relevance[place],
                index=parts[number].name,
                channel=parts[number].channels[0],
            )
            for rank, (number, row, place) in enumerate(rows, 1)
        ]

    return replace(
        first,
        tokens=tokens,
        text=text,
        passages=Lazy(passages),
        sections=tuple(replace(one, tokens=tokens, text=text) for one in first.sections),
        **merged_fields(contexts, {}, nothing_fits=ranked.nothing_fits and chosen is not None),
    )


def _printed(part: Part, printed: Printed, ranked: Ranked) -> Found:
    """Return the passages of an index with their ranks among those of all indexes."""
    name, channel, context = part.name, part.channels[0], printed.context
    rows = []
    for passage, block in zip(context.passages, printed.blocks, strict=True):
        own = [(name, unit) for unit in passage.units or (passage.unit,)]
        rank, key = min((ranked.ranks[key], key) for key in own if key in ranked.ranks)
        relevance = ranked.relevance[key]
        if relevance >= part.min_score:
            changes = {"relevance": relevance, "index": name, "channel": channel}
            rows.append(Row(rank, passage, block, changes))
    nothing_fits = ranked.nothing_fits and bool(rows)
    reason = context.reason
    if context.passages and not rows:
        reason = "below_min_score"
    return Found(
        part, replace(printed, context=replace(context, nothing_fits=nothing_fits, reason=reason)), rows
    )


def _read(parts: Sequence[Part], together: Together) -> Reading:
    """Return how the question is read: similar words replace those that no index has."""
    missing: set[str] | None = None
    for part in parts:  # most questions have no word that the first two indexes lack
        missing = {*part.missing_words} if missing is None else missing & {*part.missing_words}
        if not missing:
            return Reading(parts[0].plain_text)
    readings = list(together.of_each(parts, _is_remote, lambda part: part.read()).values())
    unknown = set.intersection(*({*one.unknown} for one in readings))
    if not unknown:
        return Reading(parts[0].plain_text)
    found = next((one for one in readings if one.replaced and set(one.replaced) <= unknown), None)
    if found is not None:
        return replace(found, unknown=tuple(word for word in found.unknown if word in unknown))
    words = tuple(word for word in readings[0].unknown if word in unknown)
    return Reading(parts[0].plain_text, unknown=words)


def _is_remote(part: Part) -> bool:
    return part.shard.is_remote


def _rank_each_alone(parts: Sequence[Part], together: Together) -> list[Found]:
    """Return the passages of each index, ranked alone, with ranks by relevance among those of all indexes."""

    def alone(part: Part, printed: Printed) -> Found:
        context = printed.context
        if not is_list(context):
            raise ModeUnavailable(
                f"mode {context.mode} prints more than a list of passages, which cannot be merged",
                hint="choose one index, another --mode, or `ketrag merge` them into one",
            )
        pairs = zip(context.passages, printed.blocks, strict=True)
        own = [Row(passage.rank, passage, block, {"index": part.name}) for passage, block in pairs]
        return Found(part, printed, own)

    found = _in_time(parts, lambda part: part.print_alone(), alone, together)
    # Sorting is stable: ties keep the order of the indexes and of their ranks.
    order = sorted(
        ((at, row) for at, one in enumerate(found) for row in range(len(one.rows))),
        key=lambda place: -found[place[0]].rows[place[1]].passage.relevance,
    )
    for rank, (at, row) in enumerate(order):
        found[at].rows[row] = replace(found[at].rows[row], rank=rank)
    return found


def _in_time(
    parts: Sequence[Part],
    prints: Callable[[Part], Printed | Pending[Printed]],
    found_of: Callable[[Part, Printed], Found],
    together: Together,
) -> list[Found]:
    """Return the result of each index, and record those that are late. Raises an error if all are late."""
    results = together.of_each(parts, _is_remote, prints)
    return [found_of(part, results[part.name]) for part in parts if part.name in results]
