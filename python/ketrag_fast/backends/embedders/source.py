"""The model of one build: known by its fingerprint at once, loaded only when a vector is missing.

A build that finds every text in the cache never loads the model, so that a changed graph setting costs
no more than the graph.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ketrag_fast.backends.embedders.cache import VectorCache
from ketrag_fast.backends.embedders.fingerprint import Identity, identify
from ketrag_fast.backends.embedders.protocol import Embedder, Engine, Report, Role, Tally, Vectors
from ketrag_fast.backends.embedders.registry import Options, fingerprint, load


class LazyModel:
    """An `Embedder` that is loaded by the first thing that its fingerprint does not answer."""

    def __init__(self, spec: str, options: Options, dimension: int | None = None) -> None:
        self.spec = spec
        self.fingerprint = fingerprint(spec, options)
        self._options = options
        self._dimension = dimension
        self._loaded: Embedder | None = None

    @property
    def loaded(self) -> bool:
        """Whether anything needed it so far."""
        return self._loaded is not None

    @property
    def real(self) -> Embedder:
        """The model itself."""
        if self._loaded is None:
            self._loaded = load(self.spec, self._options)
        return self._loaded

    @property
    def dimension(self) -> int:
        """From the cache if it knows, else from the model."""
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

    def close(self) -> None:
        """See `Embedder`."""
        if self._loaded is not None:
            self._loaded.close()


class VectorSource:
    """A build's model and its cache, which lies in the SQLite file `tables`; `scratch` holds large arrays."""

    def __init__(self, spec: str, options: Options, tables: Path, scratch: Path) -> None:
        self.cache = VectorCache(tables)
        try:
            mark = fingerprint(spec, options)
            self.model = LazyModel(spec, options, self.cache.dimension(mark))
        except BaseException:
            self.cache.close()
            raise
        self.scratch = scratch

    @property
    def fingerprint(self) -> str:
        """Of the model."""
        return self.model.fingerprint

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.model.close()
        self.cache.close()

    def embed(
        self, texts: Iterable[str], count: int, chars: int, report: Report | None, role: Role = "document"
    ) -> Vectors:
        """f32[count, dimension], in a scratch file that vanishes by itself."""
        out: Vectors
        size = (count, self.model.dimension)
        if count:
            with tempfile.TemporaryFile(dir=self.scratch) as file:
                out = np.memmap(file, np.float32, "w+", shape=size)
        else:
            out = np.zeros(size, np.float32)
        for start, vectors in self.cache.embed_stream(self.model, texts, role, report, None, chars):
            out[start : start + len(vectors)] = vectors
        return out

    def identity(self, known: Identity | None) -> Identity:
        """What the index keeps of the model; `known` saves loading it, if it is the same."""
        if known is not None and known.fingerprint == self.fingerprint and not self.model.loaded:
            return known
        return identify(self.model)
