"""The OpenAPI document, made from the shapes by which bodies are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ketrag_fast.apps.server.bodies import Shape, shape_schema
from ketrag_fast.apps.server.replies import json_reply
from ketrag_fast.apps.server.service import Service

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
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
    "400": "what was sent makes no sense",
    "401": "the token is missing or wrong",
    "403": "this may not be done here",
    "404": "there is nothing of that name",
    "405": "another method is due",
    "408": "the body came too slowly",
    "409": "another build is running",
    "413": "the body is too large",
    "415": "the body is not JSON",
    "421": "the request names another host",
    "422": "a field is unknown, lacking or out of bounds, or the index lacks what the mode needs",
    "429": "the queue is full; Retry-After says when to ask again",
    "502": "a model or endpoint failed",
    "503": "the service cannot do this now",
    "504": "it took longer than it may",
}


def document(service: Service, shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """The whole document."""
    index = _query("index", _TEXT, "which index; without it the first")
    paths: dict[str, Any] = {
        "/v1/retrieve": {
            "post": _post(
                "The context of a question, or of many", shapes["retrieve"], "ketrag/context/1 or contexts/1"
            )
        },
        "/v1/ask": {
            "post": _post(
                "An answer with citations",
                shapes["ask"],
                "ketrag/answer/1, or with `stream` the events context, text, answer, error",
                stream=True,
            )
        },
        "/v1/indexes": {"get": _get("The indexes")},
        "/v1/stats": {"get": _get("What an index holds", index)},
        "/v1/graph": {"get": _get("Of what kinds an index's graphs have names", index)},
        "/v1/graph/{name}": {
            "get": _get(
                "What the graphs know under a name",
                _path("name", {**_TEXT, "minLength": 1}),
                index,
                _query("kind", _TEXT, "entity, concept, ..."),
            )
        },
        "/v1/passages/{unit}": {
            "get": _get(
                "A passage and its neighbours",
                _path("unit", _COUNT),
                index,
                _query("before", {**_COUNT, "maximum": 20}, "neighbours before it"),
                _query("after", {**_COUNT, "maximum": 20}, "neighbours after it"),
            )
        },
        "/v1/documents": {
            "get": _get(
                "The documents",
                index,
                _query("first", _COUNT, "the first one's number"),
                _query("count", {**_COUNT, "maximum": 1000}, "documents at most"),
                _query("containing", _TEXT, "a part of id or title"),
            ),
            "post": _post(
                "Adds and removes documents, where that is allowed", shapes["documents"], "ketrag/index/1"
            ),
        },
        "/v1/models": {"get": _get("The indexes, as OpenAI's models")},
        "/v1/models/{name}": {"get": _get("One of them", _path("name", {**_TEXT, "minLength": 1}))},
        "/v1/embeddings": {
            "post": _post("Vectors, in OpenAI's form", shapes["embeddings"], "a list", strict=False)
        },
        "/v1/chat/completions": {
            "post": _post(
                "An answer from an index, in OpenAI's form",
                shapes["chat"],
                "chat.completion, or its chunks",
                strict=False,
                stream=True,
            )
        },
        "/health": {"get": _get("Whether the process answers", open_to_all=True)},
        "/ready": {"get": _get("Whether indexes are open and models loaded", open_to_all=True)},
        "/metrics": {"get": _get("Counters, for Prometheus", kind="text/plain")},
    }
    made: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "ketrag",
            "version": "1",
            "description": "Retrieval and answers from graph indexes",
        },
        "paths": paths,
        "components": {"schemas": {"Error": {"anyOf": [_ERROR, _OPENAI_ERROR]}}},
    }
    if service.token is not None:
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"token": []}]
    return made


async def serve(request: Request) -> Response:
    """`GET /openapi.json`."""
    return json_reply(request.app.state.openapi)


def _get(
    summary: str, *parameters: dict[str, Any], kind: str = "application/json", open_to_all: bool = False
) -> dict[str, Any]:
    schema = _TEXT if kind == "text/plain" else {"type": "object"}
    done = {"200": {"description": summary, "content": {kind: {"schema": schema}}}}
    made = {"summary": summary, "parameters": list(parameters), "responses": done | _failures()}
    return {**made, "security": []} if open_to_all else made


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
