"""Request bodies and parameters, validated field by field.

The OpenAPI document describes the same fields.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import orjson
from starlette.requests import ClientDisconnect, Request

from ketrag_fast.apps.server.problems import Problem

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
    return Problem(413, "too_large", f"the body has more than {most:,} bytes")


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
