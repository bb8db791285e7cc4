"""`Indexes`: one query over several indexes, with the ranking that one index of all documents would have.

Modes of keywords (`bm25`, `walk`) are ranked over all indexes together (`query/shards.py`). Other modes of
passages, and queries that reorder passages (a reranker, `newest`) or list them in the order of the index, are
ranked in each index, and their passages are merged by relevance, which has the same scale in all indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack, overload

from ketrag_fast.base.config import Settings
from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import ConfigError, InputError, InternalError, KetragError, UnknownName
from ketrag_fast.index.index import Index
from ketrag_fast.index.merged_results import Found, merged_context, merged_hits
from ketrag_fast.index.part_ranking import rank_parts, with_same_mode
from ketrag_fast.index.parts import Part, Printed, Search, local_part
from ketrag_fast.query.query import Clock, Query, QueryFields, as_query, check_top
from ketrag_fast.query.shards import CALL_SHARE, Pending, ShardChanged, Together, now, run_all
from ketrag_fast.records import replace
from ketrag_fast.types import Context, Hits

if TYPE_CHECKING:
    from ketrag_fast.index.remote import RemoteIndex
    from ketrag_fast.query.answering import AnswerOptions
    from ketrag_fast.query.search import Globs
    from ketrag_fast.types import Answer, Excerpt, Listed, Match, Themes


_SAME: Final = 0.001
"""Difference in seconds up to which indexes share a query with its deadline: a copy of the query for each
of them takes as long as a plan: 0.05 ms, unless a filter is new."""


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
        return merged_context(found, late) if isinstance(found, list) else found

    @enough_memory()
    def search(
        self,
        query: str | Query = "",
        limit: int = 10,
        *,
        glob: Globs = None,
        grep: str | None = None,
        related: str | None = None,
        **fields: Unpack[QueryFields],
    ) -> Hits:
        """Return the best passages with their files and snippets. Raises the errors of `Index.search`.

        Passages that are `related` to a place come from the first index that has it.

        Examples:
            >>> hit = Indexes({"notes": index, "work": index}).search("Who sailed the Maud?", limit=1)[0]
            >>> hit.document, hit.index
            ('maud', 'notes')
        """
        if self._only is not None:
            return self._only.search(query, limit, glob=glob, grep=grep, related=related, **fields)
        if related is not None:
            return self._related(query, limit, {"glob": glob, "grep": grep, "related": related, **fields})
        search = Search(check_top(limit), glob, grep)
        query = as_query(query, fields)
        if self._service is not None:
            return self._print_alone(self._service, query, search).as_hits()
        found, late = self._run(query, search)
        if isinstance(found, Context):
            raise InternalError("a search over several indexes returned a context")
        return merged_hits(found, search.count, late)

    def _related(self, query: str | Query, limit: int, how: Mapping[str, Any]) -> Hits:
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
                hits = index.search(query, limit, **how)
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
    ) -> tuple[list[Found] | Context, dict[str, KetragError]]:
        """Return the passages of each index, ranked over all, and the indexes left out with the reasons.

        Passages of open indexes alone are returned as one context, except for a search.

        If an index behind a service changes meanwhile, the query runs once more.
        """
        first = self._first
        settings = (self._settings or Settings()) if first is None else first._opened.settings
        clock = Clock(settings.deadline if query.deadline is None else query.deadline, 1)
        threads = max(settings.threads if first is None else first._opened.threads, 1)
        try:
            return self._run_once(query, search, clock, threads, may_repeat=True)
        except ShardChanged:
            return self._run_once(query, search, clock, threads, may_repeat=False)

    def _run_once(
        self, query: Query, search: Search | None, clock: Clock, threads: int, *, may_repeat: bool
    ) -> tuple[list[Found] | Context, dict[str, KetragError]]:
        late: dict[str, KetragError] = {}

        queries: dict[str | None, Query] = {}

        def plan(name: str, mode: str | None) -> Part | Pending[Part]:
            index, left = self._indexes[name], clock.left()
            own = queries.get(mode)
            if own is None or (left is not None and (own.deadline or 0.0) - left > _SAME):
                own = queries[mode] = replace(query, mode=mode, deadline=left)
            if isinstance(index, Index):
                return local_part(index, name, own, search)
            return index.part(name, own, search, None if left is None else CALL_SHARE * left)

        names = list(self._indexes)
        parts: list[Part] = []
        results = run_all(
            names,
            lambda name: plan(name, query.mode),
            lambda name: not isinstance(self._indexes[name], Index),
            threads,
            may_repeat=may_repeat,
        )
        for name, result in zip(names, results, strict=True):
            if isinstance(result, KetragError):
                late[name] = result
            else:
                parts.append(result)
        if not parts:
            raise next(iter(late.values()))
        parts = with_same_mode(parts, lambda name, mode: now(plan(name, mode)))
        together = Together([part.shard for part in parts], clock, threads, late, may_repeat)
        return rank_parts(parts, query, together), late


def _remote(name: str | None, address: str, settings: Settings | None, *, copies: bool) -> RemoteIndex:
    from ketrag_fast.index.remote import RemoteIndex

    if not isinstance(address, str) or not address.startswith(("http://", "https://")):
        raise ConfigError(
            f"the index {name} is neither an open index nor an address: {str(address)[:200]!r}",
            hint="open it with Index.open(FOLDER), or give http://HOST:PORT of `ketrag serve`",
        )
    return RemoteIndex(address, settings, copies=copies)
