"""Endpoints that answer no question: statistics, graphs, documents, a passage with its neighbours."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ketrag_fast.apps.server.indexes import OpenIndex
from ketrag_fast.apps.server.problems import Problem, without_paths
from ketrag_fast.apps.server.replies import json_bytes, json_reply
from ketrag_fast.apps.server.service import Service

_MOST: Final = 1000
_NEIGHBOURS: Final = 20
_NAME: Final = 500


def requested_index(request: Request) -> OpenIndex:
    """Return the index named by `?index=`."""
    service: Service = request.app.state.service
    return service.indexes.find(request.query_params.get("index"))


def number(request: Request, name: str, default: int, most: int) -> int:
    """Return a number of the query string. Raises Problem 422 if it is not a number or out of bounds."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) <= most):
        raise Problem(422, "bad_request", f"{name}: must be a number from 0 to {most:,}", param=name)
    return int(text)


async def stats(request: Request) -> Response:
    """Serve `GET /v1/stats`: statistics of an index."""
    service: Service = request.app.state.service
    entry = requested_index(request)
    data = await service.aside(entry.index.stats)
    data = {"schema": "ketrag/stats/1", **data, "path": entry.name}
    return json_reply(clean(data, service.indexes.folders))


async def graph(request: Request) -> Response:
    """Serve `GET /v1/graph`: the kinds of names in the graphs of an index."""
    service: Service = request.app.state.service
    entry = requested_index(request)
    kinds = await service.aside(lambda: entry.index.inspect.kinds)
    return json_reply({"schema": "ketrag/graph/1", "index": entry.name, "kinds": list(kinds)})


async def node(request: Request) -> Response:
    """Serve `GET /v1/graph/NAME`: an entity, a concept, ... with its neighbours."""
    service: Service = request.app.state.service
    entry = requested_index(request)
    name, kind = request.path_params["name"], request.query_params.get("kind")
    if len(name) > _NAME or len(kind or "") > _NAME:
        raise Problem(422, "bad_request", f"the name or kind is longer than {_NAME} characters")
    try:
        entity = await service.aside(entry.index.inspect.node, name, kind)
    except ValueError as error:  # InputError: unknown name
        raise Problem(
            404, "unknown_name", getattr(error, "message", "unknown"), hint=getattr(error, "hint", None)
        ) from None
    return Response(await service.aside(lambda: json_bytes(entity.to_json())), media_type="application/json")


async def passage(request: Request) -> Response:
    """Serve `GET /v1/passages/UNIT`: a passage, its neighbours and the metadata of its document."""
    service: Service = request.app.state.service
    entry = requested_index(request)
    text = request.path_params["unit"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Problem(422, "bad_request", "unit: must be the number of a passage")
    before, after = (number(request, side, 1, _NEIGHBOURS) for side in ("before", "after"))
    try:
        spans = await service.aside(entry.index.inspect.around, int(text), before, after)
        metadata = await service.aside(entry.index.inspect.metadata, int(text))
    except ValueError as error:
        raise Problem(404, "unknown_passage", getattr(error, "message", "unknown")) from None
    rows = [{"unit": unit, **span.to_json()} for unit, span in spans]
    data = {"schema": "ketrag/passages/1", "unit": int(text), "metadata": metadata, "passages": rows}
    return json_reply(data)


async def documents(request: Request) -> Response:
    """Serve `GET /v1/documents`: ids, titles and metadata, in pages."""
    service: Service = request.app.state.service
    entry = requested_index(request)
    first, count = number(request, "first", 0, 10**12), number(request, "count", 100, _MOST)
    text = request.query_params.get("containing", "")[:_NAME]
    listed = await service.aside(entry.index.inspect.documents, first, count, text)
    total = await service.aside(lambda: entry.index.inspect.document_count)
    return json_reply(
        {
            "schema": "ketrag/documents/1",
            "index": entry.name,
            "total": total,
            "first": first,
            "documents": [one.to_json() for one in listed],
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
                "answers": entry.index.inspect.has_answer_llm,
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
    """Return JSON data without paths of this machine, which reports of failed files contain."""
    if isinstance(data, dict):
        return {name: clean(value, folders) for name, value in data.items()}
    if isinstance(data, list):
        return [clean(value, folders) for value in data]
    return without_paths(data, folders) if isinstance(data, str) else data
