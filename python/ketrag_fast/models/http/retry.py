"""Retry settings of endpoints, in a separate module because the client is slow to import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of attempts, first pause in seconds (then doubled), and timeout of each attempt in seconds, from
    connecting to the last byte.
    """

    attempts: int = 6
    pause: float = 0.5
    timeout: float = 120.0
