"""Validation of the fields of a query, and the clock that limits all of its steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from operator import index
from typing import Any, Final

from ketrag_fast.base.config.fields import LONGEST_SECONDS, short_repr
from ketrag_fast.errors import ConfigError, DeadlineExceeded, EmptyQuery, InputError

ENDLESS: Final = 2**62
"""Limit of token and passage counts.

It is above the size of any index, and twice it fits the core's integers.
"""
MOST_HOPS: Final = 20


def check_text(text: str, position: int | None = None) -> str:
    """Return the text of a query.

    Args:
        text: The query.
        position: The position of the query in a list, for the error message.

    Raises:
        EmptyQuery: The text is empty or blank.
        InputError: It is not a str.
    """
    name = "the question" if position is None else f"question {position}"
    if not isinstance(text, str):
        raise InputError(f"{name} is of type {type(text).__name__}", hint="pass a str or a Query")
    if not text.strip():
        raise EmptyQuery(f"{name} is empty", hint="give at least one word")
    return text


def check_hops(hops: Sequence[str]) -> tuple[str, ...]:
    """Return the hops of a query. Raises InputError if they are not a short list of strings."""
    if isinstance(hops, str) or not all(isinstance(hop, str) and hop.strip() for hop in hops):
        raise InputError("hops must be a list of texts that are not empty", hint='such as ["Orion Pictures"]')
    if len(hops) > MOST_HOPS:
        raise InputError(f"hops must be at most {MOST_HOPS}, got {len(hops)}", hint="leave out older ones")
    return tuple(hops)


def core_text(text: str) -> str:
    """Return a text in the form that the core accepts.

    A lone surrogate (a byte that could not be decoded) has no UTF-8 form, and no keyword contains one.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def whole(name: str, value: Any) -> int:
    """Return a Python or NumPy integer as an int. Raises ConfigError for any other type."""
    try:
        return index(value)
    except TypeError:
        raise ConfigError(f"{name} must be a whole number, got a {type(value).__name__}") from None


def check_budget(tokens: int) -> int:
    """Return a budget that fits the core's integers. Raises ConfigError if it is negative or not whole."""
    number = whole("budget", tokens)
    if number < 0:
        raise ConfigError(
            f"budget must not be negative, got {short_repr(number)}", hint="give a number of tokens"
        )
    return min(number, ENDLESS)


def check_top(passages: int) -> int:
    """Return a number of passages that fits the core's integers. Raises ConfigError if it is negative."""
    number = whole("top", passages)
    if number < 0:
        raise ConfigError(
            f"top must not be negative, got {short_repr(number)}", hint="give a number of passages"
        )
    return min(number, ENDLESS)


def check_min_score(relevance: float) -> float:
    """Return a minimum relevance. Raises ConfigError if it is not a number from 0 to 1."""
    number = isinstance(relevance, (int, float)) and not isinstance(relevance, bool)
    if not (number and 0 <= relevance <= 1):
        raise ConfigError(
            f"min_score must be from 0 to 1, got {short_repr(relevance)}", hint="0 keeps every passage"
        )
    return float(relevance)


def check_deadline(seconds: float) -> float:
    """Return a deadline in seconds. Raises InputError if it is negative, infinite or not a number."""
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not (number and 0 <= seconds < float("inf")):
        raise InputError(
            f"deadline must be a number of seconds from 0 up, got {short_repr(seconds)}",
            hint="leave it out for no limit",
        )
    return seconds


class Clock:
    """Measures the time left for a batch of queries, from validation to the last context."""

    def __init__(self, seconds: float | None, queries: int) -> None:
        """Start the clock. `seconds` is the deadline of one query, None for no limit."""
        self._start = time.monotonic()
        self._queries = max(queries, 1)
        self._seconds = None if seconds is None else min(check_deadline(seconds), LONGEST_SECONDS)

    def left(self) -> float | None:
        """Return the seconds left for the batch, or None without a limit. Raises DeadlineExceeded at 0."""
        if self._seconds is None:
            return None
        left = self._seconds * self._queries - (time.monotonic() - self._start)
        if left <= 0:
            raise DeadlineExceeded(
                f"the deadline of {self._seconds:g} s passed before anything was ranked",
                hint="allow more time, or use a faster mode",
            )
        return left

    def each(self) -> float | None:
        """Return the seconds left, divided by the number of queries in the batch."""
        left = self.left()
        return None if left is None else left / self._queries
