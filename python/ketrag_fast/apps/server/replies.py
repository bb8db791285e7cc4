"""JSON replies, server-sent events and log lines, with control characters escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from starlette.responses import Response

from ketrag_fast.secrets import redact_all

_UNSEEN: Final = tuple(
    (pattern[:1], re.compile(pattern))
    for pattern in (
        b"\x7f",
        b"\xc2[\x80-\x9f]",
        b"\xd8\x9c",
        b"\xe2(?:\x80[\x8e\x8f\xa8-\xae]|\x81[\xa6-\xa9])",
        b"\xef(?:\xbb\xbf|\xbf[\xb9-\xbb])",
        b"\xf3\xa0[\x80\x81][\x80-\xbf]",
    )
)
"""Terminal controls and invisible characters that JSON does not escape, by first byte.

A single pattern for all would scan every byte, which takes twice as long as writing the JSON.
"""
JSON: Final = "application/json"


def json_bytes(data: Any) -> bytes:
    """Return JSON as bytes. NumPy numbers and tuples are accepted; terminal controls are escaped."""
    try:
        text = orjson.dumps(data, _other, orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:
        # Metadata may hold integers above 64 bits and deeper nesting than orjson writes.
        text = json.dumps(data, default=_plain, separators=(",", ":")).encode()
    for first, pattern in _UNSEEN:
        if first in text:
            text = pattern.sub(_escape, text)
    return text


def _escape(match: re.Match[bytes]) -> bytes:
    units = match[0].decode().encode("utf-16-be")
    return b"".join(b"\\u" + units[at : at + 2].hex().encode() for at in range(0, len(units), 2))


def _other(value: Any) -> Any:
    if isinstance(value, (Mapping, Sequence)):
        return dict(value) if isinstance(value, Mapping) else list(value)
    raise TypeError(f"JSON has no {type(value).__name__}")


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else _other(value)


def json_reply(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a reply with one JSON document."""
    return Response(json_bytes(data), status, headers, JSON)


def event(data: Any, name: str | None = None) -> bytes:
    """Return a server-sent event; its JSON contains no line breaks."""
    head = b"" if name is None else b"event: " + name.encode() + b"\n"
    return head + b"data: " + json_bytes(data) + b"\n\n"


def log_text(text: str) -> str:
    """Return client input as one log line, without control characters and keys."""
    return redact_all(text.encode("unicode_escape").decode())
