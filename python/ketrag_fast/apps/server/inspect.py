"""Endpoints about an index: statistics, graphs, documents, passages and health."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ketrag_fast.apps.server.indexes import OpenIndex
from ketrag_fast.apps.server.problems import Problem, stopping, without_paths
from ketrag_fast.apps.server.replies import json_bytes, json_reply
from ketrag_fast.apps.server.service import Service
from ketrag_fast.base.progress import Callback
from ketrag_fast.types import Listed

_MOST: Final = 1000
DOCUMENT_ORDERS: Final[dict[str, Callable[[Listed], Any]]] = {
    "title": lambda one: (one.title or one.document).casefold(),
    "document": lambda one: one.document.casefold(),
    "units": lambda one: one.units,
}
"""Orders of `GET /v1/documents`; a minus sign before the name reverses them."""
_NEIGHBOURS: Final = 20
_NAME: Final = 500
_FILTER: Final = 2000


def requested_index(request: Request, *parameters: str) -> tuple[Service, OpenIndex]:
    """Return the service, and the index named by `?index=`. Raises Problem 422 for unknown parameters,
    because a misspelt `filter` must not be ignored.
    """
    service: Service = request.app.state.service
    for name in sorted(set(request.query_params.keys()).difference(parameters, ("index",))):
        raise Problem(
            422,
            "bad_request",
            f"unknown parameter {name[:64]!r}",
            hint=f"parameters are: {', '.join(('index', *parameters))}",
            param=name[:64],
        )
    return service, service.indexes.find(request.query_params.get("index"))


def number(request: Request, name: str, default: int, most: int) -> int:
    """Return a number of the query string. Raises Problem 422 if it is not a number or out of bounds."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) <= most):
        raise Problem(422, "bad_request", f"{name}: must be a number from 0 to {most:,}", param=name)
    return int(text)


def require_generation(request: Request, entry: OpenIndex) -> None:
    """Raise Problem 409 if a request has unit numbers of a generation that has been replaced."""
    open_now = entry.index.generation
    if number(request, "generation", open_now, 10**12) != open_now:
        raise Problem(
            409,
            "generation_replaced",
            f"the index is at generation {open_now} now, and numbers of nodes and passages have changed",
            hint="ask again, without numbers of the earlier generation",
        )


async def stats(request: Request) -> Response:
    """Serve `GET /v1/stats`: statistics of an index."""
    service, entry = requested_index(request)
    data = await service.aside(entry.index.stats)
    data = {"schema": "ketrag/stats/1", **data, "path": entry.name}
    return json_reply(clean(data, service.indexes.folders))


async def graph(request: Request) -> Response:
    """Serve `GET /v1/graph`: the kinds of nodes in the graphs of an index."""
    service, entry = requested_index(request)
    inspect = entry.index.inspect
    kinds, graphs = await service.aside(lambda: (inspect.kinds, inspect.graphs()))
    return json_reply(
        {
            "schema": "ketrag/graph/1",
            "index": entry.name,
            "kinds": list(kinds),
            "graphs": list(graphs),
            "missing": inspect.missing_graphs(),
        }
    )


async def node(request: Request) -> Response:
    """Serve `GET /v1/graph/NAME`: an entity, a concept, ... with its neighbours."""
    service, entry = requested_index(request, "kind")
    name, kind = request.path_params["name"], request.query_params.get("kind")
    if len(name) > _NAME or len(kind or "") > _NAME:
        raise Problem(422, "bad_request", f"the name or kind is longer than {_NAME} characters")
    entity = await service.aside(entry.index.inspect.node, name, kind)
    return Response(await service.aside(lambda: json_bytes(entity.to_json())), media_type="application/json")


async def passage(request: Request) -> Response:
    """Serve `GET /v1/passages/UNIT`: a passage, its neighbours and the metadata of its document."""
    service, entry = requested_index(request, "before", "after", "generation")
    text = request.path_params["unit"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Problem(422, "bad_request", "unit: must be the number of a passage")
    require_generation(request, entry)
    before, after = (number(request, side, 1, _NEIGHBOURS) for side in ("before", "after"))
    try:
        spans = await service.aside(entry.index.inspect.around, int(text), before, after)
        metadata = await service.aside(entry.index.inspect.metadata, int(text))
    except ValueError as error:
        raise Problem(404, "unknown_passage", getattr(error, "message", "unknown")) from None
    rows = [
        {
            "unit": unit,
            **span.to_json(),
            "location": entry.index.inspect.location(unit, span.start, span.end),
        }
        for unit, span in spans
    ]
    data = {"schema": "ketrag/passages/1", "unit": int(text), "metadata": metadata, "passages": rows}
    return json_reply(data)


async def fields(request: Request) -> Response:
    """Serve `GET /v1/fields`: the metadata fields that filters can use."""
    service, entry = requested_index(request)
    names = await service.aside(entry.index.inspect.fields)
    return json_reply({"schema": "ketrag/fields/1", "index": entry.name, "fields": list(names)})


async def themes(request: Request) -> Response:
    """Serve `GET /v1/themes`: what the documents are about."""
    service, entry = requested_index(request, "filter")
    condition = read_filter(request)
    in_time = until_late(service)

    def reply() -> bytes:
        found = entry.index.themes(filter=condition, progress=in_time)
        return json_bytes({**found.to_json(), "index": entry.name})

    return Response(await service.aside(reply), media_type="application/json")


def until_late(service: Service) -> Callback:
    """Return a callback that stops work at the deadline of requests, and when the service stops."""
    until = time.monotonic() + service.options.deadline
    return lambda _: time.monotonic() < until and not service.stopping


def read_filter(request: Request) -> str | None:
    """Return the filter of the query string. Raises Problem 422 if it is too long."""
    condition = request.query_params.get("filter")
    if condition is not None and len(condition) > _FILTER:
        raise Problem(422, "bad_request", f"filter: at most {_FILTER:,} characters", param="filter")
    return condition


async def documents(request: Request) -> Response:
    """Serve `GET /v1/documents`: ids, titles and metadata, in pages."""
    known = ("first", "count", "containing", "filter", "theme", "sort", "preview")
    service, entry = requested_index(request, *known)
    first, count = number(request, "first", 0, 10**12), number(request, "count", 100, _MOST)
    text = request.query_params.get("containing", "")[:_NAME]
    condition = read_filter(request)
    sort = request.query_params.get("sort", "")
    if sort and sort.removeprefix("-") not in DOCUMENT_ORDERS:
        names = ", ".join(DOCUMENT_ORDERS)
        raise Problem(422, "bad_request", f"sort: must be one of {names}, or -title and so on", param="sort")
    length = number(request, "preview", 0, _MOST)
    theme = request.query_params.get("theme")
    inspect, in_time = entry.index.inspect, until_late(service)

    def rows() -> list[dict[str, Any]]:
        if sort:
            every = inspect.documents(containing=text, filter=condition, theme=theme, progress=in_time)
            every.sort(key=DOCUMENT_ORDERS[sort.removeprefix("-")], reverse=sort.startswith("-"))
            listed = every[first : first + count]
        else:
            listed = inspect.documents(first, count, text, condition, theme, in_time)
        return [one.to_json() | ({"preview": beginning(one)} if length else {}) for one in listed]

    def beginning(one: Listed) -> str:
        return inspect.around(one.unit, 0, 0)[0][1].text[:length] if one.units else ""

    shown = await service.aside(rows)
    total = await service.aside(lambda: inspect.document_count)
    return json_reply(
        {
            "schema": "ketrag/documents/1",
            "index": entry.name,
            "total": total,
            "first": first,
            "documents": shown,
        }
    )


async def builds(request: Request) -> Response:
    """Serve `GET /v1/builds`: the progress of a build that runs now, and the past builds."""
    service, entry = requested_index(request, "count")
    count = number(request, "count", 20, _MOST)
    inspect = entry.index.inspect
    running, past = await service.aside(lambda: (inspect.running_build(), inspect.builds(count)))
    return json_reply(
        {
            "schema": "ketrag/builds/1",
            "index": entry.name,
            "running": running,
            "builds": [one.to_json() for one in past],
        }
    )


async def indexes(request: Request) -> Response:
    """Serve `GET /v1/indexes`: names, generations and modes."""
    service: Service = request.app.state.service

    def rows() -> list[dict[str, Any]]:
        return [
            {
                "name": entry.name,
                "generation": entry.index.generation,
                "digest": entry.index.digest,
                "documents": entry.index.inspect.document_count,
                "modes": list(entry.index.modes),
                "kinds": list(entry.index.inspect.kinds),
                "graphs": list(entry.index.inspect.graphs()),
                "answers": entry.index.inspect.has_answer_llm,
                "examples": list(entry.index.inspect.examples()),
            }
            for entry in service.indexes
        ]

    return json_reply(
        {
            "schema": "ketrag/indexes/1",
            "indexes": await service.aside(rows),
            "writable": service.options.writable,
        }
    )


def clean(data: Any, folders: tuple[tuple[str, str], ...]) -> Any:
    """Remove paths of this machine, which reports of failed files contain, from JSON data."""
    if isinstance(data, dict):
        return {name: clean(value, folders) for name, value in data.items()}
    if isinstance(data, list):
        return [clean(value, folders) for value in data]
    return without_paths(data, folders) if isinstance(data, str) else data


async def health(request: Request) -> Response:
    """Serve `GET /health`: 200 while the process runs."""
    return json_reply({"schema": "ketrag/health/1", "status": "ok"})


async def ready(request: Request) -> Response:
    """Serve `GET /ready`: 200 once indexes are open and models loaded; 503 while the service starts or
    stops."""
    service: Service = request.app.state.service
    if service.stopping:
        raise stopping()
    if not service.ready:
        raise Problem(503, "starting", "the service is starting", headers={"Retry-After": "1"})
    return json_reply({"schema": "ketrag/health/1", "status": "ready"})


async def metrics(request: Request) -> Response:
    """Serve `GET /metrics`, for Prometheus."""
    service: Service = request.app.state.service
    service.metrics.waiting.set(service.batcher.waiting + service.waiting_in_front())
    for entry in service.indexes:
        service.metrics.generation.labels(entry.name).set(entry.index.generation)
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
