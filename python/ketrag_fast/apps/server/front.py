"""The core's HTTP front, which answers plain requests to `/v1/retrieve` and passes on all others."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Final

from ketrag_fast.apps.server.bodies import check_fields
from ketrag_fast.apps.server.guard import HEADERS
from ketrag_fast.apps.server.metrics import counts_file
from ketrag_fast.apps.server.problems import Problem, busy, error_json, log, stopping
from ketrag_fast.apps.server.replies import JSON, json_bytes
from ketrag_fast.apps.server.retrieving import LONGEST, query_of, topics
from ketrag_fast.apps.server.service import Service
from ketrag_fast.errors import KetragError
from ketrag_fast.query.prepared import Front

if TYPE_CHECKING:
    from ketrag_fast.query.prepared import Plan

_LONGEST_WAIT: Final = 60
_BATCH: Final = 32
_CACHE: Final = 0.75
"""Share of the reply cache that the front has; the application caches the replies to other requests."""


def start_front(service: Service, listening: socket.socket, application: str) -> Front:
    """Return a front that owns a listening socket and passes requests to the address `application`."""
    options = service.options
    local = ("localhost", "127.0.0.1", "::1")
    any_host = service.accepts_any_host
    crowded = Problem(429, "busy", "too many connections", headers={"Retry-After": "1"})
    broken = Problem(400, "bad_request", "the body of the request is malformed or incomplete")
    return Front(
        listening.detach(),
        application,
        _Planner(service),
        workers=options.concurrency,
        connections=options.connections,
        queue=options.queue,
        batch=_BATCH if options.batch is None else options.batch,
        cache=int(_CACHE * options.cache),
        body=options.body,
        question=LONGEST,
        deadline=options.deadline,
        read=options.read_seconds,
        idle=options.idle_seconds,
        hosts=None if any_host else [*local, *options.hosts, options.host],
        token=service.token,
        headers=_headers(),
        busy=[_whole(busy(seconds)) for seconds in range(_LONGEST_WAIT)],
        crowded=_whole(crowded),
        broken=_whole(broken),
        stopping=_whole(stopping()),
        counts=counts_file(),
    )


class _Planner:
    """Plans the requests of the front, on its threads."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._shape = topics(service)

    def __call__(self, fields: str, seconds: float) -> Plan | None:
        """Return how the core answers requests with these fields.

        None if the application must answer, or if planning takes longer than `seconds`: the first filter of
        an index reads all metadata.
        """
        if not self._service.options.front:
            return None
        try:
            query = query_of(self._service, check_fields(json.loads(fields), self._shape, ""))
            return query.entry.index.inspect.prepared(
                json_bytes,
                mode=query.mode,
                budget=query.budget,
                top=query.top,
                min_score=query.min_score,
                filter=query.filter,
                newest=query.newest,
                explain=query.explain,
                deadline=seconds,
            )
        except KetragError:  # the application replies with it
            return None
        except Exception:  # noqa: BLE001 - the application meets it again and replies
            log.exception("a request could not be planned")
            return None


def _headers() -> list[tuple[str, str]]:
    return [("content-type", JSON), *((name.decode(), value.decode()) for name, value in HEADERS)]


def _whole(problem: Problem) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return the reply to a request that the application never sees."""
    headers = [*((name.lower(), value) for name, value in problem.headers.items()), *_headers()]
    return problem.status, headers, json_bytes(error_json(problem))
