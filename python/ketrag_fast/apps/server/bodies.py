"""Bodies of requests: read within bounds, checked field by field, and shown in the OpenAPI document."""

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
    """One field of a body. `least` and `most` bound a number, or the length of a text or list."""

    kind: Kind
    help: str
    required: bool = False
    least: float | None = None
    most: float | None = None
    items: Field | None = None
    choices: tuple[str, ...] = ()
    fields: Mapping[str, Field] | None = None
    above: bool = False
    """A number above `least`, not equal to it."""

    def schema(self) -> dict[str, Any]:
        """As OpenAPI says it."""
        made: dict[str, Any] = {"description": self.help}
        if self.kind != "any":
            made["type"] = [self.kind, "null"] if not self.required else self.kind
        low, high = _BOUNDS.get(self.kind, ("minimum", "maximum"))
        if self.least is not None:
            made["exclusiveMinimum" if self.above else low] = self.least
        if self.most is not None:
            made[high] = self.most
        if self.choices:
            made["enum"] = [*self.choices] if self.required else [*self.choices, None]
        if self.items is not None:
            made["items"] = self.items.schema()
        if self.fields is not None:
            made |= shape_schema(self.fields)
            made["type"] = "object" if self.required else ["object", "null"]
        return made


_BOUNDS: Final = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}
Shape = Mapping[str, Field]


def shape_schema(shape: Shape, *, strict: bool = True) -> dict[str, Any]:
    """A body as OpenAPI says it."""
    required = [name for name, field in shape.items() if field.required]
    return {
        "type": "object",
        "properties": {name: field.schema() for name, field in shape.items()},
        **({"required": required} if required else {}),
        **({"additionalProperties": False} if strict else {}),
    }


async def bytes_of(request: Request, most: int, seconds: float) -> bytes:
    """The whole body; Problem where it is too large or comes too slowly."""
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
        raise Problem(408, "too_slow", f"the body did not come within {seconds:g} s") from None
    except ClientDisconnect:
        raise Problem(499, "gone", "the client has gone") from None
    return b"".join(parts)


def _too_large(most: int) -> Problem:
    return Problem(413, "too_large", f"the body has more than {most:,} bytes")


async def read_body(request: Request, shape: Shape, *, strict: bool = True) -> dict[str, Any]:
    """The fields of a body that are there and not null. Problem 400 for what is no JSON, 422 for a field
    that is unknown (where `strict`), lacking, of another type or out of bounds.
    """
    state = request.app.state.service
    content = request.headers.get("content-type", "")
    if content and content.split(";", 1)[0].strip().lower() not in ("application/json", "text/json"):
        raise Problem(415, "not_json", "the body must be application/json")
    body = await bytes_of(request, state.options.body, state.options.read_seconds)
    return parse_body(body, shape, strict=strict)


def parse_body(body: bytes, shape: Shape, *, strict: bool = True) -> dict[str, Any]:
    """The fields of a body."""
    try:
        data = orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise Problem(400, "bad_json", f"the body is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise Problem(422, "bad_request", "the body must be a JSON object")
    return check_fields(data, shape, "", strict=strict)


def check_fields(data: Mapping[str, Any], shape: Shape, where: str, *, strict: bool = True) -> dict[str, Any]:
    """As `read_body`, for an object inside a body."""
    if strict:
        unknown = [name for name in data if name not in shape]
        if unknown:
            name = str(unknown[0])[:60]
            raise _wrong(f"{where}{name}", "there is no such field", f"fields: {', '.join(shape)}")
    found: dict[str, Any] = {}
    for name, field in shape.items():
        value = data.get(name)
        if value is None:
            if field.required:
                raise _wrong(f"{where}{name}", "it is required")
            continue
        found[name] = _value(value, field, f"{where}{name}", strict=strict)
    return found


def _value(given: Any, field: Field, where: str, *, strict: bool) -> Any:
    value: Any = given
    good = _TYPES[field.kind]
    whole = field.kind == "integer" and isinstance(value, float) and value.is_integer()
    if whole:
        value = int(value)
    fits = isinstance(value, good) and not (isinstance(value, bool) and field.kind in ("integer", "number"))
    if not fits:
        raise _wrong(where, f"it must be of type {field.kind}")
    sized = len(value) if field.kind in ("string", "array") else value
    what = {"string": " characters", "array": " entries"}.get(field.kind, "")
    if field.least is not None and (sized < field.least or (field.above and sized == field.least)):
        raise _wrong(
            where, f"at least {field.least:g}{what}" if not field.above else f"above {field.least:g}"
        )
    if field.most is not None and sized > field.most:
        raise _wrong(where, f"at most {field.most:,.15g}{what}")
    if field.choices and value not in field.choices:
        raise _wrong(where, f"one of {', '.join(field.choices)}")
    if field.items is not None:
        return [_value(one, field.items, f"{where}[{n}]", strict=strict) for n, one in enumerate(value)]
    if field.fields is not None:
        return check_fields(value, field.fields, f"{where}.", strict=strict)
    if field.kind in ("object", "any") and _depth(value) > _DEEP:
        raise _wrong(where, f"it is nested more than {_DEEP} deep")
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
