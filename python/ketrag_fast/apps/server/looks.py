"""Look for changed files before a request is answered, as often as looking is cheap.

A request waits for a look that began after it arrived; requests that arrive together share one. Looks that
find nothing take at most a twentieth of the time, so that many requests are not delayed, and neither is one
whose look takes long. A client that sends one request after another has the time between them saved.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Final

PAUSES: Final = 19
"""Times the duration of a look that must pass before the next one, unless earlier pauses were longer."""
SAVED: Final = 5.0
"""Maximum seconds of pauses that may be made later: looks of 0.25 s together may follow one another."""
LONGEST: Final = 2.0
"""Maximum seconds that a request waits."""


class Looks:
    """The looks of a service. `look` runs on a thread; it returns whether it changed anything."""

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look
        self._task: asyncio.Task[None] | None = None
        self._began = float("-inf")
        self._over = float("-inf")
        """Time at which the pauses of all looks are over."""

    @property
    def is_due(self) -> bool:
        """Whether a request waits for a check of the sources. Not if recent checks have taken too long."""
        return self._over <= time.monotonic() + SAVED

    def wait_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Like `wait`, on another thread than that of the event loop of the service."""
        if self.is_due:
            with suppress(TimeoutError, RuntimeError, CancelledError):  # the service ends
                asyncio.run_coroutine_threadsafe(self.wait(), loop).result(2 * LONGEST)

    async def wait(self) -> None:
        """Wait for a look that begins now; return at once if looks have taken too much time."""
        arrived = time.monotonic()
        if not self.is_due:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST):
                while self._began < arrived:
                    if self._task is None or self._task.done():
                        self._began = time.monotonic()
                        self._task = asyncio.create_task(self._run())
                    await asyncio.shield(self._task)
                if self._task is not None:
                    await asyncio.shield(self._task)

    async def _run(self) -> None:
        begin = time.monotonic()
        if await asyncio.to_thread(self._look):
            return  # an edit causes the time, not the requests
        end = time.monotonic()
        self._over = max(self._over, end) + PAUSES * (end - begin)
