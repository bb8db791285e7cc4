"""The OpenAPI document, generated from the shapes that validate request bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ketrag_fast.apps.server.bodies import Shape, shape_schema
from ketrag_fast.apps.server.inspect import DOCUMENT_ORDERS
from ketrag_fast.apps.server.replies import json_reply
from ketrag_fast.apps.server.service import Service

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_ORDERS: Final = [f"{sign}{name}" for name in DOCUMENT_ORDERS for sign in ("", "-")]
_ERROR: Final = {
    "type": "object",
    "required": ["schema", "code", "message", "hint"],
    "properties": {"schema": _TEXT, "code": _TEXT, "message": _TEXT, "hint": {"type": ["string", "null"]}},
}
_OPENAI_ERROR: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "object", "required": ["message", "type", "param", "code"]}},
}
_ERRORS: Final = {
    "400": "invalid request",
    "401": "missing or wrong token",
    "403": "not permitted",
    "404": "unknown index, name or passage",
    "405": "wrong HTTP method",
    "408": "the body did not arrive in time",
    "409": "another build is running, or numbers are from another generation",
    "413": "the body is too large",
    "415": "the body is not JSON",
    "421": "the request names another host",
    "422": "a field is unknown, missing or out of bounds, or the index lacks what the mode needs",
    "429": "the queue is full; retry after the seconds in Retry-After",
    "502": "a model or endpoint failed",
    "503": "the service cannot do this now",
    "504": "the deadline passed",
}
_INDEX: Final = {
    "name": "index",
    "in": "query",
    "schema": _TEXT,
    "description": "index name; default: the first index",
}


def document(service: Service, shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """Return the OpenAPI document of a service."""
    data: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "ketrag",
            "version": "1",
            "description": "Retrieval and answers from graph indexes",
        },
        "paths": {**_query_paths(shapes), **_index_paths(shapes), **_openai_paths(shapes), **_health_paths()},
        "components": {"schemas": {"Error": {"anyOf": [_ERROR, _OPENAI_ERROR]}}},
    }
    if service.token is not None:
        data["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        data["security"] = [{"token": []}]
    return data


def _query_paths(shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """Return the paths that answer questions."""
    return {
        "/v1/retrieve": {
            "post": _post(
                "Retrieve the context of one question or of many",
                shapes["retrieve"],
                "ketrag/context/1 or ketrag/contexts/1",
            )
        },
        "/v1/search": {
            "post": _post("Find passages with their files and lines", shapes["search"], "ketrag/search/1")
        },
        "/v1/grep": {"post": _post("Find lines that match a pattern", shapes["grep"], "ketrag/grep/1")},
        "/v1/text": {
            "get": _get(
                "Read the indexed text of a file, or some lines of it",
                _INDEX,
                _query(
                    "path",
                    {**_TEXT, "minLength": 1, "maxLength": 1000},
                    "path or document id, maybe with a position: notes.md:93-110, report.pdf:p12",
                ),
            )
        },
        "/v1/ask": {
            "post": _post(
                "Answer a question with citations",
                shapes["ask"],
                "ketrag/answer/1, or with `stream` the events context, text, answer and error",
                stream=True,
            )
        },
    }


def _index_paths(shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """Return the paths that show or change an index."""
    return {
        "/v1/indexes": {"get": _get("List the indexes")},
        "/v1/stats": {"get": _get("Statistics of an index", _INDEX)},
        "/v1/fields": {"get": _get("Metadata fields of the documents, for filters", _INDEX)},
        "/v1/builds": {
            "get": _get(
                "Progress of a build that runs now, and past builds",
                _INDEX,
                _query("count", {**_COUNT, "maximum": 1000}, "maximum number of past builds"),
            )
        },
        "/v1/themes": {
            "get": _get(
                "What the documents are about",
                _INDEX,
                _query("filter", _TEXT, "themes of the documents with matching metadata only"),
            )
        },
        "/v1/graph": {"get": _get("Kinds of names in the graphs of an index", _INDEX)},
        "/v1/graph/{name}": {
            "get": _get(
                "Look up a name in the graphs",
                _path("name", {**_TEXT, "minLength": 1}),
                _INDEX,
                _query("kind", _TEXT, "entity, concept, ..."),
            )
        },
        "/v1/graph-view": {
            "get": _get(
                "Draw a graph, or the surroundings of names or of a question",
                _INDEX,
                _query("graph", _TEXT, "walk, skeleton, ...; default: the first graph of the index"),
                _query(
                    "around",
                    {"type": "array", "items": {**_TEXT, "maxLength": 500}, "maxItems": 100},
                    "names of nodes, or numbers such as #12; repeatable",
                ),
                _query(
                    "to", {**_TEXT, "maxLength": 500}, "draw the shortest path from `around` to this node"
                ),
                _query("question", _TEXT, "draw the surroundings of the passages that answer it"),
                _query("limit", {**_COUNT, "minimum": 1, "maximum": 100_000}, "maximum number of nodes"),
                _query("filter", _TEXT, "draw the graph of the documents with matching metadata only"),
                _query("generation", _COUNT, "generation that the numbers in `around` are from"),
            )
        },
        "/v1/passages/{unit}": {
            "get": _get(
                "Read a passage and its neighbours, with the metadata of the document",
                _path("unit", _COUNT),
                _INDEX,
                _query("before", {**_COUNT, "maximum": 20}, "number of passages before it"),
                _query("after", {**_COUNT, "maximum": 20}, "number of passages after it"),
                _query("generation", _COUNT, "generation that the number is from"),
            )
        },
        "/v1/documents": {
            "get": _get(
                "List documents with their metadata",
                _INDEX,
                _query("first", _COUNT, "number of the first document to list"),
                _query("count", {**_COUNT, "maximum": 1000}, "maximum number of documents"),
                _query("containing", _TEXT, "text that the id or title must contain"),
                _query("filter", _TEXT, "list only documents with matching metadata"),
                _query("theme", _TEXT, "list only documents of this theme of `/v1/themes`, such as 2.1"),
                _query("sort", {**_TEXT, "enum": _ORDERS}, "order of the list (default: that of the index)"),
                _query("preview", {**_COUNT, "maximum": 1000}, "characters of the text to show"),
            ),
            "post": _post(
                "Add and remove documents, if the service allows it", shapes["documents"], "ketrag/index/1"
            ),
        },
    }


def _openai_paths(shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """Return the paths of OpenAI's protocol."""
    return {
        "/v1/models": {"get": _get("List the indexes as OpenAI models")},
        "/v1/models/{name}": {
            "get": _get("Show an index as an OpenAI model", _path("name", {**_TEXT, "minLength": 1}))
        },
        "/v1/embeddings": {
            "post": _post("Embed texts (OpenAI format)", shapes["embeddings"], "list", strict=False)
        },
        "/v1/chat/completions": {
            "post": _post(
                "Answer from an index (OpenAI format)",
                shapes["chat"],
                "chat.completion, or its chunks",
                strict=False,
                stream=True,
            )
        },
    }


def _health_paths() -> dict[str, Any]:
    """Return the paths for monitoring."""
    return {
        "/health": {"get": _get("Report whether the process answers", open_to_all=True)},
        "/ready": {"get": _get("Report whether indexes are open and models loaded", open_to_all=True)},
        "/metrics": {"get": _get("Prometheus metrics", kind="text/plain")},
    }


async def serve(request: Request) -> Response:
    """Serve `GET /openapi.json`."""
    return json_reply(request.app.state.openapi)


def _get(
    summary: str, *parameters: dict[str, Any], kind: str = "application/json", open_to_all: bool = False
) -> dict[str, Any]:
    schema = _TEXT if kind == "text/plain" else {"type": "object"}
    success = {"200": {"description": summary, "content": {kind: {"schema": schema}}}}
    operation = {"summary": summary, "parameters": list(parameters), "responses": success | _failures()}
    return {**operation, "security": []} if open_to_all else operation


def _post(
    summary: str, shape: Shape, reply: str, *, strict: bool = True, stream: bool = False
) -> dict[str, Any]:
    body = {"application/json": {"schema": shape_schema(shape, strict=strict)}}
    content: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
    if stream:
        content["text/event-stream"] = {"schema": _TEXT}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": body},
        "responses": {"200": {"description": reply, "content": content}} | _failures(),
    }


def _failures() -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {status: {"description": text, "content": content} for status, text in _ERRORS.items()}


def _query(name: str, schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": dict(schema), "description": text}


def _path(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": dict(schema)}
