"""The embedding model of a build: identified by its fingerprint, loaded only when a vector is missing.

A build that finds every text in the cache never loads the model, so changing a graph setting only costs the
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import ModelMismatch
from ketrag_fast.models.embedders.cache import (
    CachedVectors,
    EncodedRows,
    Finder,
    SpannedText,
    VectorCache,
    embed_spans_stream,
    embed_stream,
    text_hash,
)
from ketrag_fast.models.embedders.fingerprint import SAMPLE, Identity, identify, precision_for, require_same
from ketrag_fast.models.embedders.protocol import Embedder, Report, Role, Tally, Vectors
from ketrag_fast.models.embedders.registry import EmbedderOptions, fingerprint, load, pools_spans
from ketrag_fast.records import replace
from ketrag_fast.storage.vector_cache import CodeJournal, scratch_rows
from ketrag_fast.storage.vector_codes import Packing


class VectorSource:
    """The embedding model of a build, with its published and cached vectors.

    `tables` is the SQLite file of the index; `scratch` is for large arrays and for the journal of codes.
    """

    variant = ""
    """Part of the fingerprint of the stages that this source fills."""

    def __init__(
        self,
        spec: str,
        options: EmbedderOptions,
        tables: Path,
        scratch: Path,
        permit: Callable[[], None] | None = None,
    ) -> None:
        """Identify the model. `permit` is called before it is loaded and raises if that is not allowed."""
        self.spec = spec
        self.fingerprint = fingerprint(spec, options)
        self.cache = VectorCache(tables)
        self.scratch = scratch
        self.journal = CodeJournal(scratch / "vectors.sqlite")
        self._options, self._permit = options, permit
        self._loaded: Embedder | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._loaded is not None:
            self._loaded.close()
        self.cache.close()
        self.journal.close()

    @property
    def model(self) -> Embedder:
        """The model, loaded on first use and compared with the one that made the cached vectors."""
        if self._loaded is None:
            loaded = self._load()
            self._compare(loaded)
            self._loaded = loaded
        return self._loaded

    @property
    def dimension(self) -> int:
        """The dimension, from the cache or else from the model."""
        known = None if self._loaded is not None else self.cache.dimension(self.fingerprint)
        return self.model.dimension if known is None else known

    @property
    def tally(self) -> Tally:
        """The work of the model in this build."""
        return self._loaded.tally if self._loaded is not None else Tally()

    @property
    def pools_spans(self) -> bool:
        """See `Embedder`; known without loading the model, by its backend."""
        return self._loaded.pools_spans if self._loaded is not None else pools_spans(self.spec, self._options)

    @property
    def is_identified(self) -> bool:
        """Whether sample vectors are stored, with which the model is compared when it is loaded."""
        return cached_identity(self.cache, self.spec, self.fingerprint) is not None

    def renew(self) -> bool:
        """Load the model; drop the cached vectors if another model made them, and return whether it did."""
        if self._loaded is not None:
            return False
        loaded, dropped = self._load(), False
        try:
            self._compare(loaded)
        except ModelMismatch:
            dropped = True
            self.cache.forget(self.fingerprint)
            self._compare(loaded)
        self._loaded = loaded
        return dropped

    def _load(self) -> Embedder:
        if self._permit is not None:
            self._permit()
        stored = cached_identity(self.cache, self.spec, self.fingerprint)
        precision = precision_for(stored, self._options.precision)
        return load(self.spec, replace(self._options, precision=precision))

    def _compare(self, loaded: Embedder) -> None:
        """Compare the sample vectors with the cached ones, so that vectors of two models are never mixed."""
        stored = cached_identity(self.cache, self.spec, self.fingerprint)
        if stored is not None:
            require_same(stored, loaded, where="the vector cache")
            return
        identity = identify(loaded)
        if identity.sample:
            vectors = np.asarray(identity.sample, np.float32)
            number = self.cache.model(loaded)
            self.cache.put(number, "document", [text_hash(text) for text in SAMPLE], vectors)

    def identity(self) -> Identity:
        """Return the identity to store in the index; loads the model only if the cache lacks it."""
        kept = cached_identity(self.cache, self.spec, self.fingerprint)
        return kept if kept is not None else identify(self.model)

    def embed(
        self, texts: Iterable[str], count: int, chars: int, report: Report | None, role: Role = "document"
    ) -> Vectors:
        """Return f32[count, dimension], mapped from a temporary file; the vectors stay in the tables."""
        known = self.cache.record(self.fingerprint)
        number = self.cache.model(self.model) if known is None else known[0]
        store = CachedVectors(self.cache, number, role, self.dimension)
        out = self._rows(count, np.dtype((np.float32, (self.dimension,))))
        return _filled(out, embed_stream(lambda: self.model, store, texts, role, report, chars))

    def embed_packed(
        self,
        texts: Iterable[str],
        packing: Packing,
        counts: tuple[int, int],
        report: Report | None,
        published: Finder | None,
    ) -> NDArray[Any]:
        """Return packed rows; `counts` are the numbers of texts and of their characters."""
        store = EncodedRows(packing, self.fingerprint, "text", self.journal, published)
        out = self._rows(counts[0], packing.row_type)
        return _filled(out, embed_stream(lambda: self.model, store, texts, "document", report, counts[1]))

    def embed_spans(
        self,
        units: Iterable[SpannedText],
        packings: tuple[Packing, Packing],
        counts: tuple[int, int, int],
        report: Report | None,
        published: tuple[Finder, Finder] | None,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return packed rows of texts and of their spans.

        `counts` are the numbers of texts, of spans and of characters. Every text passes through the model
        once, even if both stages ask for it and its spans.
        """
        of_texts, of_spans = (
            EncodedRows(packing, self.fingerprint, kind, self.journal, found)
            for packing, kind, found in zip(
                packings, ("text", "span"), published or (None, None), strict=True
            )
        )
        texts, spans = (
            self._rows(count, packing.row_type) for count, packing in zip(counts[:2], packings, strict=True)
        )
        text = span = 0
        stream = embed_spans_stream(lambda: self.model, of_texts, of_spans, units, report, counts[2])
        for rows, found in stream:
            texts[text : text + len(rows)] = rows
            spans[span : span + len(found)] = found
            text, span = text + len(rows), span + len(found)
        return texts, spans

    def _rows(self, count: int, row_type: np.dtype[Any]) -> NDArray[Any]:
        return scratch_rows(count, row_type, self.scratch)


def _filled(out: NDArray[Any], parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Copy the parts into `out`, one after another, and return it."""
    at = 0
    for rows in parts:
        out[at : at + len(rows)] = rows
        at += len(rows)
    return out


def cached_identity(cache: VectorCache, spec: str, mark: str) -> Identity | None:
    """Return the identity of a model from the cache, or None."""
    found = cache.record(mark)
    if found is None:
        return None
    number, dimension, longest, engine = found
    sample = np.zeros((len(SAMPLE), dimension), np.float32)
    known = cache.get(number, "document", [text_hash(text) for text in SAMPLE], sample)
    if not known.all():
        return None
    return Identity(spec, mark, dimension, longest, engine, _rows_of(sample.tobytes(), dimension))


@lru_cache(maxsize=4)
def _rows_of(data: bytes, dimension: int) -> tuple[tuple[float, ...], ...]:
    """Return sample vectors in stored form, cached because a build needs them several times."""
    sample = np.frombuffer(data, np.float32).reshape(-1, dimension)
    return tuple(tuple(round(float(x), 6) for x in row) for row in sample)
