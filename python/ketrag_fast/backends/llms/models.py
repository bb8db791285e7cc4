"""The language models that an open index asks: each opened once, lent to one question at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ketrag_fast.backends.llms.protocol import LanguageModel
from ketrag_fast.backends.llms.registry import ModelOptions, open_model
from ketrag_fast.backends.spending import Account
from ketrag_fast.config import Settings


class Models:
    """Safe for threads. What all of them may cost is counted together (`account`)."""

    def __init__(self, settings: Settings) -> None:
        price = settings.llm_usd_per_million
        self.account = Account(
            settings.usd_per_million if price is None else price,
            settings.limit_usd,
            usd_per_million_out=settings.llm_usd_per_million_out,
        )
        # One reply at a time: in company sums round differently, and a ranking must not depend on company.
        self._options = ModelOptions(
            offline=settings.offline,
            slots=1,
            context=settings.llm_context,
            threads=settings.threads,
            account=self.account,
        )
        self._lock = threading.Lock()
        self._opened: dict[str, tuple[LanguageModel, threading.Lock]] = {}

    @contextmanager
    def lend(self, spec: str) -> Iterator[LanguageModel]:
        """The model of a spec, to its borrower alone. Raises what opening it raises."""
        with self._lock:
            if spec not in self._opened:
                self._opened[spec] = (open_model(spec, self._options), threading.Lock())
            model, busy = self._opened[spec]
        with busy:
            yield model

    def close(self) -> None:
        """Gives back the memory of all."""
        with self._lock:
            opened, self._opened = self._opened, {}
        for model, busy in opened.values():
            with busy:
                model.close()
