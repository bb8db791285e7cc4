"""`openai:MODEL@URL[#PROMPTS]`: any local or remote endpoint with OpenAI's embeddings API.

The tokenizer of the model is not available, so token counts are estimated, rather too high than too low. The
maximum input of an endpoint is measured, because some truncate long texts silently: two probe texts that
differ only in their last words get equal vectors if they are truncated. Longer texts are then embedded in
windows.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendError, Cancelled, ConfigError
from ketrag_fast.models.embedders.batching import average
from ketrag_fast.models.embedders.fingerprint import of_endpoint
from ketrag_fast.models.embedders.protocol import (
    Cancel,
    Embedder,
    Engine,
    Role,
    check_vectors,
    excerpt,
)
from ketrag_fast.models.http.client import Client, RefusedError, TooLongError, in_threads
from ketrag_fast.models.http.connections import Connections
from ketrag_fast.models.http.endpoints import (
    LETTERS,
    WEIGHT,
    RetryPolicy,
    endpoint,
    key_for,
    parts_of,
    prompts_of,
    weight,
)
from ketrag_fast.models.spending import Account

BATCH_TEXTS: Final = 64
BATCH_WEIGHT: Final = 16_384
RUNGS: Final = (120, 250, 505, 1020, 2040, 4090, 8180, 16_360, 32_700)
"""Probe lengths in tokens, each just below a common limit."""
_ENDS: Final = ("the red old fox ran", "two ships sank at noon")
_WIDEST: Final = 16_384
_NUMBER_BYTES: Final = 32
_UNKNOWN_FORMAT: Final = (400, 422, 501)
"""HTTP statuses of endpoints that reject base64 vectors, which parse ten times faster than numbers. Endpoints
that ignore the option send numbers, which are accepted too."""


class OpenAIEmbedder(Embedder):
    """An embedding endpoint. Opening it requests one vector.

    `longest` (tokens) skips the measurement of the maximum input. Raises Cancelled if `cancel` returns True
    while the endpoint is opened.
    """

    def __init__(
        self,
        spec: str,
        *,
        offline: bool = False,
        account: Account | None = None,
        concurrency: int = 4,
        retry: RetryPolicy | None = None,
        longest: int | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        super().__init__()
        self.spec = spec
        self.account = account or Account()
        self._model, url = parts_of(spec)
        self._prompts = prompts_of(spec)
        target = endpoint(url, offline=offline)
        key = key_for(target.host, target.scheme)
        if concurrency < 1:
            raise ConfigError("concurrency must be at least 1")
        self.connections = Connections(target)
        self._address = (target.path("/embeddings"), key, retry or RetryPolicy())
        self._concurrency = concurrency
        self._closed = threading.Event()
        self._given = longest
        self._good = longest or 0
        self._bad = False
        self.longest = longest
        self.dimension = 0
        self._encoding = "base64"

        def wanted() -> None:
            if cancel is not None and cancel():
                raise Cancelled("opening the endpoint was stopped")

        self.dimension = int(self._request(["a trial"], "document", wanted).shape[1])
        self.fingerprint = of_endpoint(self._model, self._prompts)
        self.engine = Engine("openai", "embeddings/1", target.netloc, "as served", None)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return estimated token counts; for most languages they are too high rather than too low."""
        return [weight(text) for text in texts]

    def close(self) -> None:
        """Cancel requests in progress and close all connections."""
        self._closed.set()
        self.connections.close()

    def _encode(self, texts: Sequence[str], role: Role, tick: Callable[[int], None]) -> NDArray[Any]:
        heavy = [weight(text) for text in texts]
        prefix = self._prompts.prefix(role)
        own = weight(prefix)
        limit = self._reads(max(heavy) + own, lambda: tick(0))
        if limit is not None:
            limit = max(1, limit - own)
        pieces: list[str] = []
        owners: list[int] = []
        for owner, (text, size) in enumerate(zip(texts, heavy, strict=True)):
            parts = [text] if limit is None or size <= limit else split_text(text, limit)
            self.tally.windowed += len(parts) - 1
            pieces += [prefix + part for part in parts]
            owners += [owner] * len(parts)
        weights = [weight(piece) for piece in pieces]
        out = np.zeros((len(pieces), self.dimension), np.float64)
        for numbers, vectors in self._parallel(pieces, weights, role, lambda: tick(0)):
            out[numbers] = vectors
            tick(sum(weights[number] for number in numbers))
        return average(out, owners, weights, len(texts))

    def _parallel(
        self, pieces: list[str], weights: list[int], role: Role, alive: Callable[[], None]
    ) -> Iterator[tuple[list[int], NDArray[Any]]]:
        """Yield batches as they finish, with at most two in progress per connection.

        A single batch (a query) is sent from this thread.
        """
        groups = list(_groups(weights))
        if len(groups) == 1:
            yield groups[0], self._request([pieces[number] for number in groups[0]], role, alive)
            return
        stop = threading.Event()

        def wanted() -> None:
            if stop.is_set():
                raise Cancelled("embedding was stopped")

        def request(numbers: list[int]) -> NDArray[Any]:
            return self._request([pieces[number] for number in numbers], role, wanted)

        try:
            for numbers, done in in_threads(request, groups, self._concurrency, 2 * self._concurrency, alive):
                yield numbers, done.result()
        finally:  # an error or cancellation ends the rest without waiting
            stop.set()

    def _request(self, texts: list[str], role: Role, wanted: Callable[[], None]) -> NDArray[Any]:
        """Return the vectors of one batch. `wanted` raises to cancel, also while waiting."""

        def stopped() -> None:
            if self._closed.is_set():
                raise Cancelled("embedding was stopped")
            wanted()

        booked = sum(map(weight, texts))
        self.account.book(booked)
        limit = 1_000_000 + len(texts) * (self.dimension or _WIDEST) * _NUMBER_BYTES
        client = Client(self.connections, *self._address)
        body = {
            "model": self._model,
            "input": texts,
            "encoding_format": self._encoding,
            **self._prompts.fields(role),
        }
        try:
            reply = client.post(body, limit, stopped)
        except RefusedError as error:
            if body["encoding_format"] != "base64" or error.status not in _UNKNOWN_FORMAT:
                raise
            reply = client.post({**body, "encoding_format": "float"}, limit, stopped)
            self._encoding = "float"
        usage = reply.get("usage") if isinstance(reply, dict) else None
        counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        self.account.settle(booked, counted if isinstance(counted, int) and counted > 0 else None)
        return vectors_of(reply, texts, self.dimension, self.spec)

    def _reads(self, needed: int, wanted: Callable[[], None]) -> int | None:
        """Return the measured maximum input in tokens, or None if it is at least `needed`."""
        for rung in RUNGS if self._given is None else ():
            if self._bad or self._good >= needed:
                break
            if rung <= self._good:
                continue
            if self._read_to_the_end(rung, wanted):
                self._good = rung
            else:
                self._bad = True
                self.longest = self._good
        if not self._good:
            raise BackendError(f"{self.spec} cannot read {RUNGS[0]} tokens")
        return None if self._good >= needed else self._good

    def _read_to_the_end(self, rung: int, wanted: Callable[[], None]) -> bool:
        """Return whether a text of `rung` tokens is neither rejected nor truncated."""
        body = " ".join(str((7 * n + n * n) % 10) for n in range(rung - 8))
        try:
            vectors = self._request([f"{body} {end}" for end in _ENDS], "document", wanted)
        except TooLongError:
            return False
        return bool(np.abs(vectors[0] - vectors[1]).max() > 1e-4 * np.abs(vectors[0]).max())


def split_text(text: str, limit: int) -> list[str]:
    """Split a text between tokens into parts of about equal weight, at most `limit` each."""
    total = weight(text)
    count = -(-total // limit)
    share = -(-total // count)
    out, start, size = [], 0, 0
    for found in WEIGHT.finditer(text):
        for place in range(found.start(), found.end(), LETTERS):
            if size == share:
                out.append(text[start:place])
                start, size = place, 0
            size += 1
    out.append(text[start:])
    return out


def vectors_of(reply: Any, texts: Sequence[str], dimension: int, spec: str) -> NDArray[Any]:
    """Return the vectors of a reply, f64[len(texts), dimension]. Raises BackendError if it is invalid."""
    data = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(data, list):
        raise BackendError(f"{spec} sent a reply without data", hint="check the address and the model name")
    if len(data) != len(texts):
        raise BackendError(f"{spec} sent {len(data)} vectors for {len(texts)} texts")
    rows: list[NDArray[Any] | None] = [None] * len(texts)
    for place, entry in enumerate(data):
        number = entry.get("index", place) if isinstance(entry, dict) else None
        if not isinstance(number, int) or not 0 <= number < len(texts) or rows[number] is not None:
            raise BackendError(f"{spec} sent an invalid vector index {number!r} at position {place}")
        rows[number] = _row(entry.get("embedding"), spec)
    wanted = dimension or len(rows[0] if rows[0] is not None else ())
    for row, text in zip(rows, texts, strict=True):
        if row is None or len(row) != wanted or not wanted:
            found = "none" if row is None else f"{len(row)} dimensions"
            raise BackendError(f"{spec} sent {found}, expected {wanted}, for {excerpt(text)}")
    out = np.stack([row for row in rows if row is not None])
    check_vectors(out, texts, wanted, spec)
    return out


def _row(value: Any, spec: str) -> NDArray[Any]:
    try:
        if isinstance(value, str):
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4").astype(np.float64)
        if isinstance(value, list) and all(type(x) in (int, float) for x in value):
            return np.asarray(value, np.float64)
    except (binascii.Error, ValueError, OverflowError) as error:
        raise BackendError(f"{spec} sent an invalid vector: {error}") from error
    raise BackendError(f"{spec} sent a vector that is not a list of numbers")


def _groups(weights: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of text numbers, in order, limited in count and weight."""
    group: list[int] = []
    size = 0
    for number, heavy in enumerate(weights):
        if group and (len(group) == BATCH_TEXTS or size + heavy > BATCH_WEIGHT):
            yield group
            group, size = [], 0
        group.append(number)
        size += heavy
    if group:
        yield group
