"""Endpoints of a shard: the calls of a query over several indexes, of which this service has one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

import orjson
from starlette.responses import Response

from ketrag_fast.apps.server.endpoints import Call, Endpoint, Field, Shape, check_fields
from ketrag_fast.apps.server.replies import Problem, error_json, json_bytes, late_reply, log, status_of
from ketrag_fast.apps.server.retrieval import fields_of, question, shown_paths, topics
from ketrag_fast.apps.server.service import OpenIndex, Service
from ketrag_fast.apps.server.users import User
from ketrag_fast.errors import DeadlineExceeded, KetragError
from ketrag_fast.index import shard_calls
from ketrag_fast.index.parts import Search
from ketrag_fast.index.shard_calls import BYTES, PACKED
from ketrag_fast.query.query import Query, as_query
from ketrag_fast.records import dataclass

PATH: Final = "/v1/shard/"
_PLAN: Final = "/v1/shard/plan"
_UNITS: Final = 10_000
_TERMS: Final = 100_000
_WORD: Final = Field("string", "a term", required=True)
_ABOUT: Final = "ketrag/shard/1; only `state` if it is not the one that the request names"


def _terms(kind: str) -> Field:
    return Field("array", f"{kind} of the question", required=True, most=_TERMS, items=_WORD)


_WEIGHTING: Final = Field(
    "object",
    "keywords with their weights, and the size of all shards",
    required=True,
    fields={
        "weights": Field(
            "array",
            "pairs of a keyword and a weight",
            required=True,
            most=_TERMS,
            items=Field("array", "a pair", required=True, least=2, most=2),
        ),
        "length": Field("integer", "keywords of all shards", required=True, least=0, most=2**48),
        "units": Field("integer", "units of all shards", required=True, least=0, most=2**40),
    },
)


def _rows(help_: str) -> Field:
    return Field("array", help_, required=True, most=_TERMS)


_LEADS: Final = Field(
    "object",
    "where the best candidates of all shards lead",
    required=True,
    fields={
        "keywords": _rows("keywords, each with its mass and number of units"),
        "names": _rows("names, each with its mass and number of units"),
        "subjects": _rows("subjects, each with its mass and number of units"),
        "seeds": _rows("texts of the best candidates, each with its mass"),
        "question": Field("string", "the text to rank by", required=True),
        "rest": _rows("keywords of the uncovered part of the question, each with its weight"),
        "standard": Field("array", "mean and deviation of all scores", required=True, least=2, most=2),
    },
)
_READING: Final = Field(
    "object",
    "how all shards read the question; without it, the index ranks alone",
    fields={
        "text": Field("string", "the text to rank by", required=True),
        "replaced": Field("object", "similar words by the word that they replace", required=True),
        "unknown": Field("array", "words that no shard has", required=True, items=_WORD),
    },
)


def endpoints(service: Service) -> list[Endpoint]:
    """Return the endpoints of a shard."""
    shared = {name: field for name, field in topics(service).items() if name != "deadline"}
    search: Shape = {
        "limit": Field("integer", "maximum number of hits", required=True, least=0, most=1000),
        "glob": Field("array", "only files whose path matches", most=20, items=_WORD),
        "grep": Field("string", "only passages with a line that matches", least=1, most=1000),
    }
    seconds = Field("number", "maximum seconds of this call", least=0, above=True)
    query = {
        "question": question(required=True),
        "search": Field("object", "return hits for `search` as well", fields=search),
        "seconds": seconds,
        **shared,
    }
    state = Field("string", "state of the index in the reply to `plan`", required=True, most=200)
    any_state = Field("string", "state of the index in the reply to `plan`", most=200)
    units = Field("array", "ranked units, best first", most=_UNITS, items=Field("integer", "a unit", True, 0))
    scores = Field("array", "their scores", most=_UNITS, items=Field("number", "a score", True))
    narrow = Field("boolean", "return no other keywords of the units, and no texts")
    in_bytes = Field("boolean", "reply with the size of JSON in 4 bytes, this JSON, and the units as bytes")
    count = Field("integer", "maximum number of units", required=True, least=0, most=_UNITS)
    terms = {kind: _terms(kind) for kind in ("keywords", "names", "subjects")}
    reading = Field("boolean", "return how the index alone reads the question, not the plan")
    asked = {"state": any_state, "reading": reading}
    shapes: list[tuple[str, Handler, str, Shape]] = [
        ("plan", plan, "Plan a query over several indexes, of which this is one", asked),
        (
            "counts",
            counts,
            "Count the units that have each term of a question",
            {"state": state, "terms": Field("object", "terms of the question", required=True, fields=terms)},
        ),
        (
            "candidates",
            candidates,
            "Find the best units by keywords that are weighted over several indexes",
            {"state": state, "weighting": _WEIGHTING, "count": count, "narrow": narrow, BYTES: in_bytes},
        ),
        (
            "look-up",
            look_up,
            "Find the units to which the best candidates of several indexes lead",
            {"state": state, "weighting": _WEIGHTING, "leads": _LEADS, BYTES: in_bytes},
        ),
        (
            "passages",
            passages,
            "Print units that were ranked over several indexes",
            {"state": any_state, "reading": _READING, "units": units, "scores": scores},
        ),
    ]
    one = {"index": shared["index"], "seconds": seconds}
    alone: list[tuple[str, Handler, str, Shape]] = [
        ("state", describe, "Return the state of an index, and whether it may be copied", one),
        ("copy", copy, "Copy an index, if the service permits copies", {**one, "state": state}),
    ]
    queries = [(name, handler, summary, {**query, **shape}) for name, handler, summary, shape in shapes]
    return [
        Endpoint(
            "POST",
            f"{PATH}{name}",
            _timed(handler),
            summary,
            shape,
            _ABOUT,
            kinds=("application/json", PACKED) if BYTES in shape else ("application/json",),
        )
        for name, handler, summary, shape in (*queries, *alone)
    ]


class ShardCalls:
    """Answers calls to shards on the threads of the front, without the layers of the application."""

    def __init__(self, service: Service, loop: asyncio.AbstractEventLoop) -> None:
        self._service = service
        self._loop = loop
        names = ("plan", "counts", "candidates", "look-up", "passages", "state")
        all_shapes = {one.path: one.shape for one in endpoints(service)}
        self._shapes = {f"{PATH}{name}": all_shapes[f"{PATH}{name}"] for name in names}

    def __call__(self, path: str, body: bytes, name: str, allow: str) -> tuple[int, bool, bytes] | None:
        """Return the status of a reply, whether it is packed, and the reply.

        `name` and `allow` are those of the caller. Returns None if the application must answer: other calls,
        and those with errors, except late ones, whose time is over.
        """
        service, shape = self._service, self._shapes.get(path)
        if shape is None or service.stopping or not service.options.front:
            return None
        began = time.perf_counter()
        status, is_packed = 200, False
        values: dict[str, Any] = {}
        try:
            values = check_fields(orjson.loads(body), shape, "")
            if path == _PLAN:
                service.looks.wait_on(self._loop)
            call = ShardCall(service, User(name, allow=allow), values)
            reply = _HANDLERS[path.removeprefix(PATH)](call)
            is_packed = "bundle" in reply and bool(values.get(BYTES))
            content = (
                shard_calls.pack_reply(reply) if is_packed else json_bytes(shard_calls.plain_reply(reply))
            )
        except DeadlineExceeded as error:
            status, content = status_of(error), json_bytes(error_json(error))
        except (KetragError, ValueError, TypeError, RecursionError):  # the application replies with it
            return None
        except Exception:  # noqa: BLE001 - the application meets it again and replies
            log.exception("a call to a shard could not be answered")
            return None
        took = time.perf_counter() - began
        service.metrics.requests.labels(path, str(status)).inc()
        service.metrics.seconds.labels(path).observe(took)
        asked = values.get("question")
        service.log.add(name, "POST", path, status, took, may_be_slow=True, question=asked)
        return status, is_packed, content


@dataclass(frozen=True, slots=True)
class ShardCall:
    """The validated fields of a call to a shard, and who sent it."""

    service: Service
    user: User
    values: dict[str, Any]

    @property
    def entry(self) -> OpenIndex:
        """The index that the call names, with the documents that the user may see. Raises Problem 404."""
        return self.service.indexes.seen_by(self.user).find(self.values.get("index"))


Handler = Callable[[ShardCall], dict[str, Any]]


def _timed(handler: Handler) -> Callable[[Call], Any]:
    """Return a handler that runs on a thread for queries, within the time of the call."""

    def answer(call: Call) -> Any:
        reply = handler(ShardCall(call.service, call.user, call.values))
        if call.values.get(BYTES) and "bundle" in reply:
            return Response(shard_calls.pack_reply(reply), media_type=PACKED)
        return shard_calls.plain_reply(reply)

    async def run(call: Call) -> Any:
        seconds = min(
            call.values.get("seconds", call.service.options.deadline), call.service.options.deadline
        )
        try:
            return await call.service.in_turn(lambda: answer(call), seconds)
        except TimeoutError:
            raise late_reply(seconds) from None

    return run


def _query(call: ShardCall) -> Query:
    fields = fields_of(call.values)
    limit = call.service.options.deadline
    fields["deadline"] = min(call.values.get("seconds", limit), limit)
    return as_query(call.values["question"], fields)


def _search(call: ShardCall) -> Search | None:
    given = call.values.get("search")
    return None if given is None else Search(given["limit"], given.get("glob"), given.get("grep"))


def describe(call: ShardCall) -> dict[str, Any]:
    """Return the state of an index, and what a copy needs, if it may be copied."""
    data = shard_calls.describe_shard(call.entry.index, dict(call.service.options.settings))
    return data if _may_copy(call) else {**data, "copy": None}


def copy(call: ShardCall) -> dict[str, Any]:
    """Return a copy of an index. Raises Problem 403 if it may not be copied."""
    if not _may_copy(call):
        raise Problem(403, "forbidden", "this service permits no copies", hint="ketrag serve --allow-copies")
    return shard_calls.copy_shard(call.entry.index, call.values["state"])


def _may_copy(call: ShardCall) -> bool:
    """Return whether the caller sees all documents of a service that permits copies."""
    return call.service.options.copies and not call.user.allow


def plan(call: ShardCall) -> dict[str, Any]:
    """Return the plan of a query, and the totals of the index."""
    given = call.values
    return shard_calls.plan_shard(
        call.entry.index,
        _query(call),
        _search(call),
        given.get("state"),
        reading=given.get("reading", False),
    )


def counts(call: ShardCall) -> dict[str, Any]:
    """Return the numbers of units that have each term."""
    given = call.values
    return shard_calls.count_terms(
        call.entry.index, _query(call), _search(call), given["state"], given["terms"]
    )


def candidates(call: ShardCall) -> dict[str, Any]:
    """Return the best units."""
    given = call.values
    return shard_calls.find_candidates(
        call.entry.index,
        _query(call),
        _search(call),
        given["state"],
        given["weighting"],
        given["count"],
        narrow=given.get("narrow", False),
    )


def look_up(call: ShardCall) -> dict[str, Any]:
    """Return the units to which candidates lead."""
    given = call.values
    return shard_calls.look_up(
        call.entry.index, _query(call), _search(call), given["state"], given["weighting"], given["leads"]
    )


def passages(call: ShardCall) -> dict[str, Any]:
    """Return printed passages, without paths of this machine if clients of other machines may see them."""
    given = call.values
    data = shard_calls.print_passages(
        call.entry.index,
        _query(call),
        _search(call),
        given.get("state"),
        reading=given.get("reading"),
        units=given.get("units", []),
        scores=given.get("scores", []),
    )
    if data.get("hits"):
        data["hits"] = shown_paths(call.service, data["hits"])
    return data


_HANDLERS: Final[dict[str, Handler]] = {
    "plan": plan,
    "counts": counts,
    "candidates": candidates,
    "look-up": look_up,
    "passages": passages,
    "state": describe,
}
