"""Request bodies: read within limits, validated field by field, and described in the OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Field:
    """One field of a body. `least` and `most` bound a number, or the length of a string or array."""

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


async def bytes_of(request: Request, most: int, seconds: float) -> bytes:
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
    state = request.app.state.service
    content = request.headers.get("content-type", "")
    if content and content.split(";", 1)[0].strip().lower() not in ("application/json", "text/json"):
        raise Problem(415, "not_json", "the Content-Type of the body must be application/json")
    body = await bytes_of(request, state.options.body, state.options.read_seconds)
    return parse_body(body, shape, strict=strict)


def parse_body(body: bytes, shape: Shape, *, strict: bool = True) -> dict[str, Any]:
    """Return the validated fields of a body."""
    try:
        data = orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise Problem(400, "bad_json", f"the body is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise Problem(422, "bad_request", "the body must be a JSON object")
    return check_fields(data, shape, "", strict=strict)


def check_fields(data: Mapping[str, Any], shape: Shape, where: str, *, strict: bool = True) -> dict[str, Any]:
    """Validate an object inside a body, as `read_body` does."""
    if strict:
        unknown = [name for name in data if name not in shape]
        if unknown:
            name = str(unknown[0])[:60]
            raise _wrong(f"{where}{name}", "unknown field", f"fields: {', '.join(shape)}")
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
    good = _TYPES[field.kind]
    whole = field.kind == "integer" and isinstance(value, float) and value.is_integer()
    if whole:
        value = int(value)
    fits = isinstance(value, good) and not (isinstance(value, bool) and field.kind in ("integer", "number"))
    if not fits:
        raise _wrong(where, f"must be of type {field.kind}")
    sized = len(value) if field.kind in ("string", "array") else value
    what = {"string": " characters", "array": " entries"}.get(field.kind, "")
    if field.least is not None and (sized < field.least or (field.above and sized == field.least)):
        raise _wrong(
            where,
            f"must be at least {field.least:g}{what}"
            if not field.above
            else f"must be above {field.least:g}",
        )
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
