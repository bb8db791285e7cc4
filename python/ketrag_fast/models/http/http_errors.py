"""Errors of endpoints and their reasons."""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime
from typing import Final

from ketrag_fast.errors import BackendError
from ketrag_fast.secrets import redact_all, without_keys

SHOWN: Final = 300
"""Maximum length of quoted remote text in an error, in characters."""
_ABOUT_LENGTH: Final = (
    "too long",
    "too large",
    "context length",
    "context size",
    "maximum input",
    "max_tokens",
    "exceed",
    "longer than",
)


class TooLongError(BackendError):
    """The endpoint reports that a text exceeds the maximum input of its model."""


class RefusedError(BackendError):
    """The endpoint answered with a permanent error `status`."""

    def __init__(self, message: str, status: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class UnreachableError(BackendError):
    """The connection to the address was refused."""


def reason_of(content: bytes) -> str:
    """Return the reason in an error response; keys are redacted before it is truncated."""
    text = content.decode("utf-8", "replace")
    try:
        found = without_keys(json.loads(text))
        error = found.get("error", found.get("detail", found)) if isinstance(found, dict) else found
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, RecursionError):
        pass
    return redact_all(" ".join(text.split()))[:SHOWN] or "no reason given"


def about_length(text: str) -> bool:
    """Return whether a reason is about the length of a text."""
    plain = text.lower()
    if "not support" in plain or "unsupported" in plain:  # about a parameter such as "max_tokens"
        return False
    return any(word in plain for word in _ABOUT_LENGTH)


def wait_of(value: str) -> float | None:
    """Return the seconds of a Retry-After header, or None if it is missing or invalid."""
    if not value:
        return None
    try:
        return max(float(value), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
