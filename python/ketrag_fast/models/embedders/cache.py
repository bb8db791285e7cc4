"""Embed texts whose vectors are not stored yet; rows are written as batches finish.

A resumed build, or one with other graph or chunk settings, reuses the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendError
from ketrag_fast.models.embedders.protocol import (
    Embedder,
    Report,
    Role,
    Spans,
    Vectors,
    windows_of,
)
from ketrag_fast.records import dataclass
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
    """Vectors in f32, stored in the SQLite tables of the index under the number of their model."""

    table: VectorTable
    number: int
    role: Role
    dimension: int

    def empty(self, count: int) -> Vectors:
        """See `Store`."""
        return np.zeros((count, self.dimension), np.float32)

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
        return CachedVectors(self, self.model(embedder), role, embedder.dimension)


def embed_stream(
    load: Callable[[], Embedder],
    store: Store,
    texts: Iterable[str],
    role: Role = "document",
    report: Report | None = None,
    chars: int | None = None,
) -> Iterator[NDArray[Any]]:
    """Yield the rows of texts, window by window; embeds each distinct unknown text once and stores it.

    `load` returns the model, when the first text is unknown. `report` counts embedded tokens; its total is
    estimated from the characters of unknown texts, and `chars`, those of all texts.
    """
    progress = _Progress(report, chars)
    for window in windows_of(texts):
        keys = [text_hash(text) for text in window]
        out = store.empty(len(window))
        missing = np.flatnonzero(~store.get(keys, out)).tolist()
        fresh: dict[bytes, str] = {}
        for place in missing:
            if window[place].strip():
                fresh.setdefault(keys[place], window[place])
        progress.see(window)
        if fresh:
            embedder, chosen = load(), list(fresh.values())
            with progress.counting(embedder, chosen) as relay:
                rows = store.pack(embedder.embed(chosen, role, relay))
            store.put(list(fresh), rows)
            row_of = {key: row for row, key in enumerate(fresh)}
            for place in missing:
                if keys[place] in row_of:
                    out[place] = rows[row_of[keys[place]]]
        yield out


def embed_spans_stream(
    load: Callable[[], Embedder],
    of_texts: Store,
    of_spans: Store,
    units: Iterable[SpannedText],
    report: Report | None = None,
    chars: int | None = None,
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield rows of texts and of their spans, window by window, from one pass over each unknown text.

    A text is encoded again if it, or one of its spans, is unknown. Other arguments are as in `embed_stream`.
    """
    progress = _Progress(report, chars)
    for window in windows_of(units, length=lambda unit: len(unit[0])):
        texts = [text for text, _ in window]
        keys = [text_hash(text) for text in texts]
        span_keys = [span_hash(key, span) for key, (_, own) in zip(keys, window, strict=True) for span in own]
        counts = [len(own) for _, own in window]
        ends = np.cumsum([0, *counts])
        out, spans = of_texts.empty(len(window)), of_spans.empty(len(span_keys))
        known, spans_known = of_texts.get(keys, out), of_spans.get(span_keys, spans)
        missing = ~known
        np.logical_or.at(missing, np.repeat(np.arange(len(window)), counts), ~spans_known)
        rows = [row for row in np.flatnonzero(missing).tolist() if texts[row].strip()]
        progress.see(texts)
        if rows:
            embedder, chosen = load(), [texts[row] for row in rows]
            with progress.counting(embedder, chosen) as relay:
                vectors, found = embedder.embed_spans(chosen, [window[row][1] for row in rows], relay)
            out[rows] = of_texts.pack(vectors)
            of_rows = np.concatenate([np.arange(ends[row], ends[row + 1]) for row in rows])
            spans[of_rows] = of_spans.pack(found)
            of_texts.put([keys[row] for row in rows], out[rows])
            of_spans.put([span_keys[place] for place in of_rows.tolist()], spans[of_rows])
        yield out, spans


class _Progress:
    """Reports the tokens of several windows, with a total that grows with the share of unknown texts."""

    def __init__(self, report: Report | None, chars: int | None) -> None:
        self._report, self._chars = report, chars
        self._done = self._seen = self._missed = 0

    def see(self, texts: Iterable[str]) -> None:
        """Count the texts of the next window, known or not."""
        self._seen += sum(map(len, texts))

    @contextmanager
    def counting(self, embedder: Embedder, fresh: Iterable[str]) -> Iterator[Report | None]:
        """Yield the report for the unknown texts of the window, which `embedder` encodes."""
        report, done, settled = self._report, self._done, self._missed
        self._missed += sum(map(len, fresh))
        share = None if self._chars is None else round(self._chars * self._missed / max(self._seen, 1))

        def relay(tokens: int, _: int | None) -> bool | None:
            assert report is not None  # noqa: S101 - see below
            whole = done + tokens
            total = None if share is None or not settled else max(whole, round(done / settled * share))
            return report(whole, total)

        before = embedder.tally.tokens
        yield None if report is None else relay
        self._done += embedder.tally.tokens - before
