"""Tokens times prices. An unknown price makes the sum unknown, never smaller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ketrag_fast.lab.cost.prices import Price, Prices
from ketrag_fast.types import Usage


@dataclass(frozen=True, slots=True)
class Bill:
    """USD of one build; None is unknown."""

    llm: float | None
    embedding: float | None

    @property
    def total(self) -> float | None:
        """The sum of both; None if one is unknown."""
        return None if self.llm is None or self.embedding is None else self.llm + self.embedding

    def to_json(self) -> dict[str, Any]:
        """Return the bill as JSON, with "unknown" for a missing price, so that it is not read as free."""
        parts = {"llm": self.llm, "embedding": self.embedding, "total": self.total}
        return {name: "unknown" if usd is None else usd for name, usd in parts.items()}


def bill(usage: Usage, prices: Prices, llm: str, embedder: str) -> Bill:
    """Return the cost of `usage` with these two models, named as in the settings."""
    return Bill(
        _llm(usage.tokens_in, usage.tokens_out, prices.of(llm)),
        _embedding(usage.embedding_tokens, prices.of(embedder)),
    )


def _llm(tokens_in: int, tokens_out: int, price: Price | None) -> float | None:
    if not tokens_in and not tokens_out:
        return 0.0
    if price is None or price.input is None or price.output is None:
        return None
    return (tokens_in * price.input + tokens_out * price.output) / 1e6


def _embedding(tokens: int, price: Price | None) -> float | None:
    if not tokens:
        return 0.0
    if price is None:
        return None
    each = price.embedding if price.embedding is not None else price.input
    return None if each is None else tokens * each / 1e6


def usd_text(usd: float | None) -> str:
    """Return a sum for people, with enough digits for small sums."""
    if usd is None:
        return "unknown"
    return f"{usd:.2f}" if usd >= 1 or usd == 0 else f"{usd:.4f}"
