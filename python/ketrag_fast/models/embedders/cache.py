"""Embed texts whose vectors are not stored yet; rows are written as batches finish.

A resumed build, or one with other graph or chunk settings, reuses the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendError
from ketrag_fast.models.embedders.protocol import (
    Cancel,
    Embedder,
    Report,
    Role,
    Spans,
    Vectors,
    windows_of,
)
from ketrag_fast.storage.vector_cache import CodeJournal, VectorTable, text_hash
from ketrag_fast.storage.vector_codes import Packing

__all__ = ["VectorCache", "text_hash"]

SpannedText = tuple[str, Spans]
"""A text, and spans of it in bytes of its UTF-8."""


def span_hash(text: bytes, span: tuple[int, int]) -> bytes:
    """Return the 16-byte key of a span of a text with this key."""
    start, end = span
    return hashlib.blake2b(b"%b %d %d" % (text, start, end), digest_size=16).digest()


class Store(Protocol):
    """Stored vectors by the hash of their text, in f32 or packed."""

    def empty(self, count: int) -> NDArray[Any]:
        """Return an empty array of rows."""

    def get(self, keys: Sequence[bytes], out: NDArray[Any]) -> NDArray[np.bool_]:
        """Fill the rows of `out` whose vectors are stored; return a mask of these rows."""

    def pack(self, vectors: Vectors) -> NDArray[Any]:
        """Convert new vectors to rows."""

    def put(self, keys: Sequence[bytes], rows: NDArray[Any]) -> None:
        """Store new rows."""


class Finder(Protocol):
    """Vectors of a published generation by the hash of their text."""

    def fill(self, packing: Packing, keys: Sequence[bytes], out: NDArray[Any]) -> NDArray[np.bool_]:
        """Fill the rows of `out` whose text is published in this format or a finer one."""


@dataclass(frozen=True, slots=True)
class CachedVectors:
    """Vectors in f32, stored in the SQLite tables of the index."""

    table: VectorTable
    embedder: Embedder
    role: Role
    number: int

    def empty(self, count: int) -> Vectors:
        """See `Store`."""
        return np.zeros((count, self.embedder.dimension), np.float32)

    def get(self, keys: Sequence[bytes], out: Vectors) -> NDArray[np.bool_]:
        """See `Store`."""
        return self.table.get(self.number, self.role, keys, out)

    def pack(self, vectors: Vectors) -> Vectors:
        """See `Store`."""
        return vectors

    def put(self, keys: Sequence[bytes], rows: Vectors) -> None:
        """See `Store`."""
        self.table.put(self.number, self.role, keys, rows)


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Packed vectors of units or sentences: of the published generation, or of the journal of the build."""

    packing: Packing
    model: str
    """The fingerprint of the model."""
    kind: str
    journal: CodeJournal
    published: Finder | None

    def empty(self, count: int) -> NDArray[Any]:
        """See `Store`."""
        return np.zeros(count, self.packing.row_type)

    @property
    def _name(self) -> str:
        return f"{self.model} {self.kind} {self.packing.format}"

    def get(self, keys: Sequence[bytes], out: NDArray[Any]) -> NDArray[np.bool_]:
        """See `Store`."""
        known = np.zeros(len(keys), np.bool_)
        if self.published is not None:
            known = self.published.fill(self.packing, keys, out)
        missing = np.flatnonzero(~known)
        if len(missing):
            some = self.empty(len(missing))
            found = self.journal.get(self._name, [keys[place] for place in missing.tolist()], some)
            out[missing[found]] = some[found]
            known[missing[found]] = True
        return known

    def pack(self, vectors: Vectors) -> NDArray[Any]:
        """See `Store`."""
        return self.packing.pack(vectors)

    def put(self, keys: Sequence[bytes], rows: NDArray[Any]) -> None:
        """See `Store`."""
        self.journal.put(self._name, keys, rows)


class VectorCache(VectorTable):
    """The table of vectors in f32."""

    def model(self, embedder: Embedder) -> int:
        """Return the number of a model in the cache, adding the model if it is new."""
        found = self.record(embedder.fingerprint)
        if found is None:
            self.add(
                embedder.fingerprint,
                embedder.dimension,
                embedder.longest,
                embedder.spec,
                embedder.engine.to_json(),
            )
            return self.model(embedder)
        number, dimension = found[:2]
        if dimension != embedder.dimension:
            raise BackendError(
                f"{embedder.spec} has {embedder.dimension} dimensions, its cached vectors {dimension}"
            )
        return number

    def vectors_of(self, embedder: Embedder, role: Role = "document") -> CachedVectors:
        """Return the cached vectors of a model in one role."""
        return CachedVectors(self, embedder, role, self.model(embedder))


def embed_stream(
    embedder: Embedder,
    store: Store,
    texts: Iterable[str],
    role: Role = "document",
    progress: Report | None = None,
    cancel: Cancel | None = None,
    chars: int | None = None,
) -> Iterator[NDArray[Any]]:
    """Yield rows like `Embedder.embed_stream`; embeds each distinct unknown text once and stores it.

    `progress` counts embedded tokens; its total is estimated from the characters of unknown texts.
    """
    done = seen = missed = 0
    for window in windows_of(texts):
        keys = [text_hash(text) for text in window]
        out = store.empty(len(window))
        known = store.get(keys, out)
        fresh: dict[bytes, int] = {}
        for place in np.flatnonzero(~known).tolist():
            if window[place].strip():
                fresh.setdefault(keys[place], place)
        chosen = [window[place] for place in fresh.values()]
        seen += sum(map(len, window))
        missed += sum(map(len, chosen))
        if chosen:
            share = round(chars * missed / max(seen, 1)) if chars is not None else None
            relay = _shift_report(progress, done, missed, share, sum(map(len, chosen)))
            before = embedder.tally.tokens
            rows = store.pack(embedder.embed(chosen, role, relay, cancel))
            done += embedder.tally.tokens - before
            store.put(list(fresh), rows)
            row_of = {key: row for row, key in enumerate(fresh)}
            for place in np.flatnonzero(~known).tolist():
                if keys[place] in row_of:
                    out[place] = rows[row_of[keys[place]]]
        yield out


def embed_spans_stream(
    embedder: Embedder,
    of_texts: Store,
    of_spans: Store,
    units: Iterable[SpannedText],
    progress: Report | None = None,
    cancel: Cancel | None = None,
    chars: int | None = None,
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield rows of texts and of their spans, window by window, from one pass over each unknown text.

    A text is encoded again if it, or one of its spans, is unknown. `progress` is as in `embed_stream`.
    """
    done = seen = missed = 0
    for window in windows_of(units, length=lambda unit: len(unit[0])):
        keys = [text_hash(text) for text, _ in window]
        span_keys = [span_hash(key, span) for key, (_, own) in zip(keys, window, strict=True) for span in own]
        counts = [len(own) for _, own in window]
        ends = np.cumsum([0, *counts])
        out, spans = of_texts.empty(len(window)), of_spans.empty(len(span_keys))
        known, spans_known = of_texts.get(keys, out), of_spans.get(span_keys, spans)
        missing = ~known
        np.logical_or.at(missing, np.repeat(np.arange(len(window)), counts), ~spans_known)
        rows = [row for row in np.flatnonzero(missing).tolist() if window[row][0].strip()]
        seen += sum(len(text) for text, _ in window)
        pending = sum(len(window[row][0]) for row in rows)
        missed += pending
        if rows:
            share = round(chars * missed / max(seen, 1)) if chars is not None else None
            relay = _shift_report(progress, done, missed, share, pending)
            before = embedder.tally.tokens
            vectors, found = embedder.embed_spans(
                [window[row][0] for row in rows], [window[row][1] for row in rows], relay, cancel
            )
            done += embedder.tally.tokens - before
            out[rows] = of_texts.pack(vectors)
            of_rows = np.concatenate([np.arange(ends[row], ends[row + 1]) for row in rows])
            spans[of_rows] = of_spans.pack(found)
            of_texts.put([keys[row] for row in rows], out[rows])
            of_spans.put([span_keys[place] for place in of_rows.tolist()], spans[of_rows])
        yield out, spans


def _shift_report(
    report: Report | None, done: int, missed: int, share: int | None, pending: int
) -> Report | None:
    """Return a report for one window that adds to the total; `share` is the expected characters in all."""
    if report is None:
        return None
    settled = missed - pending

    def relay(tokens: int, _: int | None) -> bool | None:
        whole = done + tokens
        if share is None or not settled:
            return report(whole, None)
        return report(whole, max(whole, round(done / settled * share)))

    return relay
