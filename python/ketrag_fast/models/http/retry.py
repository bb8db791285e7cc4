"""How long an endpoint is waited for. Apart from the client, whose modules take long to import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to try: attempts, the first pause in seconds (doubled each time), seconds for one reply."""

    attempts: int = 6
    pause: float = 0.5
    timeout: float = 120.0
