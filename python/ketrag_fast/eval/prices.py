"""Cost in USD from token counts and the user's price table.

No price is in the code, because prices change and depend on the user's contract.

An unknown price makes a sum unknown, never smaller.

date = "2026-11-01"                      # when the prices were looked up

[models."gpt-4o-mini"]
input = 0.15                             # USD for a million tokens
output = 0.60

[models."text-embedding-3-small"]
embedding = 0.02
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ketrag_fast.base.config.fields import short_repr
from ketrag_fast.base.safe_io import read_toml
from ketrag_fast.errors import ConfigError
from ketrag_fast.records import dataclass, field
from ketrag_fast.systems.registry import registry
from ketrag_fast.types import Usage

DEFAULT_FILE: Final = "prices.toml"
_KINDS: Final = ("input", "output", "embedding")
_READERS: Final = frozenset(("none", "heuristic", "replay", "llama-cpp"))
_EMBEDDERS: Final = frozenset(("builtin", "native", "local", "sentence-transformers", "vectors"))
_LOCAL: Final = _READERS | _EMBEDDERS
"""Kinds of readers and embedders that cost nothing."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; None is unknown."""

    input: float | None = None
    output: float | None = None
    embedding: float | None = None


_MOST: Final = 1e12
FREE: Final = Price(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Prices:
    """A price table with its date. Without a file it is empty, and every paid model's price is unknown."""

    models: Mapping[str, Price] = field(default_factory=dict)
    date: str | None = None
    path: str | None = None

    def of(self, spec: str) -> Price | None:
        """Return the price of a backend as settings name it (`openai:MODEL@URL`); None if it is unknown.

        A local model is free; an endpoint on loopback is not known to be.
        """
        if spec.partition(":")[0] in _LOCAL:
            return FREE
        name = model_name(spec)
        found = self.models.get(name)
        return found if found is not None else self.models.get(spec)

    def to_json(self) -> dict[str, Any]:
        """Return the source of the prices, for a report."""
        return {"file": self.path, "date": self.date}


def model_name(spec: str) -> str:
    """Return `gpt-4o-mini` for `openai:gpt-4o-mini@https://...`."""
    kind, colon, rest = spec.partition(":")
    if not colon or kind != "openai":
        return spec
    name, at, _ = rest.rpartition("@")
    return name if at else rest


def read_prices(path: str | Path | None) -> Prices:
    """Read the price table at `path`; for None `./prices.toml` if it exists, else an empty table.

    Raises ConfigError that names the invalid entry.
    """
    wanted = Path(DEFAULT_FILE if path is None else path)
    try:
        _, table = read_toml(wanted)
    except FileNotFoundError:
        if path is None:
            return Prices()
        raise ConfigError(
            f"price table {wanted} does not exist", hint="name a price table: --prices FILE"
        ) from None
    unknown = sorted(table.keys() - {"date", "models"})
    if unknown:
        raise ConfigError(
            f"{wanted}: unknown entry {unknown[0]!r} in a price table",
            hint='a price table has a date and tables [models."NAME"] with input, output, embedding',
        )
    return Prices(_models(table.get("models", {}), wanted), _date(table.get("date"), wanted), str(wanted))


def _date(value: object, path: Path) -> str:
    try:  # TOML has a date type
        return dt.date.fromisoformat(
            str(value)[:10] if isinstance(value, dt.date) else str(value)
        ).isoformat()
    except ValueError:
        raise ConfigError(
            f"{path} has no date", hint='add the date of the prices, for example date = "2026-11-01"'
        ) from None


def _models(table: object, path: Path) -> dict[str, Price]:
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: models is not a table")
    for name, entry in table.items():
        if not isinstance(entry, dict):
            raise ConfigError(f"{path}: models.{name} is not a table of input, output, embedding")
        for kind, value in entry.items():
            if kind not in _KINDS:
                raise ConfigError(
                    f"{path}: models.{name}.{kind} is not a known price",
                    hint="the prices are " + ", ".join(_KINDS),
                )
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (number and 0 <= value <= _MOST):
                raise ConfigError(
                    f"{path}: models.{name}.{kind} must be a number of at least 0, got {short_repr(value)}"
                )
    return {name: Price(**{kind: float(usd) for kind, usd in entry.items()}) for name, entry in table.items()}


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
    reader, vectors = prices.of(llm) or Price(), prices.of(embedder) or Price()
    embedding = vectors.input if vectors.embedding is None else vectors.embedding
    return Bill(
        _usd((usage.tokens_in, usage.tokens_out), (reader.input, reader.output)),
        _usd((usage.embedding_tokens,), (embedding,)),
    )


def _usd(tokens: Sequence[int], prices: Sequence[float | None]) -> float | None:
    """Return the cost of tokens; None if there are tokens and a price is unknown."""
    if not any(tokens):
        return 0.0
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    return sum(count * price for count, price in zip(tokens, known, strict=True)) / 1e6


def usd_text(usd: float | None) -> str:
    """Return a sum for people, with enough digits for small sums."""
    if usd is None:
        return "unknown"
    return f"{usd:.2f}" if usd >= 1 or usd == 0 else f"{usd:.4f}"


def embedded_bytes(stages: Mapping[str, Mapping[str, Any]], made: Collection[str]) -> int:
    """Return the total bytes of text that these stages embed: units and chunks with titles, sentences,
    titles, and texts that stages of systems declare.
    """
    units = stages.get("units")
    if units is None:
        return 0
    titles = np.diff(units["document_titles_offsets"].astype(np.int64))
    total = 0
    if "vectors" in made:
        total += int(units["unit_texts_offsets"][-1]) + int(titles[units["unit_document"]].sum())
    if "sentence_vectors" in made:
        own = units["sent_bytes"][units["sent_title"] == 0].astype(np.int64)
        total += int((own[:, 1] - own[:, 0]).sum())
    if "title_vectors" in made:
        total += int(titles.sum())
    if "chunk_vectors" in made and len(units["chunk_document"]) != len(units["unit_chunk"]):
        spans = units["chunk_bytes"].astype(np.int64)
        total += int((spans[:, 1] - spans[:, 0]).sum()) + int(titles[units["chunk_document"]].sum())
    embeds = (one for stage in registry().stages if stage.name in made for one in stage.embeds)
    return total + sum(len(stages.get(stage, {}).get(f"{texts}_blob", ())) for stage, texts in embeds)
