"""Error replies: the library's typed errors with an HTTP status, without paths of this machine."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any, Final

from ketrag_fast.errors import KetragError

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
