"""The core's HTTP front, which answers plain requests to `/v1/retrieve` and hands all others over."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.apps.server.bodies import check_fields
from ketrag_fast.apps.server.guard import HEADERS
from ketrag_fast.apps.server.metrics import counts_file
from ketrag_fast.apps.server.problems import busy, error_json, log
from ketrag_fast.apps.server.replies import JSON, json_bytes
from ketrag_fast.apps.server.retrieving import LONGEST, query_of, topics
from ketrag_fast.apps.server.service import Service
from ketrag_fast.errors import KetragError
from ketrag_fast.index.front import front_type

if TYPE_CHECKING:
    from ketrag_fast.index.front import Front, Plan

_LONGEST_WAIT: Final = 60
_BATCH: Final = 32
_CACHE: Final = 0.75
"""Share of the reply cache that the front has; the application caches the replies to other requests."""


def start_front(service: Service, listening: socket.socket) -> Front | None:
    """Return a front that serves a listening socket; None if the system or the options exclude it."""
    options, front = service.options, front_type()
    if front is None or not options.front:
        return None
    local = ("localhost", "127.0.0.1", "::1")
    any_host = service.accepts_any_host
    return front(
        listening.dup().detach(),
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
        headers=_header_lines(),
        busy=[_busy_reply(seconds) for seconds in range(_LONGEST_WAIT)],
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
        try:
            query = query_of(self._service, check_fields(json.loads(fields), self._shape, ""))
            return query.entry.index.inspect.prepared(
                json_bytes,
                mode=query.mode,
                budget=query.budget,
                top=query.top,
                filter=query.filter,
                explain=query.explain,
                deadline=seconds,
            )
        except KetragError:  # the application replies with it
            return None
        except Exception:  # noqa: BLE001 - the application meets it again and replies
            log.exception("a request could not be planned")
            return None


def _header_lines() -> bytes:
    lines = [(b"content-type", JSON.encode()), *HEADERS]
    return b"".join(b"%s: %s\r\n" % line for line in lines)


def _busy_reply(seconds: float) -> bytes:
    """Return the whole reply to a request that finds the queue full."""
    problem = busy(seconds)
    body = json_bytes(error_json(problem))
    extra = b"".join(
        b"%s: %s\r\n" % (name.lower().encode(), value.encode()) for name, value in problem.headers.items()
    )
    head = b"HTTP/1.1 429 Too Many Requests\r\n%s%scontent-length: %d\r\n\r\n"
    return head % (extra, _header_lines(), len(body)) + body


def adopt_options(handed: tuple[int, bytes, bool, float | None], front: Front) -> tuple[socket.socket, Any]:
    """Return the socket of a connection that the front handed over, and what its protocol must know."""
    descriptor, received, refused, late = handed
    adopted = socket.socket(fileno=descriptor)
    adopted.setblocking(False)
    return adopted, Adopted(received, refused=refused, late=late, front=front)


class Adopted:
    """A connection that the front handed over.

    Attributes:
        received: What the front has read.
        refused: Whether there are too many connections.
        late: The deadline of the first request in seconds, if it has passed.
        front: Counts it until it is closed.
    """

    __slots__ = ("front", "late", "received", "refused")

    def __init__(self, received: bytes, *, refused: bool, late: float | None, front: Front) -> None:
        self.received = received
        self.refused = refused
        self.late = late
        self.front = front
