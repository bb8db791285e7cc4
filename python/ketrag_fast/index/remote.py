"""An index behind a service (`ketrag serve`) as a part of a query over several indexes.

The address is named by the user, so requests to it are permitted network use; with the setting `offline`,
only to this machine. The token is that in KETRAG_TOKEN, which is sent unencrypted only to this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import (
    BackendError,
    ConfigError,
    DeadlineExceeded,
    EmptyQuery,
    InputError,
    KetragError,
    ModeUnavailable,
)
from ketrag_fast.index.parts import Part, Printed, Search, local_part
from ketrag_fast.index.shard_calls import BYTES, PROTOCOL
from ketrag_fast.index.shard_copies import ShardCopy
from ketrag_fast.index.shard_replies import (
    PlanReply,
    PrintedReply,
    bundle_reply,
    counts_reply,
    open_reply,
    plan_reply,
    printed_reply,
    read_reply,
    reading_reply,
    state_of,
)
from ketrag_fast.models.http.client import Client, RefusedError, encode_body
from ketrag_fast.models.http.connections import Connections
from ketrag_fast.models.http.endpoints import RetryPolicy, endpoint, token_for
from ketrag_fast.models.http.kept_connections import KeptConnections
from ketrag_fast.query.modes import build_request, find_recipe
from ketrag_fast.query.query import Clock, Query
from ketrag_fast.query.reading import Reading
from ketrag_fast.query.shards import Pending, ShardChanged, Words, WrongReply
from ketrag_fast.records import replace
from ketrag_fast.types import Context, Hits, Turn

if TYPE_CHECKING:
    from ketrag_fast.query.shards import Counts, Terms, Totals

_PATIENCE: Final = 30.0
"""Seconds of a call without a deadline."""
_LEAST: Final = 0.001
"""Minimum seconds of a call."""
_MOST_BYTES: Final = 256_000_000
"""Maximum size of a reply: the candidates of a search for the maximum number of passages."""
_FIELDS: Final = ("mode", "budget", "top", "min_score", "filter", "newest")
"""Fields of a query that settings decide if they are None."""
_REFUSED: Final[Mapping[str, type[KetragError]]] = {
    "config": ConfigError,
    "mode_unavailable": ModeUnavailable,
    "empty_query": EmptyQuery,
}
"""Errors by the code in the reply of a service; other codes are errors of the input."""
_ADDRESS: Final = (401, 403, 404, 405, 421)
"""Statuses of a service for a wrong token, index or host."""
T = TypeVar("T")


class RemoteIndex:
    """An index of a service: `http://host:port`, or `http://host:port#NAME` for another than its first.

    Raises ConfigError for an invalid address or token, NetworkForbidden if `offline` forbids the address.
    """

    def __init__(self, address: str, settings: Settings | None = None, *, copies: bool = True) -> None:
        self.address = address
        self._settings = settings or Settings()
        if self._settings.allow is not None:
            raise ConfigError(
                f"--allow cannot be given with the service {address}, which decides what its users may see",
                hint="use the token of a user of the service (docs/how-to/serving.md)",
            )
        url, _, name = address.partition("#")
        place = endpoint(url, offline=self._settings.offline)
        self._index = name or None
        self._key = token_for(place.host, place.scheme)
        self._base = place
        self._connections = Connections(place)
        self._kept = KeptConnections(place, self._key)
        self._last_settings: tuple[Mapping[str, Any], Settings] | None = None
        self.copy = ShardCopy(self._call_alone, self._settings.given) if copies else None

    def close(self) -> None:
        """Close the connections, and the copy of the index."""
        if self.copy is not None:
            self.copy.close()
        self._kept.close()
        self._connections.close()

    def part(
        self, name: str, query: Query, search: Search | None, seconds: float | None
    ) -> Part | Pending[Part]:
        """Return the index, or a copy of it that is up to date, with its plan of a query."""
        body = self._body(query, search)
        copy = self.copy if search is None else None  # hits show files of the service
        if copy is None or copy.is_unavailable:
            return self._plan(name, query, body, seconds)
        copied = copy.fresh()
        if copied is not None:
            return local_part(copied, name, query, None)

        def result() -> Part:
            began = time.monotonic()
            copied = copy.find(seconds)
            if copied is not None:
                return local_part(copied, name, query, None)
            left = None if seconds is None else max(_LEAST, seconds - (time.monotonic() - began))
            return self._plan(name, query, body, left).result()

        return Pending(result, is_sent=False)

    def _plan(self, name: str, query: Query, body: Mapping[str, Any], seconds: float | None) -> Pending[Part]:
        def read(data: Any) -> Part:
            return RemotePart(self, name, query, body, plan_reply(data))

        return self.begin(name, "plan", body, seconds, read)

    def settings_of(self, name: str, given: Mapping[str, Any]) -> Settings:
        """Return the settings of the service, which are checked again only if they have changed."""
        before = self._last_settings
        if before is not None and before[0] == given:
            return before[1]
        try:
            settings = Settings(**given)
        except (ConfigError, TypeError) as error:
            raise WrongReply(f"{name} has settings that this version does not know: {error}") from None
        self._last_settings = given, settings
        return settings

    def _call_alone(self, what: str, fields: Mapping[str, Any], seconds: float | None) -> Any:
        """Return the reply to a call that is not about a query."""
        return self.call(self.address, what, {**_present({"index": self._index}), **fields}, seconds)

    def print_alone(self, name: str, query: Query, search: Search | None, seconds: float | None) -> Printed:
        """Return the passages that the service ranks alone."""
        data = self.call(name, "passages", self._body(query, search), seconds)
        return _printed(query.text, read_reply(name, lambda: printed_reply(data, None)))

    def _body(self, query: Query, search: Search | None) -> dict[str, Any]:
        """Return the fields of a request that every call has."""
        if query.allow is not None:
            raise ConfigError(
                f"allow cannot be given with {self.address}: a service decides what its users may see",
                hint="use the token of a user of the service",
            )
        given = self._settings.given
        own = {name: getattr(query, name) for name in _FIELDS}
        own = {name: given.get(name) if value is None else value for name, value in own.items()}
        turns = [turn.to_json() for turn in query.history if isinstance(turn, Turn)]
        own |= {"index": self._index, "only": query.only, "hops": list(query.hops) or None}
        own |= {"literal": query.literal or None, "explain": query.explain or None, "history": turns or None}
        if search is not None:
            globs = [search.glob] if isinstance(search.glob, str) else search.glob
            pattern = {"glob": None if globs is None else list(globs), "grep": search.grep}
            own["search"] = {"limit": search.count, **_present(pattern)}
        return {"question": query.text, **_present(own)}

    def begin(
        self,
        name: str,
        what: str,
        body: Mapping[str, Any],
        seconds: float | None,
        read: Callable[[Any], T],
    ) -> Pending[T]:
        """Send a call on an open connection, if there is one, and return what `read` makes of the reply.

        Raises what `call` raises when the result is awaited.
        """
        limit = _PATIENCE if seconds is None else seconds
        fields = dict(body) if seconds is None else {**body, "seconds": seconds}
        path = self._base.path(f"/v1/shard/{what}")
        content = encode_body(fields)
        until = time.monotonic() + limit
        sent = self._kept.send(path, content, limit)

        def result() -> T:
            reply = None if sent is None else self._kept.receive(sent, _MOST_BYTES)
            if reply is None:
                again = self._kept.send_on_new(path, content, _left(name, until, limit))
                reply = None if again is None else self._kept.receive(again, _MOST_BYTES)
            data = None if reply is None else open_reply(reply.kind, reply.content)
            if data is None:
                data = self._post(name, path, fields, _left(name, until, limit))
            state = state_of(name, data, PROTOCOL)
            if body.get("state") not in (None, state):
                raise ShardChanged(f"{name} changed during the query", hint="ask again")
            return read_reply(name, lambda: read(data))

        return Pending(result, is_sent=sent is not None)

    def call(self, name: str, what: str, body: Mapping[str, Any], seconds: float | None) -> Any:
        """Return the reply to a call. Errors name the shard.

        Raises:
            DeadlineExceeded: There was no reply within `seconds`.
            BackendError: The service cannot be reached, or cannot answer now.
            WrongReply: The reply is not that of a shard.
            ShardChanged: The index has another state than the request names.
            ConfigError, InputError, ModeUnavailable: The service refuses the request.
        """
        return self.begin(name, what, body, seconds, lambda data: data).result()

    def _post(self, name: str, path: str, fields: Mapping[str, Any], limit: float) -> Any:
        """Return the reply to a request with `Client`, which reads all kinds of replies and errors."""
        fields = {key: value for key, value in fields.items() if key != BYTES}
        client = Client(self._connections, path, self._key, RetryPolicy(1, 0.0, limit))
        began = time.monotonic()
        try:
            return client.post(fields, _MOST_BYTES, lambda: None)
        except RefusedError as error:
            raise _refused(name, error) from None
        except BackendError as error:
            if time.monotonic() - began >= limit:
                raise _late(name, limit) from None
            raise BackendError(f"{name} does not answer: {error.message}", hint=error.hint) from None


def _left(name: str, until: float, limit: float) -> float:
    """Return the seconds until a time. Raises DeadlineExceeded if there are none."""
    left = until - time.monotonic()
    if left <= 0:
        raise _late(name, limit)
    return left


def _late(name: str, limit: float) -> DeadlineExceeded:
    return DeadlineExceeded(f"{name} did not answer within {limit:.3g} s")


class RemotePart:
    """An index of a service with its plan of a query: a `Part` and a `Shard`."""

    def __init__(
        self, index: RemoteIndex, name: str, query: Query, body: Mapping[str, Any], plan: PlanReply
    ) -> None:
        self.name = name
        self._index = index
        self._query = query
        self._clock = Clock(query.deadline, 1)
        self._plan = plan
        self._body = {**body, "mode": plan.mode, "state": plan.state}
        self._preferred: set[int] = set()
        self.mode = plan.mode
        self.modes = {*plan.modes}
        self.is_plain = plan.is_plain
        self.top = plan.top
        self.budget = plan.budget
        self.min_score = plan.min_score
        self.missing_words = plan.missing_words
        self.plain_text = plan.text

    def read(self) -> Pending[Reading]:
        """Return how this index alone reads the question."""
        return self._begin("plan", {"reading": True}, self._clock.left(), reading_reply)

    @property
    def channels(self) -> tuple[str, ...]:
        """Channels of the mode. Raises ConfigError if this installation does not know the mode."""
        return tuple(channel.name for channel in find_recipe(self.mode).channels)

    @property
    def is_remote(self) -> bool:
        """True: its calls return when they are sent."""
        return True

    @property
    def shard(self) -> RemotePart:
        """The index in rankings over several."""
        return self

    def request(self) -> _core.Request:
        """Return the request of the mode to the core."""
        settings = self._index.settings_of(self.name, self._plan.settings)
        return build_request(
            settings,
            find_recipe(self.mode),
            [self.budget],
            top=self.top,
            deadline=self._clock.left(),
            min_score=self.min_score,
        )

    # ------------------------------------------------------------ rankings over several indexes

    def totals(self, seconds: float | None) -> Totals:
        """Return the totals, which came with the plan."""
        return self._plan.totals

    def counts(self, terms: Terms, seconds: float | None) -> Counts | Pending[Counts]:
        """Return the number of units that have each term. Those of the question came with the plan."""
        known = self._plan.counts
        if all(kind.keys() >= {*own} for kind, own in zip(known, terms, strict=True)):
            keywords, names, subjects = (
                [kind[term] for term in own] for kind, own in zip(known, terms, strict=True)
            )
            return keywords, names, subjects
        asked = dict(zip(("keywords", "names", "subjects"), terms, strict=True))

        def read(data: Any) -> Counts:
            keywords, names, subjects = counts_reply(data, terms)
            return keywords, names, subjects

        return self._begin("counts", {"terms": asked}, seconds, read)

    def candidates(self, words: Words, count: int, seconds: float | None) -> Pending[_core.Bundle]:
        """Return the best units by the weighted keywords."""
        fields = {
            "weighting": _weights(words),
            "count": count,
            **_present({"narrow": words.are_enough or None}),
        }
        return self._bundle("candidates", fields, seconds)

    def look_up(self, words: Words, leads: _core._Leads, seconds: float | None) -> Pending[_core.Bundle]:
        """Return the units to which the best candidates lead."""
        names = ("keywords", "names", "subjects", "seeds", "question", "rest", "standard")
        given = dict(zip(names, leads, strict=True))
        return self._bundle("look-up", {"weighting": _weights(words), "leads": given}, seconds)

    def preferred(self) -> Collection[int]:
        """Return the units returned so far with a phrase that the question quotes."""
        return self._preferred

    def _bundle(self, what: str, fields: Mapping[str, Any], seconds: float | None) -> Pending[_core.Bundle]:
        def read(data: Any) -> _core.Bundle:
            bundle, preferred = bundle_reply(data)
            self._preferred.update(preferred)
            return bundle

        return self._begin(what, {**fields, BYTES: True}, seconds, read)

    # ------------------------------------------------------------ passages

    def print_units(
        self, reading: Reading, units: Sequence[int], scores: Sequence[float]
    ) -> Pending[Printed]:
        """Return the passages of units that were ranked over all indexes."""
        words = {"text": reading.text, "replaced": dict(reading.replaced), "unknown": list(reading.unknown)}
        fields = {"reading": words, "units": list(units), "scores": list(scores)}

        def read(data: Any) -> Printed:
            return _printed(self._query.text, printed_reply(data, units))

        return self._begin("passages", fields, self._clock.left(), read)

    def print_alone(self) -> Pending[Printed]:
        """Return the passages that the index ranks alone."""

        def read(data: Any) -> Printed:
            return _printed(self._query.text, printed_reply(data, None))

        return self._begin("passages", {}, self._clock.left(), read)

    def _begin(
        self, what: str, fields: Mapping[str, Any], seconds: float | None, read: Callable[[Any], T]
    ) -> Pending[T]:
        return self._index.begin(self.name, what, {**self._body, **fields}, seconds, read)


def _printed(question: str, reply: PrintedReply) -> Printed:
    own = reply.hits
    if own is None:
        return Printed(reply.context, reply.blocks)
    of_unit = {hit.unit: hit for hit in own}

    def hits(context: Context) -> Hits:
        found = [
            replace(of_unit[one.unit], rank=rank, score=one.relevance)
            for rank, one in enumerate(context.passages, 1)
            if one.unit in of_unit
        ]
        return Hits.from_context(question, context, found)

    return Printed(reply.context, reply.blocks, hits)


def _weights(words: Words) -> dict[str, Any]:
    return {"weights": words.weighting.keywords, "length": words.length, "units": words.units}


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _refused(name: str, error: RefusedError) -> KetragError:
    """Return the typed error for a request that a service refuses."""
    if error.status in _ADDRESS:
        hint = "check the address, and the index after #: http://HOST:PORT#NAME"
        if error.status in (401, 403):
            hint = "set the token of the service in the environment (KETRAG_TOKEN)"
        return ConfigError(f"{name} refuses the request: {error.message}", hint=hint)
    kind = _REFUSED.get(error.given or "", InputError)
    return kind(f"{name} refuses the request: {error.message}")
