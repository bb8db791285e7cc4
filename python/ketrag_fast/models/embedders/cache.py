"""A cache of vectors by (model, role, text), written as batches finish, so no text is embedded twice.

A resumed build, or one with other graph or chunk settings, reuses the vectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

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
from ketrag_fast.storage.vector_cache import VectorTable, text_hash

__all__ = ["VectorCache", "text_hash"]

SpannedText = tuple[str, Spans]
"""A text, and spans of it in bytes of its UTF-8."""
SPAN: Final = "span"
"""The role of vectors of spans: a span is read together with its text."""


def span_hash(text: bytes, span: tuple[int, int]) -> bytes:
    """Return the 16-byte key of a span of a text with this key."""
    start, end = span
    return hashlib.blake2b(b"%b %d %d" % (text, start, end), digest_size=16).digest()


class VectorCache(VectorTable):
    """The table of vectors; embeds the texts that are missing."""

    def model(self, embedder: Embedder) -> int:
        """Return the number of a model in the cache, and add it if it is new."""
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

    def embed_stream(
        self,
        embedder: Embedder,
        texts: Iterable[str],
        role: Role = "document",
        progress: Report | None = None,
        cancel: Cancel | None = None,
        chars: int | None = None,
    ) -> Iterator[tuple[int, Vectors]]:
        """Yield vectors like `Embedder.embed_stream`; embeds each distinct uncached text once and caches it.

        `progress` counts embedded tokens; its total is estimated from the characters of uncached texts.
        """
        model = self.model(embedder)
        start = done = seen = missed = 0
        for window in windows_of(texts):
            keys = [text_hash(text) for text in window]
            out = np.zeros((len(window), embedder.dimension), np.float32)
            known = self.get(model, role, keys, out)
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
                vectors = embedder.embed(chosen, role, relay, cancel)
                done += embedder.tally.tokens - before
                self.put(model, role, list(fresh), vectors)
                row_of = {key: row for row, key in enumerate(fresh)}
                for place in np.flatnonzero(~known).tolist():
                    if keys[place] in row_of:
                        out[place] = vectors[row_of[keys[place]]]
            yield start, out
            start += len(window)

    def embed_spans_stream(
        self,
        embedder: Embedder,
        units: Iterable[SpannedText],
        progress: Report | None = None,
        cancel: Cancel | None = None,
        chars: int | None = None,
    ) -> Iterator[tuple[Vectors, Vectors]]:
        """Yield vectors of texts and of their spans, window by window, from one pass over each uncached text.

        A text is encoded again if it, or one of its spans, is not cached. `progress` is as in `embed_stream`.
        """
        model = self.model(embedder)
        done = seen = missed = 0
        for window in windows_of(units, length=lambda unit: len(unit[0])):
            keys = [text_hash(text) for text, _ in window]
            span_keys = [
                span_hash(key, span) for key, (_, own) in zip(keys, window, strict=True) for span in own
            ]
            counts = [len(own) for _, own in window]
            ends = np.cumsum([0, *counts])
            out = np.zeros((len(window), embedder.dimension), np.float32)
            of_spans = np.zeros((len(span_keys), embedder.dimension), np.float32)
            known = self.get(model, "document", keys, out)
            spans_known = self.get(model, SPAN, span_keys, of_spans)
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
                out[rows] = vectors
                of_rows = np.concatenate([np.arange(ends[row], ends[row + 1]) for row in rows])
                of_spans[of_rows] = found
                self.put(model, "document", [keys[row] for row in rows], vectors)
                self.put(model, SPAN, [span_keys[place] for place in of_rows], found)
            yield out, of_spans

    def embed(
        self,
        embedder: Embedder,
        texts: Sequence[str],
        role: Role = "document",
        progress: Report | None = None,
        cancel: Cancel | None = None,
    ) -> Vectors:
        """Return f32[len(texts), dimension]; see `embed_stream`."""
        out = np.zeros((len(texts), embedder.dimension), np.float32)
        chars = sum(map(len, texts))
        for start, vectors in self.embed_stream(embedder, texts, role, progress, cancel, chars):
            out[start : start + len(vectors)] = vectors
        return out


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
