"""JSON replies, server-sent events, error replies without paths of this machine, and log lines."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
from starlette.responses import Response

from ketrag_fast.errors import KetragError
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


log = logging.getLogger("ketrag_fast.apps.server")

STATUS: Final = {
    "input": 400,
    "unknown_name": 404,
    "config": 400,
    "empty_query": 400,
    "document": 422,
    "mode_unavailable": 422,
    "read_only": 403,
    "index_locked": 409,
    "backend": 502,
    "extraction": 502,
    "deadline": 504,
    "storage_full": 507,
    "cancelled": 503,
    "internal": 500,
    "error": 500,
}
"""HTTP status by error code; other codes are 503, because the service cannot answer now."""
LATE: Final = "x-ketrag-late"
"""Header that the front adds to a request whose deadline has passed: the deadline in seconds."""
_QUIET: Final = "the service cannot do this now; see its log"
_PATH: Final = re.compile(
    r"(?<![\w./:])(?:[A-Za-z]:\\|/(?!v1/retrieve(?![\w/\\.-])))(?:[^\s'\"`,;()]+[/\\])+[^\s'\"`,;()]*"
)
_LEAST: Final = 500


class Problem(KetragError):
    """An error with an HTTP status: a bad request, or a service that cannot answer. `headers` are added to
    the reply."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        headers: dict[str, str] | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code
        self.headers = headers or {}
        self.param = param


def busy(seconds: float) -> Problem:
    """Return the error for a full queue; `seconds` is the estimated time until it is empty."""
    wait = max(1, min(round(seconds + 0.5), 60))
    return Problem(
        429,
        "busy",
        "the queue of questions is full",
        hint=f"retry in {wait} s",
        headers={"Retry-After": str(wait)},
    )


def late_reply(seconds: float) -> Problem:
    """Return the error for a request that was not answered within its deadline."""
    return Problem(504, "deadline", f"no answer within {seconds:g} s")


def stopping() -> Problem:
    """Return the error for a request that arrives while the service stops."""
    return Problem(503, "stopping", "the service is stopping", headers={"Connection": "close"})


def status_of(error: KetragError) -> int:
    """Return the HTTP status of a typed error."""
    return error.status if isinstance(error, Problem) else STATUS.get(error.code, 503)


def without_paths(text: str, folders: Iterable[tuple[str, str]]) -> str:
    """Return a message with folders of indexes replaced by their names, and other paths by "…"."""
    for name, folder in folders:
        text = text.replace(folder, name)
    return _PATH.sub("…", text)


def error_json(error: KetragError, folders: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
    """Return the JSON of an error reply. Details of internal errors are logged and not sent."""
    places = tuple(folders)
    status = status_of(error)
    message, hint = error.message, error.hint
    expected = isinstance(error, Problem) or error.code in ("deadline", "cancelled")
    if status >= _LEAST and not expected:
        log.error("%s: %s%s", error.code, error.message, f" ({error.hint})" if error.hint else "")
        message, hint = _QUIET, None
    return {
        "schema": "ketrag/error/1",
        "code": error.code,
        "message": without_paths(message, places),
        "hint": None if hint is None else without_paths(hint, places),
    }
