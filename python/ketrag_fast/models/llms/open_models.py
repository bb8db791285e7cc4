"""The LLMs of an open index: each is opened once and used by one query at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import Cancelled, DeadlineExceeded
from ketrag_fast.models.spending import Account, SpendingLimit

if TYPE_CHECKING:
    from ketrag_fast.models.llms.protocol import Cancel, LanguageModel, ModelIdentity


class Models:
    """The LLMs of an open index. Thread-safe. They share an `account` under the spending `limit`."""

    def __init__(self, settings: Settings) -> None:
        self.limit = SpendingLimit(settings.limit_usd)
        price = settings.llm_usd_per_million
        price = settings.usd_per_million if price is None else price
        # A limit without a price is an error when an endpoint is used, not when the index is opened.
        self.account = Account(
            price,
            SpendingLimit() if price is None else self.limit,
            usd_per_million_out=settings.llm_usd_per_million_out,
        )
        self._priced = price is not None or settings.limit_usd is None
        self._settings = settings
        self._lock = threading.Lock()
        self._opened: dict[str, _Opened] = {}

    @contextmanager
    def lend(self, spec: str, seconds: float | None = None) -> Iterator[LanguageModel]:
        """Lend the opened model of a spec exclusively until the `with` ends.

        Raises DeadlineExceeded if opening it or waiting for other users takes longer than `seconds`.
        """
        opened = self._find(spec)
        limit = Limited(None, seconds, time.monotonic())
        left = limit.left
        if not opened.busy.acquire(timeout=-1 if left is None else left):
            raise DeadlineExceeded(
                f"{spec} was busy with other queries until the deadline",
                hint="give more seconds, or send fewer queries at once",
            )
        try:
            try:
                model = self._ready(spec, opened, None if seconds is None else lambda: limit.reached)
            except Cancelled:
                raise DeadlineExceeded(
                    f"{spec} was not opened before the deadline", hint="give more seconds, or another model"
                ) from None
            yield model
        finally:
            opened.busy.release()

    def open(self, spec: str, slots: int) -> LanguageModel:
        """Open the model of a spec once more, for many prompts at a time; the caller closes it."""
        self._require_price(spec)
        return self._open(spec, slots)

    def _open(self, spec: str, slots: int, cancel: Cancel | None = None) -> LanguageModel:
        from ketrag_fast.models.llms.registry import ModelOptions, open_model

        options = ModelOptions(
            offline=self._settings.offline,
            slots=slots,
            context=self._settings.llm_context,
            threads=self._settings.threads,
            account=self.account,
            cancel=cancel,
        )
        return open_model(spec, options)

    def identity(self, spec: str) -> ModelIdentity:
        """Return the identity of the model of a spec; waits only if it is not open yet."""
        opened = self._find(spec)
        model = opened.model
        if model is None:
            with opened.busy:
                model = self._ready(spec, opened)
        return model.identity

    def _find(self, spec: str) -> _Opened:
        with self._lock:
            return self._opened.setdefault(spec, _Opened())

    def _ready(self, spec: str, opened: _Opened, cancel: Cancel | None = None) -> LanguageModel:
        """Open the model on first use; the caller holds its lock.

        With `cancel`, the weights of a local model are loaded too, and Cancelled is raised when `cancel`
        returns True.
        """
        from ketrag_fast.models.llms.protocol import Loadable

        if opened.model is None:
            self._require_price(spec)
            # One reply at a time: batching changes rounding, and a ranking must not depend on it.
            opened.model = self._open(spec, 1, cancel)
        if cancel is not None and isinstance(opened.model, Loadable):
            opened.model.load(cancel)
        return opened.model

    def _require_price(self, spec: str) -> None:
        """Raise ConfigError for an endpoint without a price if there is a limit in USD."""
        from ketrag_fast.models.llms.registry import parse_spec

        if not self._priced and parse_spec(spec)[0] == "openai":
            Account(None, self.limit)  # raises if the model has no price

    def close(self) -> None:
        """Close all models."""
        with self._lock:
            every, self._opened = self._opened, {}
        for opened in every.values():
            with opened.busy:
                if opened.model is not None:
                    opened.model.close()


@dataclass
class _Opened:
    """A model, once it is open, and the lock of its current user."""

    model: LanguageModel | None = None
    busy: threading.Lock = field(default_factory=threading.Lock)
