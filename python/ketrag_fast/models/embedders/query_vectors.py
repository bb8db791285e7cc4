"""Embed queries with the model of the index, loaded by the first query, with an LRU cache."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import (
    BackendError,
    BackendMissing,
    Cancelled,
    DeadlineExceeded,
    ModelMismatch,
    NetworkForbidden,
)
from ketrag_fast.models.embedders.fingerprint import Identity, precision_for, require_same
from ketrag_fast.models.embedders.protocol import Embedder, Role, Vectors
from ketrag_fast.models.embedders.registry import BUILTIN, fingerprint, load, options_of
from ketrag_fast.models.lru import LruCache
from ketrag_fast.models.spending import SpendingLimit
from ketrag_fast.records import replace

REMEMBERED: Final = 1024


class QueryEmbedder:
    """Embeds queries with the model that built the index. Thread-safe.

    Its fingerprint is compared when the index is opened, its sample vectors when it is loaded.
    """

    def __init__(
        self,
        stored: Mapping[str, Any] | None,
        settings: Settings,
        limit: SpendingLimit | None = None,
        permit: Callable[[], None] | None = None,
    ) -> None:
        """Compare the fingerprints of settings and index.

        `limit` is the spending limit of the open index; by default the limit in the settings applies to this
        model alone. `permit` is called before the model is opened and raises if that is not allowed.
        """
        spec = settings.embedder
        if stored is None or spec == BUILTIN:
            built = "the builtin vectors" if stored is None else stored["spec"]
            raise ModelMismatch(
                f"the index was built with {built}, not with {spec}",
                hint="leave out --embedder, or rebuild the vectors: ketrag reembed --embedder ...",
            )
        self._stored = Identity.from_json(stored)
        self._spec = spec
        self._options = replace(options_of(settings, limit), is_for_queries=True)
        self.is_remote = spec.startswith("openai:")
        """Whether a server computes the vectors of queries, not this process."""
        self._permit = permit
        self._lock = threading.Lock()
        self._loaded: Embedder | None = None  # not yet compared with the model that built the index
        self._embedder: Embedder | None = None
        self._recent: LruCache[Vectors] = LruCache(REMEMBERED)
        self._compare_names()

    def _compare_names(self) -> None:
        """Raise ModelMismatch for another model; a missing model fails at the first query."""
        try:
            mark = fingerprint(self._spec, self._options)
        except (BackendMissing, BackendError, NetworkForbidden):
            return
        if mark != self._stored.fingerprint:
            raise ModelMismatch(
                f"the index was built with {self._stored.spec} "
                f"(fingerprint {self._stored.fingerprint[:12]}); {self._spec} has {mark[:12]}",
                hint="give the model that built it with --embedder, "
                "or rebuild the vectors: ketrag reembed --embedder ...",
            )

    def vectors(self, questions: Sequence[str], seconds: float | None = None) -> Vectors:
        """Return f32[questions, d]; recent queries come from the cache and do not wait for the model.

        Raises DeadlineExceeded if some are missing after `seconds`.
        """
        found = self._recent.known(questions)
        if any(text not in found for text in questions):
            found |= self._embed(questions, Limited(None, seconds, time.monotonic()))
        return np.stack([found[text] for text in questions])

    @property
    def is_parallel(self) -> bool:
        """Whether threads may embed at the same time, each on its own core."""
        loaded = self._embedder
        return loaded is not None and loaded.is_parallel

    def _embed(self, questions: Sequence[str], limit: Limited) -> dict[str, Vectors]:
        with self._use("query", limit) as embedder:
            found = self._recent.known(questions)  # another thread may have embedded it meanwhile
            new = [text for text in dict.fromkeys(questions) if text not in found]
            if new:
                vectors = embedder.embed(new, "query", None, lambda: limit.reached)
                fresh = dict(zip(new, vectors, strict=True))
                self._recent.add(fresh)
                found |= fresh
            return found

    def embed(self, texts: Sequence[str], role: Role, limit: Limited) -> Vectors:
        """Return f32[texts, d] without caching. Raises DeadlineExceeded when the limit is reached."""
        with self._use("texts", limit) as embedder:
            return embedder.embed(texts, role, None, lambda: limit.reached)

    @contextmanager
    def _use(self, what: str, limit: Limited) -> Iterator[Embedder]:
        """Yield the loaded model, to one thread at a time unless it is parallel.

        Raises DeadlineExceeded if `what` is not embedded when the limit is reached.
        """
        late = DeadlineExceeded(
            f"{self._spec} did not embed the {what} before the deadline",
            hint="give more seconds or fewer texts"
            if what == "texts"
            else "give more seconds, or a mode without vectors",
        )
        loaded, left = self._embedder, limit.left
        try:
            if loaded is not None and loaded.is_parallel:
                yield loaded
                return
            if not self._lock.acquire(timeout=-1 if left is None else left):
                raise late
            try:
                yield self._ready(limit)
            finally:
                self._lock.release()
        except Cancelled:
            raise late from None

    def load(self) -> None:
        """Load the model now instead of at the first query."""
        if self._embedder is None:
            with self._lock:
                self._ready()

    def _ready(self, limit: Limited | None = None) -> Embedder:
        """Return the loaded model. Raises Cancelled when the limit is reached.

        Loading a local model is never interrupted, and the model is kept; an endpoint is dropped at once.
        """

        def cancel() -> bool:
            return limit is not None and limit.reached

        if self._loaded is None:
            if self._permit is not None:
                self._permit()
            precision = precision_for(self._stored, self._options.precision)
            self._loaded = load(self._spec, replace(self._options, cancel=cancel, precision=precision))
        if self._embedder is None:
            try:
                require_same(self._stored, self._loaded, cancel=cancel)
            except ModelMismatch:
                self._forget()
                raise
            self._embedder = self._loaded
        return self._embedder

    def _forget(self) -> None:
        loaded, self._loaded, self._embedder = self._loaded, None, None
        if loaded is not None:
            loaded.close()

    def close(self) -> None:
        """Release the model."""
        with self._lock:
            self._forget()
