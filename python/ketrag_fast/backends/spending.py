"""What an endpoint costs: tokens counted, dollars limited before they are spent."""

from __future__ import annotations

import math
import threading

from ketrag_fast.errors import BackendError, ConfigError


class Account:
    """Tokens sent to an endpoint; refuses a request that would pass the limit. Safe for threads.

    A request is booked by an estimate before it is sent and settled by the endpoint's own count after.
    """

    def __init__(self, usd_per_million: float | None = None, limit_usd: float | None = None) -> None:
        for name, value in (("usd_per_million", usd_per_million), ("limit_usd", limit_usd)):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"{name} must be a number from 0 up, not {value!r}")
        if limit_usd is not None and usd_per_million is None:
            raise ConfigError(
                "a limit in USD needs the price of the model",
                hint="give the price of a million tokens (usd_per_million)",
            )
        self._price = usd_per_million
        self._limit = limit_usd
        self._tokens = 0
        self._exhausted = False
        self._lock = threading.Lock()

    @property
    def tokens(self) -> int:
        """Spent or booked so far."""
        return self._tokens

    @property
    def usd(self) -> float | None:
        """What they cost, if the price is known."""
        return None if self._price is None else self._tokens * self._price / 1e6

    @property
    def exhausted(self) -> bool:
        """Whether a request was refused because it would have passed the limit."""
        return self._exhausted

    def book(self, tokens: int) -> None:
        """Before a request."""
        with self._lock:
            if self._limit is not None and self._price is not None:
                after = (self._tokens + tokens) * self._price / 1e6
                if after > self._limit:
                    self._exhausted = True
                    raise BackendError(
                        f"the limit of {self._limit:g} USD would be passed "
                        f"(spent: {self._tokens * self._price / 1e6:.4f})",
                        hint="raise --limit-usd and run the same command again: what was paid for is kept",
                    )
            self._tokens += tokens

    def settle(self, booked: int, counted: int | None) -> None:
        """After the reply: the endpoint's count takes the estimate's place, if it gave one."""
        if counted is not None:
            with self._lock:
                self._tokens += counted - booked
