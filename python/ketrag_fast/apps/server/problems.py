"""Errors as replies: the library's own typed errors with a status, and no path of this machine in them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any, Final

from ketrag_fast.errors import KetragError

log = logging.getLogger("ketrag_fast.apps.server")

STATUS: Final = {
    "input": 400,
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
"""By code; what is missing here is 503: something of this server cannot be used now."""
_QUIET: Final = "the service cannot do this now; its log says why"
_PATH: Final = re.compile(r"(?<![\w./:])(?:[A-Za-z]:\\|/)(?:[^\s'\"`,;()]+[/\\])+[^\s'\"`,;()]*")
_LEAST: Final = 500


class Problem(KetragError):
    """What is wrong with a request; the service's own errors. `headers` go with the reply."""

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
    """The queue is full; `seconds` is about how long it takes to empty."""
    wait = max(1, min(round(seconds + 0.5), 60))
    return Problem(
        429,
        "busy",
        "the service has as many questions as it can hold",
        hint=f"ask again in {wait} s",
        headers={"Retry-After": str(wait)},
    )


def status_of(error: KetragError) -> int:
    """The status of a typed error."""
    return error.status if isinstance(error, Problem) else STATUS.get(error.code, 503)


def without_paths(text: str, folders: Iterable[tuple[str, str]]) -> str:
    """A message in which an index is called by its name, and no other path stands."""
    for name, folder in folders:
        text = text.replace(folder, name)
    return _PATH.sub("…", text)


def error_json(error: KetragError, folders: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
    """The error as it is sent. What is no fault of the request is said in the log alone."""
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
