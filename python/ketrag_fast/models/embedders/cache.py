"""A cache of vectors by (model, role, text), written as batches finish, so no text is embedded twice.

A resumed build, or one with other graph or chunk settings, reuses the vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ketrag_fast.errors import BackendError
from ketrag_fast.models.embedders.protocol import (
    Cancel,
    Embedder,
    Report,
    Role,
    Vectors,
    windows_of,
)
from ketrag_fast.storage.vector_cache import VectorTable, text_hash

__all__ = ["VectorCache", "text_hash"]


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
