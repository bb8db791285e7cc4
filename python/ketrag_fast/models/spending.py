"""What an endpoint costs: tokens counted, dollars limited before they are spent."""

from __future__ import annotations

import math
import threading

from ketrag_fast.errors import BackendError, ConfigError


class LimitReachedError(BackendError):
    """The next request might pass the limit in USD; nothing was sent."""


class SpendingLimit:
    """What a whole build, or an opened index, may cost: one limit over the accounts of all its models.

    Safe for threads. A limit needs the price of every model that is asked.
    """

    def __init__(self, usd: float | None = None) -> None:
        _require_amount("limit_usd", usd)
        self.usd = usd
        self.lock = threading.Lock()
        self._accounts: list[Account] = []

    def add(self, account: Account) -> None:
        """Counts an account in."""
        with self.lock:
            self._accounts.append(account)

    @property
    def spent(self) -> float:
        """USD of all accounts; those without a price count nothing."""
        return sum(account.usd or 0.0 for account in self._accounts)

    def require(self, more: float) -> None:
        """LimitReachedError if `more` USD would pass the limit; the caller holds `lock`."""
        if self.usd is not None and self.spent + more > self.usd:
            raise LimitReachedError(
                f"the limit of {self.usd:g} USD would be passed (spent: {self.spent:.4f})",
                hint="raise --limit-usd and run the same command again: what was done before is kept",
            )


class Account:
    """Tokens sent to one model behind an endpoint and received, at that model's price; refuses a request
    that would pass the limit. Safe for threads.

    A request is booked by an estimate before it is sent and settled by the endpoint's own count after. The
    price of a million tokens is that of the input; the output's is the same unless given. `limit` is in USD
    for this account alone, or the limit that it shares with others. `usd_later` is kept back for each
    million tokens received: what a model says of the chunks is embedded afterwards, from the same limit.
    """

    def __init__(
        self,
        usd_per_million: float | None = None,
        limit: float | SpendingLimit | None = None,
        *,
        usd_per_million_out: float | None = None,
        usd_later: float = 0.0,
    ) -> None:
        _require_amount("usd_per_million", usd_per_million)
        _require_amount("usd_per_million_out", usd_per_million_out)
        self._limit = limit if isinstance(limit, SpendingLimit) else SpendingLimit(limit)
        if usd_per_million is None and (self._limit.usd is not None or usd_per_million_out is not None):
            raise ConfigError(
                "a limit in USD needs the price of the model",
                hint="give the price of a million tokens (usd_per_million)",
            )
        self._price = usd_per_million
        self._price_out = usd_per_million if usd_per_million_out is None else usd_per_million_out
        self._later = usd_later
        self._in = self._out = 0
        self._limit.add(self)

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
        with self._limit.lock:
            later = self._later * (self._out + out) / 1e6
            self._limit.require(self._cost(tokens, out) + later)
            self._in += tokens
            self._out += out

    def settle(
        self, booked: int, counted: int | None, booked_out: int = 0, counted_out: int | None = None
    ) -> None:
        """After the reply: the endpoint's counts take the estimates' places, if it gave them."""
        with self._limit.lock:
            if counted is not None:
                self._in += counted - booked
            if counted_out is not None:
                self._out += counted_out - booked_out

    def _cost(self, tokens: int, out: int) -> float:
        return (tokens * (self._price or 0.0) + out * (self._price_out or 0.0)) / 1e6


def _require_amount(name: str, value: float | None) -> None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise ConfigError(f"{name} must be a number from 0 up, not {value!r}")
