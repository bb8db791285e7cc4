"""`Indexes`: one query over several indexes, with the ranking that one index of all documents would have.

Modes of keywords (`bm25`, `walk`) are ranked over all indexes together (`query/shards.py`). Other modes of
passages, and queries that reorder passages (a reranker, `newest`) or list them in the order of the index, are
ranked in each index, and their passages are merged by relevance, which has the same scale in all indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Unpack

from ketrag_fast.base.memory import enough_memory, map_threads
from ketrag_fast.errors import ConfigError, DeadlineExceeded, KetragError, ModeUnavailable
from ketrag_fast.index import querying
from ketrag_fast.index.index import Index
from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.query.query import Clock, Query, QueryFields, as_query, check_top, core_text
from ketrag_fast.query.ranking import DEPTH, Prepared, print_rankings
from ketrag_fast.query.reading import Reading, add_reading, read_question
from ketrag_fast.query.retrieval import build_contexts, run_plan
from ketrag_fast.query.shards import LocalShard, Preferred, Ranked, Together, rank_shards
from ketrag_fast.types import Context, Hit, Hits, Passage
from ketrag_fast.types.contexts import NOTHING_FITS, merged_reading

if TYPE_CHECKING:
    from ketrag_fast.query.search import Globs
    from ketrag_fast.types import Answer

_WALKS: Final = "walk"
_KEYWORDS: Final = ("bm25", _WALKS)
"""Channels of the core that rank by keywords, whose rarity is counted over all indexes."""
_USUAL_TOKENS: Final = 40
"""Usual number of tokens of a passage, to estimate how many passages fit into a budget."""
_SPARE: Final = 2
"""Passages to rank for each passage to print, because copies are left out and neighbours are merged."""
_MOST: Final = 1000


@dataclass(frozen=True)
class _Part:
    """One index with its plan for the query, and the function that makes its result from a context."""

    name: str
    plan: QueryPlan
    hits: Callable[[Context], Hits] | None = None


@dataclass(frozen=True)
class _Found:
    """The passages of one index, each with its rank among those of all indexes and its printed text."""

    part: _Part
    context: Context
    rows: list[tuple[Passage, str]]


class Indexes:
    """Open indexes that answer a query together.

    Args:
        indexes: Open indexes by name. Results name the index that each passage is from. A single index
            answers alone, and its name may be None.

    Examples:
        >>> both = Indexes({"notes": index, "work": index})
        >>> context = both.retrieve("Who sailed the Fram?", mode="bm25", top=1)
        >>> context.passages[0].document, context.passages[0].index
        ('fram', 'notes')
    """

    def __init__(self, indexes: Mapping[str | None, Index] | Mapping[str, Index]) -> None:
        if not indexes:
            raise ConfigError("there are no indexes to search", hint="give at least one index")
        self._indexes: dict[str, Index] = {str(name): index for name, index in indexes.items()}

    @property
    def _only(self) -> Index | None:
        return next(iter(self._indexes.values())) if len(self._indexes) == 1 else None

    @enough_memory()
    def retrieve(self, query: str | Query, **fields: Unpack[QueryFields]) -> Context:
        """Return the context of a query. For a single index it equals the index's context.

        Indexes that do not answer within the deadline are left out and named in the warnings.

        Raises:
            ModeUnavailable: An index lacks a part that the mode needs, or the mode prints tables.
            DeadlineExceeded: No index answered in time.
            KetragError: The errors of `Index.retrieve`.

        Examples:
            >>> Indexes({"notes": index}).retrieve("Who sailed the Fram?", top=1).passages[0].document
            'fram'
        """
        if self._only is not None:
            return self._only.retrieve(query, **fields)
        query = as_query(query, fields)
        found, missing = self._run(query, lambda index, query: _Part("", querying.plan(index._state, query)))
        return _merged_context(found, missing)

    @enough_memory()
    def search(
        self,
        query: str | Query,
        n: int = 10,
        *,
        glob: Globs = None,
        grep: str | None = None,
        **fields: Unpack[QueryFields],
    ) -> Hits:
        """Return the best `n` passages with their files and snippets. Raises the errors of `Index.search`.

        Examples:
            >>> hit = Indexes({"notes": index, "work": index}).search("Who sailed the Maud?", n=1)[0]
            >>> hit.document, hit.index
            ('maud', 'notes')
        """
        if self._only is not None:
            return self._only.search(query, n, glob=glob, grep=grep, **fields)
        count = check_top(n)
        query = as_query(query, fields)

        def part(index: Index, query: Query) -> _Part:
            plan, hits = querying.search_plan(index._state, query, count, glob, grep)
            return _Part("", plan, hits)

        found, missing = self._run(query, part)
        return _merged_hits(found, count, missing)

    @enough_memory()
    def ask(self, query: str | Query, **options: Any) -> Answer:
        """Answer a query from the context over all indexes, with the model of the first one.

        `options` are those of `Index.ask`. Raises the errors of `retrieve` and `Index.ask`.

        Examples:
            >>> both = Indexes({"notes": index, "work": index})
            >>> answer = both.ask("Who sailed the Fram?", top=1)
            >>> answer.context.passages[0].index
            'notes'
        """
        from ketrag_fast.query.answering import AnswerOptions, answer_query

        if self._only is not None:
            return self._only.ask(query, **options)
        own = {name: options.pop(name) for name in AnswerOptions.__annotations__ if name in options}
        fields: QueryFields = options  # type: ignore[assignment] # `as_query` checks the names
        query = as_query(query, fields)
        first = next(iter(self._indexes.values()))
        return answer_query(first._opened, first.path, query, AnswerOptions(**own), self.retrieve(query))

    def _run(self, query: Query, plan: Callable[[Index, Query], _Part]) -> tuple[list[_Found], list[str]]:
        """Return the passages of each index, ranked over all, and the names of the indexes that are late."""
        first = next(iter(self._indexes.values()))
        settings = first._opened.settings
        clock = Clock(settings.deadline if query.deadline is None else query.deadline, 1)
        threads = min(len(self._indexes), first._opened.threads)
        late: dict[str, KetragError] = {}

        def planned(name: str) -> _Part | KetragError:
            try:
                return replace(plan(self._indexes[name], replace(query, deadline=clock.left())), name=name)
            except DeadlineExceeded as error:
                return error

        names = list(self._indexes)
        parts = []
        for name, result in zip(names, map_threads(planned, names, threads), strict=True):
            if isinstance(result, KetragError):
                late[name] = result
            else:
                parts.append(result)
        if not parts:
            raise next(iter(late.values()))
        parts = _same_mode(
            parts, lambda part, mode: plan(self._indexes[part.name], replace(query, mode=mode))
        )
        channels = [channel.name for channel in parts[0].plan.mode.channels]
        if len(channels) == 1 and channels[0] in _KEYWORDS and all(map(_is_plain, parts)):
            together = Together([LocalShard(one.name, one.plan) for one in parts], clock, threads, late)
            found = _ranked(parts, query, together, walks=channels[0] == _WALKS)
            if found is not None:
                return found, list(late)
        return _each_alone(parts, query, threads, late), list(late)


def _is_plain(part: _Part) -> bool:
    """Return whether the passages of an index are in the order of the mode, by keywords alone."""
    plan = part.plan
    typed = plan.typed
    reorders = plan.opened.reranker is not None or plan.newest is not None
    reorders = reorders or (typed is not None and typed.is_listed)
    return not (reorders or plan.has_terms or plan.explain)


def _same_mode(parts: list[_Part], plan: Callable[[_Part, str], _Part]) -> list[_Part]:
    """Return the plans with the mode that `auto` chooses for all indexes, if it chooses different ones.

    Raises ModeUnavailable if an index lacks a part that this mode needs.
    """
    modes = list(dict.fromkeys(part.plan.mode.name for part in parts))
    if len(modes) == 1:
        return parts
    usable = [{name for name, lack in part.plan.opened.missing.items() if lack is None} for part in parts]
    common = [mode for mode in (*modes, *_KEYWORDS[::-1]) if all(mode in one for one in usable)]
    if not common:
        raise ModeUnavailable(
            f"the indexes have no mode in common: {', '.join(part.name for part in parts)}",
            hint="choose one index, or add a mode: `ketrag index -i DIR --modes walk`",
        )
    return [replace(plan(part, common[0]), name=part.name) for part in parts]


def _ranked(parts: Sequence[_Part], query: Query, together: Together, *, walks: bool) -> list[_Found] | None:
    """Return the passages of each index that are among the best of all; None if keywords cannot rank."""
    plan = parts[0].plan
    reading = _read([part.plan for part in parts], query.text)
    room = plan.budgets[0] // _USUAL_TOKENS if plan.top is None else plan.top
    count = max(1, min(_SPARE * (room + 1), _MOST))
    phrases = {
        part.name: part.plan.typed.preferred
        for part in parts
        if part.plan.typed is not None and part.plan.typed.preferred is not None
    }
    preferred = Preferred(phrases, DEPTH if plan.top is None else min(DEPTH, plan.top))
    ranked = rank_shards(together, plan.request(), reading.text, count, walks=walks, preferred=preferred)
    if ranked is None:
        return None

    def printed(part: _Part) -> _Found | KetragError:
        try:
            return _printed(part, query.text, reading, ranked)
        except DeadlineExceeded as error:
            return error

    left = [part for part in parts if part.name not in ranked.late]
    return _in_time(left, map_threads(printed, left, together.threads), together.late)


def _printed(part: _Part, question: str, reading: Reading, ranked: Ranked) -> _Found:
    """Return the passages of an index with their ranks among those of all indexes."""
    import numpy as np

    plan, name = part.plan, part.name
    units = np.array(ranked.units.get(name, []), np.uint32)
    scores = np.array(ranked.scores.get(name, []), np.float64)
    prepared = Prepared([reading.text])
    reply = print_rankings(plan, prepared, [(units, scores)], None, min_score=0.0)[0]
    context = build_contexts(plan, question, reply, None, prepared)[0]
    blocks = _blocks(context)
    rows = []
    for passage, block in zip(context.passages, blocks, strict=True):
        own = [(name, unit) for unit in passage.units or (passage.unit,)]
        rank, key = min((ranked.ranks[key], key) for key in own if key in ranked.ranks)
        relevance = ranked.relevance[key]
        if relevance >= plan.min_score:
            row = replace(
                passage, rank=rank, relevance=relevance, index=name, channel=plan.mode.channels[0].name
            )
            rows.append((row, block))
    nothing_fits = ranked.nothing_fits and bool(rows)
    reason = context.reason
    if context.passages and not rows:
        reason = "below_min_score"
    context = replace(context, nothing_fits=nothing_fits, reason=reason)
    return _Found(part, add_reading(plan, reading, context), rows)


def _read(plans: Sequence[QueryPlan], question: str) -> Reading:
    """Return how the question is read: similar words replace those that no index has."""
    readings = [read_question(plan, question) for plan in plans]
    unknown = set.intersection(*({*one.unknown} for one in readings))
    found = next((one for one in readings if one.replaced and set(one.replaced) <= unknown), None)
    if found is not None:
        return replace(found, unknown=tuple(word for word in found.unknown if word in unknown))
    text = core_text(plans[0].ranked_text(question))
    return Reading(text, unknown=tuple(word for word in readings[0].unknown if word in unknown))


def _each_alone(
    parts: Sequence[_Part], query: Query, threads: int, late: dict[str, KetragError]
) -> list[_Found]:
    """Return the passages of each index, ranked alone, with ranks by relevance among those of all indexes."""

    def alone(part: _Part) -> _Found | KetragError:
        try:
            context = run_plan(part.plan, [query.text], quoted=part.hits is None)[0][0]
        except DeadlineExceeded as error:
            return error
        if len(context.sections) > 1 or (context.passages and not context.text.startswith("[1]")):
            raise ModeUnavailable(
                f"mode {context.mode} prints more than a list of passages, which cannot be merged",
                hint="choose one index, another --mode, or `ketrag merge` them into one",
            )
        own = (replace(passage, index=part.name) for passage in context.passages)
        return _Found(part, context, list(zip(own, _blocks(context), strict=True)))

    found = _in_time(parts, map_threads(alone, parts, threads), late)
    # Sorting is stable: ties keep the order of the indexes and of their ranks.
    order = sorted(
        ((at, row) for at, one in enumerate(found) for row in range(len(one.rows))),
        key=lambda place: -found[place[0]].rows[place[1]][0].relevance,
    )
    for rank, (at, row) in enumerate(order):
        passage, block = found[at].rows[row]
        found[at].rows[row] = (replace(passage, rank=rank), block)
    return found


def _in_time(
    parts: Sequence[_Part], results: Sequence[_Found | KetragError], late: dict[str, KetragError]
) -> list[_Found]:
    """Return the results that are not errors, and record the others. Raises an error if all are errors."""
    found = []
    for part, result in zip(parts, results, strict=True):
        if isinstance(result, KetragError):
            late[part.name] = result
        else:
            found.append(result)
    if not found:
        raise next(iter(late.values()))
    return found


def _merged(found: Sequence[_Found], missing: Sequence[str]) -> dict[str, Any]:
    """Return the fields that contexts and hits of several indexes have in common."""
    contexts = [one.context for one in found]
    warnings = dict.fromkeys(warning for one in contexts for warning in one.warnings)
    nothing_fits = any(one.rows for one in found) and all(
        one.context.nothing_fits for one in found if one.rows
    )
    warnings.pop(NOTHING_FITS, None)  # the other indexes may have what fits
    late = (f"without {', '.join(missing)}: no answer in time",) if missing else ()
    return {
        "warnings": (*late, *warnings, *((NOTHING_FITS,) if nothing_fits else ())),
        "nothing_fits": nothing_fits,
        "missing": tuple(missing),
        **merged_reading(contexts),
    }


def _merged_context(found: Sequence[_Found], missing: Sequence[str]) -> Context:
    """Return one context with the passages of several indexes by rank, within one budget."""
    rows = sorted((row for one in found for row in one.rows), key=lambda row: row[0].rank)
    first = next((one for one in found if one.rows), found[0])
    rows = rows[: first.part.plan.top]
    count = 0
    while count < len(rows) and sum(one.tokens for one, _ in rows[: count + 1]) <= first.context.budget:
        count += 1
    passages = [replace(passage, rank=rank) for rank, (passage, _) in enumerate(rows[:count], 1)]
    tokens = sum(passage.tokens for passage in passages)
    text = "\n".join(f"[{rank}]{block}\n" for rank, (_, block) in enumerate(rows[:count], 1))
    return replace(
        first.context,
        tokens=tokens,
        text=text,
        passages=passages,
        sections=tuple(replace(one, tokens=tokens, text=text) for one in first.context.sections),
        **_merged(found, missing),
    )


def _merged_hits(found: Sequence[_Found], count: int, missing: Sequence[str]) -> Hits:
    """Return the hits of several indexes in the order of their ranks."""
    ranked: list[tuple[int, Hit]] = []
    first: Hits | None = None
    for one in found:
        if one.part.hits is None:
            continue
        passages = tuple(passage for passage, _ in one.rows)
        hits = one.part.hits(replace(one.context, passages=passages)).of_index(one.part.name)
        ranked += ((passage.rank, hit) for passage, hit in zip(passages, hits, strict=False))
        first = hits if first is None or (hits and not first) else first
    best = sorted(ranked, key=lambda row: row[0])[:count]
    shown = tuple(replace(hit, rank=rank) for rank, (_, hit) in enumerate(best, 1))
    query, mode, reason = (first.query, first.mode, first.reason) if first is not None else ("", "", None)
    return Hits(query, mode, shown, None if shown else reason, **_merged(found, missing))


def _blocks(context: Context) -> list[str]:
    """Return the title and text of each passage in a context, without its number."""
    starts, position = [], 0
    for passage in context.passages:
        position = context.text.index(f"[{passage.rank}]", position)
        starts.append(position)
        position = context.text.index(passage.said, position) + len(passage.said)
    ends = [*starts, len(context.text)][1:]
    return [
        context.text[start + len(f"[{passage.rank}]") : end].rstrip("\n")
        for passage, start, end in zip(context.passages, starts, ends, strict=True)
    ]
