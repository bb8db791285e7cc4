"""What an endpoint costs: tokens counted, dollars limited before they are spent."""

from __future__ import annotations

import math
import threading

from ketrag_fast.errors import BackendError, ConfigError


class LimitReachedError(BackendError):
    """The next request might pass the limit in USD; nothing was sent."""


class Account:
    """Tokens sent to an endpoint and received; refuses a request that would pass the limit. Safe for
    threads.

    A request is booked by an estimate before it is sent and settled by the endpoint's own count after. The
    price of a million tokens is that of the input; the output's is the same unless given.
    """

    def __init__(
        self,
        usd_per_million: float | None = None,
        limit_usd: float | None = None,
        *,
        usd_per_million_out: float | None = None,
    ) -> None:
        given = {
            "usd_per_million": usd_per_million,
            "usd_per_million_out": usd_per_million_out,
            "limit_usd": limit_usd,
        }
        for name, value in given.items():
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"{name} must be a number from 0 up, not {value!r}")
        if usd_per_million is None and (limit_usd is not None or usd_per_million_out is not None):
            raise ConfigError(
                "a limit in USD needs the price of the model",
                hint="give the price of a million tokens (usd_per_million)",
            )
        self._price = usd_per_million
        self._price_out = usd_per_million if usd_per_million_out is None else usd_per_million_out
        self._limit = limit_usd
        self._in = self._out = 0
        self._lock = threading.Lock()

    @property
    def tokens(self) -> int:
        """Spent or booked so far, in and out."""
        return self._in + self._out

    @property
    def tokens_in(self) -> int:
        """Sent so far, or booked to be."""
        return self._in

    @property
    def tokens_out(self) -> int:
        """Received so far, or booked to be."""
        return self._out

    @property
    def usd(self) -> float | None:
        """What they cost, if the price is known."""
        return None if self._price is None else self._cost(self._in, self._out)

    def book(self, tokens: int, out: int = 0) -> None:
        """Before a request: its tokens, and the most that its reply may have."""
        with self._lock:
            if self._limit is not None and self._cost(self._in + tokens, self._out + out) > self._limit:
                raise LimitReachedError(
                    f"the limit of {self._limit:g} USD would be passed "
                    f"(spent: {self._cost(self._in, self._out):.4f})",
                    hint="raise --limit-usd and run the same command again: what was done before is kept",
                )
            self._in += tokens
            self._out += out

    def settle(
        self, booked: int, counted: int | None, booked_out: int = 0, counted_out: int | None = None
    ) -> None:
        """After the reply: the endpoint's counts take the estimates' places, if it gave them."""
        with self._lock:
            if counted is not None:
                self._in += counted - booked
            if counted_out is not None:
                self._out += counted_out - booked_out

    def _cost(self, tokens: int, out: int) -> float:
        return (tokens * (self._price or 0.0) + out * (self._price_out or 0.0)) / 1e6
