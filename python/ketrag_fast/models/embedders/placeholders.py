"""Placeholders for vectors that are computed later, so that the words of an edit are found at once.

An update before a query does not wait for an endpoint, nor for a model that would take too long. It publishes
placeholders (`storage.vector_codes`) for the texts whose vectors are not known. A later build computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendError
from ketrag_fast.models.embedders.build_model import VectorSource
from ketrag_fast.models.embedders.protocol import Cancel, Embedder, Engine, Report, Role, Spans, Vectors
from ketrag_fast.models.embedders.registry import EmbedderOptions
from ketrag_fast.storage.vector_cache import CodeJournal
from ketrag_fast.storage.vector_codes import placeholder


class PlaceholderSource(VectorSource):
    """A source of vectors that loads no model: unknown texts get placeholders, which are not cached."""

    variant = "placeholders"

    def __init__(self, spec: str, options: EmbedderOptions, tables: Path, scratch: Path) -> None:
        """Identify the model. Raises BackendError if the index does not know it yet."""
        super().__init__(spec, options, tables, scratch)
        self.journal = _ReadJournal(scratch / "vectors.sqlite")
        if not self.is_identified:
            self.cache.close()
            raise BackendError(f"{spec} has not computed any vectors of this index yet")

    @property
    def model(self) -> Embedder:
        """A model that returns placeholders."""
        if self._loaded is None:
            self._loaded = _Placeholders(self.spec, self.fingerprint, self.dimension, self.pools_spans)
        return self._loaded

    def renew(self) -> bool:
        """Return False: there is no model to compare."""
        return False

    def embed(
        self, texts: Any, count: int, chars: int, report: Report | None, role: Role = "document"
    ) -> Vectors:
        """Raise BackendError: these vectors would be cached."""
        raise BackendError("vectors that stay in the tables have no placeholders")


class _ReadJournal(CodeJournal):
    """The vectors that a stopped build has computed; placeholders are not added to them."""

    def put(self, name: str, keys: Sequence[bytes], rows: NDArray[Any]) -> None:
        """Store nothing."""


class _Placeholders(Embedder):
    def __init__(self, spec: str, fingerprint: str, dimension: int, pools_spans: bool) -> None:
        super().__init__()
        self.spec, self.fingerprint, self.dimension, self.longest = spec, fingerprint, dimension, None
        self.engine = Engine("placeholders", "1", "none", "fp32", None)
        self.pools_spans = pools_spans

    def embed(
        self,
        texts: Sequence[str],
        role: Role = "document",
        progress: Report | None = None,
        cancel: Cancel | None = None,
    ) -> Vectors:
        """Return a placeholder for each text."""
        return np.tile(placeholder(self.dimension), (len(texts), 1))

    def embed_spans(
        self, texts: Sequence[str], spans: Sequence[Spans], progress: Report | None = None
    ) -> tuple[Vectors, Vectors]:
        """Return a placeholder for each text, and for each span."""
        return self.embed(texts), np.tile(placeholder(self.dimension), (sum(map(len, spans)), 1))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return zeros: no text is read."""
        return [0] * len(texts)

    def _encode(self, texts: Sequence[str], role: Role, tick: Callable[[int], None]) -> NDArray[Any]:
        return self.embed(texts)
