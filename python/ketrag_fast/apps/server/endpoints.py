"""Endpoints: fields of bodies and parameters, how requests are validated and answered, and OpenAPI."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from itertools import groupby
from typing import Any, Final, Literal

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ketrag_fast import records
from ketrag_fast.apps.server.callers import QUESTION, forbidden, user_of
from ketrag_fast.apps.server.replies import Problem, json_reply
from ketrag_fast.apps.server.service import OpenIndex, OpenIndexes, SeenIndexes, Service
from ketrag_fast.apps.server.users import User
from ketrag_fast.records import dataclass, replace

Kind = Literal["string", "integer", "number", "boolean", "array", "object", "any"]
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "any": (object,),
}
_DEEP: Final = 64
_DIGITS: Final = 19


@dataclass(frozen=True)
class Field:
    """A field of a body, or a parameter. `least` and `most` bound a number or a length."""

    kind: Kind
    help: str
    required: bool = False
    least: float | None = None
    most: float | None = None
    items: Field | None = None
    choices: tuple[str, ...] = ()
    fields: Mapping[str, Field] | None = None
    above: bool = False
    """Whether a number must be greater than `least`."""

    def schema(self) -> dict[str, Any]:
        """Return the field as JSON Schema."""
        schema: dict[str, Any] = {"description": self.help}
        if self.kind != "any":
            schema["type"] = [self.kind, "null"] if not self.required else self.kind
        low, high = _BOUNDS.get(self.kind, ("minimum", "maximum"))
        if self.least is not None:
            schema["exclusiveMinimum" if self.above else low] = self.least
        if self.most is not None:
            schema[high] = self.most
        if self.choices:
            schema["enum"] = [*self.choices] if self.required else [*self.choices, None]
        if self.items is not None:
            schema["items"] = self.items.schema()
        if self.fields is not None:
            schema |= shape_schema(self.fields)
            schema["type"] = "object" if self.required else ["object", "null"]
        return schema


_BOUNDS: Final = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}
Shape = Mapping[str, Field]


def shape_schema(shape: Shape, *, strict: bool = True) -> dict[str, Any]:
    """Return a body as JSON Schema."""
    required = [name for name, field in shape.items() if field.required]
    return {
        "type": "object",
        "properties": {name: field.schema() for name, field in shape.items()},
        **({"required": required} if required else {}),
        **({"additionalProperties": False} if strict else {}),
    }


def parameters_schema(path: str, shape: Shape) -> list[dict[str, Any]]:
    """Return the parameters of a path and its query string in the form of OpenAPI."""
    rows: list[dict[str, Any]] = []
    for name, field in shape.items():
        schema = replace(field, required=True).schema()
        row = {"name": name, "description": schema.pop("description"), "schema": schema}
        is_in_path = f"{{{name}" in path
        rows.append({**row, "in": "path", "required": True} if is_in_path else {**row, "in": "query"})
    return rows


def read_parameters(request: Request, shape: Shape) -> dict[str, Any]:
    """Return the parameters of the path and the query string.

    Raises Problem 422 as `read_body` does, also for a misspelt `filter`, which must not return everything.
    """
    path, query = request.path_params, request.query_params
    known = [name for name in shape if name not in path]
    for name in sorted(set(query).difference(known)):
        hint = f"parameters are: {', '.join(known)}"
        raise Problem(422, "bad_request", f"unknown parameter {name[:64]!r}", hint=hint, param=name[:64])
    given: dict[str, Any] = {name: query.getlist(name) for name in query} | {n: [path[n]] for n in path}
    for name, texts in given.items():
        kind = shape[name].kind
        if kind != "array":
            text = given[name] = texts[-1]
            is_number = text.isascii() and text.isdigit() and len(text) < _DIGITS
            given[name] = int(text) if kind == "integer" and is_number else text
    return check_fields(given, shape, "")


async def _bytes_of(request: Request, most: int, seconds: float) -> bytes:
    """Return the whole body; raise Problem if it is too large or arrives too slowly."""
    length = request.headers.get("content-length")
    if length is not None and length.isdigit() and int(length) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
    except TimeoutError:
        raise Problem(408, "too_slow", f"the body did not arrive within {seconds:g} s") from None
    except ClientDisconnect:
        raise Problem(499, "gone", "the client disconnected") from None
    return b"".join(parts)


def _too_large(most: int) -> Problem:
    hint = "start the service with a larger --max-body, or send less in one request"
    return Problem(413, "too_large", f"the body has more than {most:,} bytes", hint=hint)


async def read_body(request: Request, shape: Shape, *, strict: bool = True) -> dict[str, Any]:
    """Return the fields of a body that are present and not null.

    Raises Problem 400 for invalid JSON, 422 for a field that is unknown (if `strict`), missing, of another
    type or out of bounds.
    """
    options = request.app.state.service.options
    content = request.headers.get("content-type", "")
    if content and content.split(";", 1)[0].strip().lower() not in ("application/json", "text/json"):
        raise Problem(415, "not_json", "the Content-Type of the body must be application/json")
    body = await _bytes_of(request, options.body, options.read_seconds)
    try:
        data = orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise Problem(400, "bad_json", f"the body is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise Problem(422, "bad_request", "the body must be a JSON object")
    return check_fields(data, shape, "", strict=strict)


def check_fields(data: Mapping[str, Any], shape: Shape, where: str, *, strict: bool = True) -> dict[str, Any]:
    """Validate an object, as `read_body` does."""
    unknown = next((name for name in data if name not in shape), None)
    if strict and unknown is not None:
        raise _wrong(f"{where}{str(unknown)[:60]}", "unknown field", f"fields: {', '.join(shape)}")
    values: dict[str, Any] = {}
    for name, field in shape.items():
        value = data.get(name)
        if value is None:
            if field.required:
                raise _wrong(f"{where}{name}", "missing")
            continue
        values[name] = _value(value, field, f"{where}{name}", strict=strict)
    return values


def _value(value: Any, field: Field, where: str, *, strict: bool) -> Any:
    if field.kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = isinstance(value, _TYPES[field.kind])
    if not fits or (isinstance(value, bool) and field.kind in ("integer", "number")):
        raise _wrong(where, f"must be of type {field.kind}")
    sized = len(value) if field.kind in ("string", "array") else value
    what = {"string": " characters", "array": " entries"}.get(field.kind, "")
    if field.least is not None and (sized < field.least or (field.above and sized == field.least)):
        why = f"above {field.least:g}" if field.above else f"at least {field.least:g}{what}"
        raise _wrong(where, f"must be {why}")
    if field.most is not None and sized > field.most:
        raise _wrong(where, f"must be at most {field.most:,.15g}{what}")
    if field.choices and value not in field.choices:
        raise _wrong(where, f"must be one of {', '.join(field.choices)}")
    if field.items is not None:
        return [_value(one, field.items, f"{where}[{n}]", strict=strict) for n, one in enumerate(value)]
    if field.fields is not None:
        return check_fields(value, field.fields, f"{where}.", strict=strict)
    if field.kind in ("object", "any") and _depth(value) > _DEEP:
        raise _wrong(where, f"must not be nested deeper than {_DEEP} levels")
    return value


def _depth(value: Any) -> int:
    deep, level = 0, [value]
    while level and deep <= _DEEP:
        deep += 1
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return deep


def _wrong(where: str, why: str, hint: str | None = None) -> Problem:
    return Problem(422, "bad_request", f"{where}: {why}", hint=hint, param=where)


INDEX: Final = Field("string", "index name; default: the first index")
_TEXT: Final = {"type": "string"}
_FILES: Final = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {"type": "array", "items": {"type": "string", "contentMediaType": "application/octet-stream"}}
    },
}
"""The form of uploaded files."""
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
    def user(self) -> User:
        """Who sent the request."""
        return user_of(self.request.scope)

    @property
    def indexes(self) -> OpenIndexes | SeenIndexes:
        """The indexes with the documents that the user may see."""
        return self.service.indexes.seen_by(self.user)

    @property
    def entry(self) -> OpenIndex:
        """The index that the request names, with the documents that the user may see. Raises Problem 404."""
        return self.indexes.find(self.values.get("index"))

    def require(self, ability: str) -> None:
        """Raise Problem 403 if the user may not do something."""
        if ability not in self.user.may:
            raise forbidden(self.user, ability)


Handler = Callable[[Call], Any] | Callable[[Call], Awaitable[Any]]
"""Returns a reply, or an object that becomes JSON. Functions that are not coroutines run on a thread."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method and path. `shape` has the fields of the body of a POST, else the parameters."""

    method: str
    path: str
    handler: Handler
    summary: str
    shape: Shape = records.field(default_factory=dict)
    reply: str = ""
    """Schemas of the reply; by default the summary describes it."""
    is_strict: bool = True
    """Whether unknown fields of the body are refused."""
    kinds: tuple[str, ...] = ("application/json",)
    """Media types of the reply."""
    is_open: bool = False
    """Whether no token is needed."""
    receives: tuple[str, ...] = ()
    """Media types of a body that the handler reads itself; `shape` then has the parameters of a POST."""

    async def serve(self, request: Request) -> Response:
        """Answer a request."""
        if self.method == "POST" and not self.receives:
            values = await read_body(request, self.shape, strict=self.is_strict)
        else:
            values = read_parameters(request, self.shape)
        call = Call(request, request.app.state.service, values)
        request.scope[QUESTION] = values.get("question") or values.get("query")
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
        if self.receives:
            found["parameters"] = parameters_schema(self.path, self.shape)
            bodies = {
                kind: {"schema": _FILES if kind.startswith("multipart") else _TEXT} for kind in self.receives
            }
            found["requestBody"] = {"required": True, "content": bodies}
        elif self.method == "POST":
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
