"""`Indexes`: one query over several indexes, with the ranking that one index of all documents would have.

Modes of keywords (`bm25`, `walk`) are ranked over all indexes together (`query/shards.py`). Other modes of
passages, and queries that reorder passages (a reranker, `newest`) or list them in the order of the index, are
ranked in each index, and their passages are merged by relevance, which has the same scale in all indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Unpack, overload

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.base.memory import enough_memory, map_threads
from ketrag_fast.errors import (
    BackendError,
    ConfigError,
    DeadlineExceeded,
    InputError,
    InternalError,
    KetragError,
    ModeUnavailable,
    UnknownName,
)
from ketrag_fast.index.index import Index
from ketrag_fast.index.parts import LocalPart, Part, Printed, Search, is_list, local_part
from ketrag_fast.query.query import Clock, Query, QueryFields, as_query, check_top
from ketrag_fast.query.ranking import DEPTH, PRINTED, Prepared, request_to_print
from ketrag_fast.query.reading import Reading, add_reading
from ketrag_fast.query.retrieval import build_contexts
from ketrag_fast.query.shards import (
    CALL_SHARE,
    Ranked,
    ShardChanged,
    Together,
    is_final,
    rank_shards,
)
from ketrag_fast.records import dataclass, replace
from ketrag_fast.types import Context, Hit, Hits, Lazy, Passage
from ketrag_fast.types.contexts import NOTHING_FITS, merged_reading

if TYPE_CHECKING:
    from ketrag_fast.index.remote import RemoteIndex
    from ketrag_fast.query.answering import AnswerOptions
    from ketrag_fast.query.search import Globs
    from ketrag_fast.types import Answer, Excerpt, Listed, Match, Themes

_WALKS: Final = "walk"
_KEYWORDS: Final = ("bm25", _WALKS)
"""Channels of the core that rank by keywords, whose rarity is counted over all indexes."""
_USUAL_TOKENS: Final = 40
"""Usual number of tokens of a passage, to estimate how many passages fit into a budget."""
_SPARE: Final = 2
"""Passages to rank for each passage to print, because copies are left out and neighbours are merged."""
_MOST: Final = 1000
_LATE: Final = (DeadlineExceeded, BackendError)
"""Errors of one index that leave it out. The others answer."""


@dataclass(frozen=True)
class _Row:
    """A passage of one index with its rank among those of all indexes."""

    rank: int
    passage: Passage
    block: str
    """Its printed text."""
    changes: dict[str, Any]
    """Fields in which the passage of the result differs."""

    def ranked(self, rank: int) -> Passage:
        """Return the passage of the result."""
        return replace(self.passage, rank=rank, **self.changes)


@dataclass(frozen=True)
class _Found:
    """The passages of one index."""

    part: Part
    printed: Printed
    rows: list[_Row]

    @property
    def context(self) -> Context:
        return self.printed.context


class Indexes:
    """Open indexes that answer a query together.

    Args:
        indexes: Open indexes by name, or addresses of services (`ketrag serve`): `http://host:port`, with
            `#NAME` for another index than the first one of the service. Results name the index that each
            passage is from. A single index answers alone, and its name may be None.
        settings: Settings of queries to services, for fields that a query leaves open. The token of a service
            is that in the environment variable KETRAG_TOKEN.
        copies: Whether the first query copies small indexes of services that permit it (`ketrag serve
            --allow-copies`), which then answer without the service. It does not pay for a single query.

    Raises:
        ConfigError: There are no indexes, or an address is invalid.
        NetworkForbidden: The setting `offline` forbids a service on another machine.

    Examples:
        >>> both = Indexes({"notes": index, "work": index})
        >>> context = both.retrieve("Who sailed the Fram?", mode="bm25", top=1)
        >>> context.passages[0].document, context.passages[0].index
        ('fram', 'notes')
    """

    def __init__(
        self,
        indexes: Mapping[str | None, Index | str] | Mapping[str, Index | str] | Mapping[str, Index],
        *,
        settings: Settings | None = None,
        copies: bool = True,
    ) -> None:
        if not indexes:
            raise ConfigError("there are no indexes to search", hint="give at least one index")
        self._indexes: dict[str, Index | RemoteIndex] = {}
        for name, index in indexes.items():
            self._indexes[str(name)] = (
                index if isinstance(index, Index) else _remote(name, index, settings, copies=copies)
            )
        self._settings = settings

    @property
    def _only(self) -> Index | None:
        index = next(iter(self._indexes.values()))
        return index if len(self._indexes) == 1 and isinstance(index, Index) else None

    @property
    def _service(self) -> RemoteIndex | None:
        index = next(iter(self._indexes.values()))
        return None if len(self._indexes) > 1 or isinstance(index, Index) else index

    @property
    def _first(self) -> Index | None:
        """The first index of this process."""
        return next((index for index in self._indexes.values() if isinstance(index, Index)), None)

    def close(self) -> None:
        """Close the connections to services. Open indexes stay open."""
        for index in self._indexes.values():
            if not isinstance(index, Index):
                index.close()

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
        if self._service is not None:
            return self._print_alone(self._service, query, None).context
        found, late = self._run(query, None)
        return _merged_context(found, late) if isinstance(found, list) else found

    @enough_memory()
    def search(
        self,
        query: str | Query = "",
        n: int = 10,
        *,
        glob: Globs = None,
        grep: str | None = None,
        related: str | None = None,
        **fields: Unpack[QueryFields],
    ) -> Hits:
        """Return the best `n` passages with their files and snippets. Raises the errors of `Index.search`.

        Passages that are `related` to a place come from the first index that has it.

        Examples:
            >>> hit = Indexes({"notes": index, "work": index}).search("Who sailed the Maud?", n=1)[0]
            >>> hit.document, hit.index
            ('maud', 'notes')
        """
        if self._only is not None:
            return self._only.search(query, n, glob=glob, grep=grep, related=related, **fields)
        if related is not None:
            return self._related(query, n, {"glob": glob, "grep": grep, "related": related, **fields})
        search = Search(check_top(n), glob, grep)
        query = as_query(query, fields)
        if self._service is not None:
            return self._print_alone(self._service, query, search).as_hits()
        found, late = self._run(query, search)
        if isinstance(found, Context):
            raise InternalError("a search over several indexes returned a context")
        return _merged_hits(found, search.count, late)

    def _related(self, query: str | Query, n: int, how: Mapping[str, Any]) -> Hits:
        """Return what the first index that has a place, or any passage with a name, finds for it."""
        errors: list[UnknownName] = []
        empty: list[Hits] = []
        local = {name: index for name, index in self._indexes.items() if isinstance(index, Index)}
        if not local:
            raise ConfigError(
                "related needs an index of this machine", hint="name its folder, or query the service itself"
            )
        for name, index in local.items():
            try:
                hits = index.search(query, n, **how)
            except UnknownName as error:
                errors.append(error)
                continue
            if hits:
                return hits.of_index(name)
            empty.append(hits)
        if empty:
            return empty[0]
        raise next((error for error in errors if (error.hint or "").startswith("did you mean")), errors[0])

    @overload
    def retrieve_many(
        self, queries: Sequence[str | Query], **fields: Unpack[QueryFields]
    ) -> list[Context]: ...

    @overload
    def retrieve_many(
        self, queries: Sequence[str | Query], *, budgets: Sequence[int], **fields: Unpack[QueryFields]
    ) -> list[list[Context]]: ...

    def retrieve_many(
        self,
        queries: Sequence[str | Query],
        *,
        budgets: Sequence[int] | None = None,
        **fields: Unpack[QueryFields],
    ) -> list[Context] | list[list[Context]]:
        """Return the contexts of many queries, as `Index.retrieve_many`, one query after the other.

        With `budgets`, each query gets a list with a context per budget. `ketrag_fast.eval.collect` takes
        several indexes, too, because they have this method.

        Examples:
            >>> both = Indexes({"notes": index, "work": index})
            >>> rows = both.retrieve_many(["Fram"], budgets=[0, 200], top=1)
            >>> [[len(context.passages) for context in row] for row in rows]
            [[0, 1]]
        """
        if budgets is None:
            return [self.retrieve(query, **fields) for query in queries]
        if "budget" in fields:
            raise InputError("budget cannot be combined with budgets", hint="leave out budget")
        each: list[QueryFields] = [{**fields, "budget": budget} for budget in budgets]
        return [[self.retrieve(query, **own) for own in each] for query in queries]

    def grep(
        self,
        pattern: str,
        *,
        limit: int | None = None,
        deadline: float | None = None,
        **how: Any,
    ) -> list[Match]:
        """Return the lines of all indexes that match a pattern, in the order of the indexes.

        Arguments are those of `Index.grep`; `limit` and `deadline` hold for all indexes together. Raises
        ConfigError for an index behind a service, and the errors of `Index.grep`.

        Examples:
            >>> both = Indexes({"notes": index, "work": index})
            >>> [(match.document, match.index) for match in both.grep("Maud", limit=1)]
            [('maud', 'notes')]
        """
        clock = Clock(deadline, 1)
        found: list[Match] = []
        for name, index in self._open("grep").items():
            left = None if limit is None else limit - len(found)
            if left == 0 and found:
                break
            own = index.grep(pattern, limit=left, deadline=clock.left(), **how)
            found += [replace(match, index=name) for match in own]
        return found

    def text(self, path: str, lines: int | Sequence[int] | None = None, **how: Any) -> Excerpt:
        """Return the indexed text of a file from the first index that has it.

        Arguments are those of `Index.text`. Raises ConfigError for an index behind a service, UnknownName if
        no index has the file, or the caller may not see it.

        Examples:
            >>> Indexes({"notes": index, "work": index}).text("maud", lines=(1, 1)).index
            'notes'
        """
        errors: list[UnknownName] = []
        for name, index in self._open("text").items():
            try:
                return replace(index.text(path, lines, **how), index=name)
            except UnknownName as error:
                errors.append(error)
        raise errors[0]

    def documents(self, **how: Any) -> dict[str, list[Listed]]:
        """Return the documents of each index. Arguments are those of `index.inspect.documents`.

        Raises ConfigError for an index behind a service.

        Examples:
            >>> found = Indexes({"notes": index, "work": index}).documents(count=1)
            >>> {name: [one.document for one in own] for name, own in found.items()}
            {'notes': ['fram'], 'work': ['fram']}
        """
        return {name: index.inspect.documents(**how) for name, index in self._open("documents").items()}

    def themes(self, **how: Any) -> dict[str, Themes]:
        """Return the themes of each index. Arguments are those of `Index.themes`.

        Themes are those of one index: documents of different indexes are never in one theme. Raises
        ConfigError for an index behind a service.
        """
        return {name: index.themes(**how) for name, index in self._open("themes").items()}

    def _open(self, what: str) -> dict[str, Index]:
        """Return the open indexes. Raises ConfigError if one is behind a service."""
        for name, index in self._indexes.items():
            if not isinstance(index, Index):
                raise ConfigError(
                    f"{what} reads open indexes, and {name} is a service",
                    hint="ask the service itself (docs/reference/http-api.md)",
                )
        return {name: index for name, index in self._indexes.items() if isinstance(index, Index)}

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
        first = self._first
        if first is None:
            return self._quote(query, AnswerOptions(**own))
        return answer_query(first._opened, first.path, query, AnswerOptions(**own), self.retrieve)

    def _quote(self, query: Query, options: AnswerOptions) -> Answer:
        """Return the best sentences of services, which have no model of this process."""
        from ketrag_fast.query.answering import quote_context

        settings = self._settings or Settings()
        llm = settings.answer_llm if options.llm is None else options.llm
        if llm not in (None, "none"):
            raise ConfigError(
                "a model answers over services only together with an index of this machine",
                hint="name an index first (-i DIR,http://HOST:PORT), or leave the model out to quote",
            )
        return quote_context(self.retrieve(query), options)

    def _print_alone(self, service: RemoteIndex, query: Query, search: Search | None) -> Printed:
        """Return the passages of the only index, which is behind a service."""
        seconds = (self._settings or Settings()).deadline if query.deadline is None else query.deadline
        return service.print_alone(service.address, query, search, seconds)

    def _run(
        self, query: Query, search: Search | None
    ) -> tuple[list[_Found] | Context, dict[str, KetragError]]:
        """Return the passages of each index, ranked over all, and the indexes left out with the reasons.

        Passages of open indexes alone are returned as one context, except for a search.

        If an index behind a service changes meanwhile, the query runs once more.
        """
        first = self._first
        settings = (self._settings or Settings()) if first is None else first._opened.settings
        clock = Clock(settings.deadline if query.deadline is None else query.deadline, 1)
        remote = sum(not isinstance(index, Index) for index in self._indexes.values())
        threads = settings.threads if first is None else first._opened.threads
        threads = min(len(self._indexes), max(threads, 1) + remote)  # a service computes elsewhere
        try:
            return self._run_once(query, search, clock, threads, may_repeat=True)
        except ShardChanged:
            return self._run_once(query, search, clock, threads, may_repeat=False)

    def _run_once(
        self, query: Query, search: Search | None, clock: Clock, threads: int, *, may_repeat: bool
    ) -> tuple[list[_Found] | Context, dict[str, KetragError]]:
        late: dict[str, KetragError] = {}

        def plan(name: str, mode: str | None) -> Part:
            index, left = self._indexes[name], clock.left()
            own = replace(query, mode=mode, deadline=left)
            if isinstance(index, Index):
                return local_part(index, name, own, search)
            return index.part(name, own, search, None if left is None else CALL_SHARE * left)

        def planned(name: str) -> Part | KetragError:
            try:
                return plan(name, query.mode)
            except _LATE as error:
                if is_final(error, may_repeat=may_repeat):
                    raise
                return error

        names = list(self._indexes)
        parts: list[Part] = []
        for name, result in zip(names, map_threads(planned, names, threads), strict=True):
            if isinstance(result, KetragError):
                late[name] = result
            else:
                parts.append(result)
        if not parts:
            raise next(iter(late.values()))
        parts = _same_mode(parts, plan)
        together = Together([part.shard for part in parts], clock, threads, late, may_repeat)
        channels = parts[0].channels
        if len(channels) == 1 and channels[0] in _KEYWORDS and all(part.is_plain for part in parts):
            found = _ranked(parts, query, together, walks=channels[0] == _WALKS)
            if found is not None:
                return found, late
        return _each_alone([part for part in parts if part.name not in late], together), late


def _remote(name: str | None, address: str, settings: Settings | None, *, copies: bool) -> RemoteIndex:
    from ketrag_fast.index.remote import RemoteIndex

    if not isinstance(address, str) or not address.startswith(("http://", "https://")):
        raise ConfigError(
            f"the index {name} is neither an open index nor an address: {str(address)[:200]!r}",
            hint="open it with Index.open(FOLDER), or give http://HOST:PORT of `ketrag serve`",
        )
    return RemoteIndex(address, settings, copies=copies)


def _same_mode(parts: list[Part], plan: Callable[[str, str], Part]) -> list[Part]:
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


def _ranked(
    parts: Sequence[Part], query: Query, together: Together, *, walks: bool
) -> list[_Found] | Context | None:
    """Return the passages of each index that are among the best of all; None if keywords cannot rank.

    Passages of open indexes alone are returned as one context, except for a search.
    """
    first = parts[0]
    reading = _read(parts)
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

    def printed(part: Part) -> _Found:
        units, scores = ranked.units.get(part.name, []), ranked.scores.get(part.name, [])
        return _printed(part, part.print_units(reading, units, scores), ranked)

    return _in_time([part for part in parts if part.name not in ranked.late], printed, together)


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
        **_merged_fields(contexts, {}, nothing_fits=ranked.nothing_fits and chosen is not None),
    )


def _printed(part: Part, printed: Printed, ranked: Ranked) -> _Found:
    """Return the passages of an index with their ranks among those of all indexes."""
    name, channel, context = part.name, part.channels[0], printed.context
    rows = []
    for passage, block in zip(context.passages, printed.blocks, strict=True):
        own = [(name, unit) for unit in passage.units or (passage.unit,)]
        rank, key = min((ranked.ranks[key], key) for key in own if key in ranked.ranks)
        relevance = ranked.relevance[key]
        if relevance >= part.min_score:
            changes = {"relevance": relevance, "index": name, "channel": channel}
            rows.append(_Row(rank, passage, block, changes))
    nothing_fits = ranked.nothing_fits and bool(rows)
    reason = context.reason
    if context.passages and not rows:
        reason = "below_min_score"
    return _Found(
        part, replace(printed, context=replace(context, nothing_fits=nothing_fits, reason=reason)), rows
    )


def _read(parts: Sequence[Part]) -> Reading:
    """Return how the question is read: similar words replace those that no index has."""
    readings: list[Reading] = []
    unknown: set[str] = set()
    for part in parts:  # most questions have no word that the first two indexes lack
        readings.append(part.reading)
        unknown = unknown & {*part.reading.unknown} if len(readings) > 1 else {*part.reading.unknown}
        if not unknown:
            return Reading(parts[0].plain_text)
    found = next((one for one in readings if one.replaced and set(one.replaced) <= unknown), None)
    if found is not None:
        return replace(found, unknown=tuple(word for word in found.unknown if word in unknown))
    words = tuple(word for word in readings[0].unknown if word in unknown)
    return Reading(parts[0].plain_text, unknown=words)


def _each_alone(parts: Sequence[Part], together: Together) -> list[_Found]:
    """Return the passages of each index, ranked alone, with ranks by relevance among those of all indexes."""

    def alone(part: Part) -> _Found:
        printed = part.print_alone()
        context = printed.context
        if not is_list(context):
            raise ModeUnavailable(
                f"mode {context.mode} prints more than a list of passages, which cannot be merged",
                hint="choose one index, another --mode, or `ketrag merge` them into one",
            )
        pairs = zip(context.passages, printed.blocks, strict=True)
        own = [_Row(passage.rank, passage, block, {"index": part.name}) for passage, block in pairs]
        return _Found(part, printed, own)

    found = _in_time(parts, alone, together)
    # Sorting is stable: ties keep the order of the indexes and of their ranks.
    order = sorted(
        ((at, row) for at, one in enumerate(found) for row in range(len(one.rows))),
        key=lambda place: -found[place[0]].rows[place[1]].passage.relevance,
    )
    for rank, (at, row) in enumerate(order):
        found[at].rows[row] = replace(found[at].rows[row], rank=rank)
    return found


def _in_time(parts: Sequence[Part], work: Callable[[Part], _Found], together: Together) -> list[_Found]:
    """Return the result of each index, and record those that are late. Raises an error if all are late."""

    def one(part: Part) -> _Found | KetragError:
        try:
            return work(part)
        except _LATE as error:
            if is_final(error, may_repeat=together.may_repeat):
                raise
            return error

    found = []
    for part, result in zip(parts, map_threads(one, parts, together.threads), strict=True):
        if isinstance(result, KetragError):
            together.late[part.name] = result
        else:
            found.append(result)
    if not found:
        raise next(iter(together.late.values()))
    return found


def _merged(found: Sequence[_Found], late: Mapping[str, KetragError]) -> dict[str, Any]:
    """Return the fields that contexts and hits of several indexes have in common."""
    nothing_fits = any(one.rows for one in found) and all(
        one.context.nothing_fits for one in found if one.rows
    )
    return _merged_fields([one.context for one in found], late, nothing_fits=nothing_fits)


def _merged_fields(
    contexts: Sequence[Context], late: Mapping[str, KetragError], *, nothing_fits: bool
) -> dict[str, Any]:
    """Return the fields of the contexts of several indexes that are not those of one of them."""
    warnings = dict.fromkeys(warning for one in contexts for warning in one.warnings)
    warnings.pop(NOTHING_FITS, None)  # the other indexes may have what fits
    slow = ", ".join(name for name, error in late.items() if isinstance(error, DeadlineExceeded))
    without = [f"without {slow}: no answer in time"] if slow else []
    for name, error in late.items():
        if not isinstance(error, DeadlineExceeded):
            without.append(f"without {name}: {error.message}")
    return {
        "warnings": (*without, *warnings, *((NOTHING_FITS,) if nothing_fits else ())),
        "nothing_fits": nothing_fits,
        "missing": tuple(late),
        **merged_reading(contexts),
    }


def _merged_context(found: Sequence[_Found], late: Mapping[str, KetragError]) -> Context:
    """Return one context with the passages of several indexes by rank, within one budget."""
    rows = sorted((row for one in found for row in one.rows), key=lambda row: row.rank)
    first = next((one for one in found if one.rows), found[0])
    rows = rows[: first.part.top]
    count = 0
    while count < len(rows) and sum(row.passage.tokens for row in rows[: count + 1]) <= first.context.budget:
        count += 1
    passages = [row.ranked(rank) for rank, row in enumerate(rows[:count], 1)]
    tokens = sum(passage.tokens for passage in passages)
    text = "\n".join(f"[{rank}]{row.block}\n" for rank, row in enumerate(rows[:count], 1))
    return replace(
        first.context,
        tokens=tokens,
        text=text,
        passages=passages,
        sections=tuple(replace(one, tokens=tokens, text=text) for one in first.context.sections),
        **_merged(found, late),
    )


def _merged_hits(found: Sequence[_Found], count: int, late: Mapping[str, KetragError]) -> Hits:
    """Return the hits of several indexes in the order of their ranks."""
    ranked: list[tuple[int, Hit]] = []
    first: Hits | None = None
    for one in found:
        if one.printed.hits is None:
            continue
        passages = tuple(row.ranked(row.rank) for row in one.rows)
        hits = one.printed.hits(replace(one.context, passages=passages)).of_index(one.part.name)
        ranked += ((passage.rank, hit) for passage, hit in zip(passages, hits, strict=False))
        first = hits if first is None or (hits and not first) else first
    best = sorted(ranked, key=lambda row: row[0])[:count]
    shown = tuple(replace(hit, rank=rank) for rank, (_, hit) in enumerate(best, 1))
    query, mode, reason = (first.query, first.mode, first.reason) if first is not None else ("", "", None)
    return Hits(query, mode, shown, None if shown else reason, **_merged(found, late))
