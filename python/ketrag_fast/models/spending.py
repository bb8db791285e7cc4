"""Count the tokens sent to endpoints and enforce a spending limit in USD."""

from __future__ import annotations

import math
import threading

from ketrag_fast.errors import BackendError, ConfigError


class LimitReachedError(BackendError):
    """The next request could exceed the limit in USD; it was not sent."""


class SpendingLimit:
    """The spending limit of a build or an open index, shared by the accounts of all its models.

    Thread-safe. With a limit, every model needs a price.
    """

    def __init__(self, usd: float | None = None) -> None:
        _require_amount("limit_usd", usd)
        self.usd = usd
        self.lock = threading.Lock()
        self._accounts: list[Account] = []

    def add(self, account: Account) -> None:
        """Add an account."""
        with self.lock:
            self._accounts.append(account)

    @property
    def spent(self) -> float:
        """USD spent by all accounts; accounts without a price count as 0."""
        return sum(account.usd or 0.0 for account in self._accounts)

    def require(self, more: float) -> None:
        """Raise LimitReachedError if `more` USD would exceed the limit; the caller holds `lock`."""
        if self.usd is not None and self.spent + more > self.usd:
            raise LimitReachedError(
                f"the limit of {self.usd:g} USD would be exceeded (spent: {self.spent:.4f})",
                hint="raise --limit-usd and run the same command again: finished work is kept",
            )


class Account:
    """The tokens and costs of one model behind an endpoint. Thread-safe.

    A request is booked with an estimate before it is sent, rejected if it would exceed the limit, and settled
    with the token counts of the reply.

    Args:
        usd_per_million: price of a million input tokens, and of output tokens unless given.
        limit: USD for this account, or a limit shared with other accounts.
        usd_per_million_out: price of a million output tokens.
        usd_later: USD reserved per million output tokens, because extracted text is embedded later.
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
        """Input and output tokens so far, including booked ones."""
        return self._in + self._out

    @property
    def tokens_in(self) -> int:
        """Input tokens so far, including booked ones."""
        return self._in

    @property
    def tokens_out(self) -> int:
        """Output tokens so far, including booked ones."""
        return self._out

    @property
    def usd(self) -> float | None:
        """Cost in USD, or None if the price is unknown."""
        return self.price_of(self._in, self._out)

    def price_of(self, tokens: int, out: int) -> float | None:
        """Return the cost of some input and output tokens in USD, or None if the price is unknown."""
        return None if self._price is None else self._cost(tokens, out)

    def book(self, tokens: int, out: int = 0) -> None:
        """Book the tokens of a request and the maximum of its reply, before it is sent."""
        with self._limit.lock:
            later = self._later * (self._out + out) / 1e6
            self._limit.require(self._cost(tokens, out) + later)
            self._in += tokens
            self._out += out

    def settle(
        self, booked: int, counted: int | None, booked_out: int = 0, counted_out: int | None = None
    ) -> None:
        """Replace the estimates by the counts of the reply, if it has any."""
        with self._limit.lock:
            if counted is not None:
                self._in += counted - booked
            if counted_out is not None:
                self._out += counted_out - booked_out

    def _cost(self, tokens: int, out: int) -> float:
        return (tokens * (self._price or 0.0) + out * (self._price_out or 0.0)) / 1e6


def _require_amount(name: str, value: float | None) -> None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise ConfigError(f"{name} must be a number of at least 0, got {value!r}")
