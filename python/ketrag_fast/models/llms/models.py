"""The language models that an open index asks: each opened once, used by one question at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import Cancelled, DeadlineExceeded
from ketrag_fast.models.llms.protocol import Cancel, LanguageModel, Loadable, ModelIdentity
from ketrag_fast.models.llms.registry import ModelOptions, open_model, parse_spec
from ketrag_fast.models.spending import Account, SpendingLimit


class Models:
    """Safe for threads. What all of them may cost is counted together (`account`), under `limit`."""

    def __init__(self, settings: Settings) -> None:
        self.limit = SpendingLimit(settings.limit_usd)
        price = settings.llm_usd_per_million
        price = settings.usd_per_million if price is None else price
        # A limit without a price is the fault of an endpoint that is asked, not of an index that is opened.
        self.account = Account(
            price,
            SpendingLimit() if price is None else self.limit,
            usd_per_million_out=settings.llm_usd_per_million_out,
        )
        self._priced = price is not None or settings.limit_usd is None
        # One reply at a time: in company sums round differently, and a ranking must not depend on company.
        self._options = ModelOptions(
            offline=settings.offline,
            slots=1,
            context=settings.llm_context,
            threads=settings.threads,
            account=self.account,
        )
        self._lock = threading.Lock()
        self._opened: dict[str, _Opened] = {}

    @contextmanager
    def lend(self, spec: str, seconds: float | None = None) -> Iterator[LanguageModel]:
        """The model of a spec, opened, for the caller alone until the `with` ends. Raises what opening it
        raises, and DeadlineExceeded where that takes longer than `seconds`, or others keep it busy so long.
        """
        opened = self._find(spec)
        limit = Limited(None, seconds, time.monotonic())
        left = limit.left
        if not opened.busy.acquire(timeout=-1 if left is None else left):
            raise DeadlineExceeded(
                f"{spec} was busy with other questions until the deadline",
                hint="give more seconds, or ask fewer questions at once",
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

    def identity(self, spec: str) -> ModelIdentity:
        """Which model a spec names; does not wait for those who use it once it is open."""
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
        """Opens the model with the first use; the caller holds its lock, and no other model waits. Cancelled
        where `cancel` says so; a model that computes in this process then has loaded its weights, too.
        """
        if opened.model is None:
            if not self._priced and parse_spec(spec)[0] == "openai":
                Account(None, self.limit)  # raises, and says what to give
            opened.model = open_model(spec, replace(self._options, cancel=cancel))
        if cancel is not None and isinstance(opened.model, Loadable):
            opened.model.load(cancel)
        return opened.model

    def close(self) -> None:
        """Gives back the memory of all."""
        with self._lock:
            every, self._opened = self._opened, {}
        for opened in every.values():
            with opened.busy:
                if opened.model is not None:
                    opened.model.close()


@dataclass
class _Opened:
    """A model, once it was asked for, and the lock of whoever uses it."""

    model: LanguageModel | None = None
    busy: threading.Lock = field(default_factory=threading.Lock)
