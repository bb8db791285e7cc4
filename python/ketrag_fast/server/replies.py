"""Replies as finished bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from starlette.responses import Response

from ketrag_fast.keys import hidden

_UNSEEN: Final = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]"
    rb"|\xef\xbb\xbf|\xef\xbf[\xb9-\xbb]"
)
"""What a terminal obeys or hides, and JSON leaves as it is: sent as JSON's own escapes."""
JSON: Final = "application/json"


def dumped(data: Any) -> bytes:
    """JSON as bytes. Numbers of NumPy and tuples are taken; what a terminal would obey is escaped."""
    made = orjson.dumps(data, _other, orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    return made if made.isascii() else _UNSEEN.sub(_escaped, made)


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def _other(value: Any) -> Any:
    if isinstance(value, (Mapping, Sequence)):
        return dict(value) if isinstance(value, Mapping) else list(value)
    raise TypeError


def json_reply(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A reply with one JSON document."""
    return Response(dumped(data), status, headers, JSON)


def event(data: Any, name: str | None = None) -> bytes:
    """An event of a stream (server-sent events); JSON has no line ends of its own."""
    head = b"" if name is None else b"event: " + name.encode() + b"\n"
    return head + b"data: " + dumped(data) + b"\n\n"


def log_text(text: str) -> str:
    """One line for the log: of a stranger's text nothing moves the cursor, and no key stands in it."""
    return hidden(text.encode("unicode_escape").decode())
