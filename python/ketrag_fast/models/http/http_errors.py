"""How an endpoint says no, and why."""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime
from typing import Final

from ketrag_fast.errors import BackendError
from ketrag_fast.secrets import redact_all, without_keys

SHOWN: Final = 300
"""Characters of what a stranger says, in an error."""
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
    """The endpoint says that a text is longer than its model reads."""


class RefusedError(BackendError):
    """The endpoint answered with a status that will not pass; `status` is it."""

    def __init__(self, message: str, status: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class UnreachableError(BackendError):
    """Nobody listens at the address."""


def reason_of(content: bytes) -> str:
    """What the content of a refusal gives as its reason; keys are covered before it is cut short."""
    text = content.decode("utf-8", "replace")
    try:
        found = without_keys(json.loads(text))
        error = found.get("error", found.get("detail", found)) if isinstance(found, dict) else found
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, RecursionError):
        pass
    return redact_all(" ".join(text.split()))[:SHOWN] or "no reason given"


def about_length(text: str) -> bool:
    """Whether a reason is about the length of a text."""
    plain = text.lower()
    if "not support" in plain or "unsupported" in plain:  # of a parameter, "max_tokens" for one
        return False
    return any(word in plain for word in _ABOUT_LENGTH)


def wait_of(value: str) -> float | None:
    """Seconds that a Retry-After header asks for; None where it says nothing that can be read."""
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
