"""The embedding model of a build: identified by its fingerprint, loaded only when a vector is missing.

A build that finds every text in the cache never loads the model, so changing a graph setting only costs the
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import ModelMismatch
from ketrag_fast.models.embedders.cache import (
    EncodedRows,
    Finder,
    SpannedText,
    VectorCache,
    embed_spans_stream,
    embed_stream,
    text_hash,
)
from ketrag_fast.models.embedders.fingerprint import SAMPLE, Identity, identify, precision_for, require_same
from ketrag_fast.models.embedders.protocol import Embedder, Engine, Report, Role, Tally, Vectors
from ketrag_fast.models.embedders.registry import EmbedderOptions, fingerprint, load, pools_spans
from ketrag_fast.storage.vector_cache import CodeJournal, scratch_rows
from ketrag_fast.storage.vector_codes import Packing


class LazyModel:
    """An `Embedder` that loads its model when a vector is not cached."""

    def __init__(
        self,
        spec: str,
        options: EmbedderOptions,
        cache: VectorCache,
        permit: Callable[[], None] | None = None,
    ) -> None:
        """Identify the model. `permit` is called before it is loaded and raises if that is not allowed."""
        self.spec = spec
        self._permit = permit
        self.fingerprint = fingerprint(spec, options)
        self._options = options
        self._cache = cache
        self._dimension = cache.dimension(self.fingerprint)
        self._loaded: Embedder | None = None

    @property
    def loaded(self) -> bool:
        """Whether the model is loaded."""
        return self._loaded is not None

    @property
    def real(self) -> Embedder:
        """The model, loaded on first use."""
        if self._loaded is None:
            loaded = self._load()
            self._compare(loaded)
            self._loaded = loaded
        return self._loaded

    def _load(self) -> Embedder:
        if self._permit is not None:
            self._permit()
        stored = cached_identity(self._cache, self.spec, self.fingerprint)
        precision = precision_for(stored, self._options.precision)
        return load(self.spec, replace(self._options, precision=precision))

    def renew(self) -> bool:
        """Load the model; drop the cached vectors if another model made them, and return whether it did."""
        dropped = False
        if self._loaded is None:
            loaded = self._load()
            try:
                self._compare(loaded)
            except ModelMismatch:
                dropped = True
                self._cache.forget(self.fingerprint)
                self._dimension = None
                self._compare(loaded)
            self._loaded = loaded
        return dropped

    def _compare(self, loaded: Embedder) -> None:
        """Compare the sample vectors with the cached ones, so that vectors of two models are never mixed."""
        stored = cached_identity(self._cache, self.spec, self.fingerprint)
        if stored is not None:
            require_same(stored, loaded, where="the vector cache")
            return
        identity = identify(loaded)
        if identity.sample:
            vectors = np.asarray(identity.sample, np.float32)
            number = self._cache.model(loaded)
            self._cache.put(number, "document", [text_hash(text) for text in SAMPLE], vectors)

    @property
    def dimension(self) -> int:
        """The dimension, from the cache or else from the model."""
        return self.real.dimension if self._dimension is None else self._dimension

    @property
    def longest(self) -> int | None:
        """See `Embedder`."""
        return self.real.longest

    @property
    def engine(self) -> Engine:
        """See `Embedder`."""
        return self.real.engine

    @property
    def tally(self) -> Tally:
        """See `Embedder`."""
        return self._loaded.tally if self._loaded is not None else Tally()

    def count(self, texts: Sequence[str]) -> list[int]:
        """See `Embedder`."""
        return self.real.count(texts)

    def embed(self, texts: Sequence[str], *args: Any, **options: Any) -> Vectors:
        """See `Embedder`."""
        return self.real.embed(texts, *args, **options)

    def embed_stream(self, texts: Iterable[str], *args: Any, **options: Any) -> Iterator[tuple[int, Vectors]]:
        """See `Embedder`."""
        return self.real.embed_stream(texts, *args, **options)

    @property
    def pools_spans(self) -> bool:
        """See `Embedder`; known without loading the model, by its backend."""
        if self._loaded is not None:
            return self._loaded.pools_spans
        return pools_spans(self.spec, self._options)

    def embed_spans(self, *args: Any, **options: Any) -> tuple[Vectors, Vectors]:
        """See `Embedder`."""
        return self.real.embed_spans(*args, **options)

    def close(self) -> None:
        """See `Embedder`."""
        if self._loaded is not None:
            self._loaded.close()


class VectorSource:
    """The embedding model of a build, with its published and cached vectors.

    `tables` is the SQLite file of the index; `scratch` is for large arrays and for the journal of codes.
    """

    def __init__(
        self,
        spec: str,
        options: EmbedderOptions,
        tables: Path,
        scratch: Path,
        permit: Callable[[], None] | None = None,
    ) -> None:
        self.cache = VectorCache(tables)
        try:
            self.model = LazyModel(spec, options, self.cache, permit)
        except BaseException:
            self.cache.close()
            raise
        self.scratch = scratch
        self.journal = CodeJournal(scratch / "vectors.sqlite")

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model."""
        return self.model.fingerprint

    @property
    def is_identified(self) -> bool:
        """Whether sample vectors are stored, with which the model is compared when it is loaded."""
        return cached_identity(self.cache, self.model.spec, self.fingerprint) is not None

    def renew(self) -> bool:
        """See `LazyModel.renew`."""
        return self.model.renew()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.model.close()
        self.cache.close()
        self.journal.close()

    def embed(
        self, texts: Iterable[str], count: int, chars: int, report: Report | None, role: Role = "document"
    ) -> Vectors:
        """Return f32[count, dimension], mapped from a temporary file; the vectors stay in the tables."""
        out = self._rows(count, np.dtype((np.float32, (self.model.dimension,))))
        store = self.cache.vectors_of(self.model, role)
        return _filled(out, embed_stream(self.model, store, texts, role, report, None, chars))

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
        return _filled(out, embed_stream(self.model, store, texts, "document", report, None, counts[1]))

    @property
    def pools_spans(self) -> bool:
        """See `Embedder`."""
        return self.model.pools_spans

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
        for rows, found in embed_spans_stream(self.model, of_texts, of_spans, units, report, None, counts[2]):
            texts[text : text + len(rows)] = rows
            spans[span : span + len(found)] = found
            text, span = text + len(rows), span + len(found)
        return texts, spans

    def _rows(self, count: int, row_type: np.dtype[Any]) -> NDArray[Any]:
        return scratch_rows(count, row_type, self.scratch)

    def identity(self) -> Identity:
        """Return the identity to store in the index; loads the model only if the cache lacks it."""
        kept = cached_identity(self.cache, self.model.spec, self.fingerprint)
        return kept if kept is not None else identify(self.model)


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
