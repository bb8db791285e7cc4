"""Endpoints: their parameters, the requests that they answer, and their description as OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from itertools import groupby
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ketrag_fast.apps.server.bodies import (
    Field,
    Shape,
    parameters_schema,
    read_body,
    read_parameters,
    shape_schema,
)
from ketrag_fast.apps.server.replies import json_reply
from ketrag_fast.apps.server.service import OpenIndex, Service

INDEX: Final = Field("string", "index name; default: the first index")
_TEXT: Final = {"type": "string"}
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
_FAILURES: Final = {
    status: {
        "description": text,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    for status, text in _ERRORS.items()
}


@dataclass(frozen=True, slots=True)
class Call:
    """A request, and the validated fields of its body or parameters."""

    request: Request
    service: Service
    values: dict[str, Any]

    @property
    def entry(self) -> OpenIndex:
        """The index that the request names. Raises Problem 404."""
        return self.service.indexes.find(self.values.get("index"))


Handler = Callable[[Call], Any] | Callable[[Call], Awaitable[Any]]
"""Returns a reply, or an object that becomes JSON. Functions that are not coroutines run on a thread."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method and path. `shape` has the fields of the body of a POST, else the parameters."""

    method: str
    path: str
    handler: Handler
    summary: str
    shape: Shape = field(default_factory=dict)
    reply: str = ""
    """Schemas of the reply; by default the summary describes it."""
    is_strict: bool = True
    """Whether unknown fields of the body are refused."""
    kinds: tuple[str, ...] = ("application/json",)
    """Media types of the reply."""
    is_open: bool = False
    """Whether no token is needed."""

    async def serve(self, request: Request) -> Response:
        """Answer a request."""
        if self.method == "POST":
            values = await read_body(request, self.shape, strict=self.is_strict)
        else:
            values = read_parameters(request, self.shape)
        call = Call(request, request.app.state.service, values)
        if iscoroutinefunction(self.handler):
            return _response(await self.handler(call))
        reply: Response = await call.service.aside(lambda: _response(self.handler(call)))
        return reply

    def operation(self) -> dict[str, Any]:
        """Return the description in the form of OpenAPI."""
        schemas = {kind: {"type": "object"} if kind == "application/json" else _TEXT for kind in self.kinds}
        content = {kind: {"schema": schema} for kind, schema in schemas.items()}
        found: dict[str, Any] = {
            "summary": self.summary,
            "responses": {"200": {"description": self.reply or self.summary, "content": content}} | _FAILURES,
        }
        if self.method == "POST":
            body = {"application/json": {"schema": shape_schema(self.shape, strict=self.is_strict)}}
            found["requestBody"] = {"required": True, "content": body}
        else:
            found["parameters"] = parameters_schema(self.path, self.shape)
        return {**found, "security": []} if self.is_open else found


def _response(result: Any) -> Response:
    return result if isinstance(result, Response) else json_reply(result)


def routes(endpoints: Iterable[Endpoint]) -> list[Route]:
    """Return a route for each path. Endpoints with one path must be next to each other."""
    found = []
    for path, group in groupby(endpoints, lambda one: one.path):
        by_method = {one.method: one for one in group}

        async def serve(request: Request, own: dict[str, Endpoint] = by_method) -> Response:
            return await own["GET" if request.method == "HEAD" else request.method].serve(request)

        found.append(Route(path, serve, methods=list(by_method)))
    return found


def openapi_document(endpoints: Iterable[Endpoint], *, has_token: bool) -> dict[str, Any]:
    """Return the OpenAPI document of the service."""
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path.replace(":path}", "}"), {})[one.method.lower()] = one.operation()
    data: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "ketrag",
            "version": "1",
            "description": "Retrieval and answers from graph indexes",
        },
        "paths": paths,
        "components": {"schemas": {"Error": {"anyOf": [_ERROR, _OPENAI_ERROR]}}},
    }
    if has_token:
        data["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        data["security"] = [{"token": []}]
    return data
