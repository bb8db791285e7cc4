"""The calls that a build makes of one model: when to ask nothing more, what they took, when to give up."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from ketrag_fast.backends.llms.protocol import Reply
from ketrag_fast.errors import BackendError
from ketrag_fast.progress import Meter

if TYPE_CHECKING:
    from ketrag_fast.extraction.run import Reading

ERRORS: Final = 10
"""Calls in a row that fail before the build stops: the endpoint is gone."""
_TICK: Final = 0.2


class Calls:
    """`done` of `total` pieces of work are told to `report`, in the thread that made this alone: a backend
    may ask whether to stop from another.
    """

    def __init__(self, reading: Reading, report: Meter, total: int) -> None:
        self._reading, self._report, self._total = reading, report, total
        self.done = 0
        self._errors = 0
        self._ticked = 0.0
        self._thread = threading.get_ident()

    def stop(self) -> bool:
        """Whether to ask nothing more; also keeps the progress line alive while a model computes."""
        if self._reading.expired:
            self._reading.outcome.stopped = "limit_seconds"
            return True
        now = time.monotonic()
        if now - self._ticked >= _TICK and threading.get_ident() == self._thread:
            self._ticked = now
            self.tell()
        return self._report.stopped

    def tell(self) -> None:
        """Reports how far it is."""
        self._report(self.done, self._total)

    def count(self, reply: Reply, *, called: bool = True) -> None:
        """Adds a reply to the build's account; `called` is False where nothing was sent.

        Raises BackendError when too many failed in a row.
        """
        outcome = self._reading.outcome
        outcome.asked += called
        outcome.tokens_in += reply.tokens_in
        outcome.tokens_out += reply.tokens_out
        outcome.tokens_shared += reply.tokens_shared
        self._errors = self._errors + 1 if called and reply.finish == "error" else 0
        if self._errors >= ERRORS:
            raise BackendError(
                f"{self._reading.reader.spec}: {ERRORS} calls in a row failed; the last said: {reply.error}",
                hint="what came before is kept: mend the endpoint and run the same command again",
            )
