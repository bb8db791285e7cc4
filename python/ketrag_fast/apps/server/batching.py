"""Batches of questions from many requests, answered by the core off the event loop.

A free thread takes whatever waits for the same index and options, so batches grow with the load and no
question waits for a batch to fill. An embedding model embeds a batch together while the next one grows.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from ketrag_fast.apps.server.problems import busy, log
from ketrag_fast.errors import DeadlineExceeded, KetragError

Key = TypeVar("Key", bound=Hashable)
_SMOOTH: Final = 0.05
_LEAST: Final = 0.001
_SPARE: Final = 2
"""Threads in addition to two for each question that is answered at a time: more models may embed."""


@dataclass(slots=True, eq=False)
class PendingQuestion:
    """A question in the queue."""

    question: str
    until: float
    done: asyncio.Future[bytes] = field(repr=False)


Answer = Callable[[Key, Sequence[str], float], Sequence[bytes]]
"""Returns replies to some questions, within some seconds for each. Runs on a thread."""
Prepare = Callable[[Sequence[str], float], object]
"""Prepares all waiting questions, one thread at a time: a model embeds them."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """How the questions of a key are batched: at most `largest` together.

    Questions with the same `model` are prepared by one thread at a time; those that arrive meanwhile form the
    next batch.
    """

    largest: int
    model: Hashable | None = None
    prepare: Prepare | None = None


class Batcher(Generic[Key]):
    """Used from one event loop; `answer` runs on `threads` threads of its pool."""

    def __init__(
        self,
        answer: Answer[Key],
        *,
        threads: int,
        plan: Callable[[Key], BatchPlan],
        queue: int,
        on_batch: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._answer = answer
        # A thread that waits for a model makes room for another one.
        self._pool = ThreadPoolExecutor(2 * threads + _SPARE, thread_name_prefix="ketrag-question")
        self._threads = self._free = threads
        self._plan = plan
        self._embedding: set[Hashable] = set()
        """Models in use by a thread."""
        self._queue = queue
        self._on_batch = on_batch
        self._lock = threading.Lock()
        """Guards the queue and the number of free threads, which take their next batch themselves."""
        self._waiting: OrderedDict[Key, deque[PendingQuestion]] = OrderedDict()
        self.waiting = 0
        """Number of questions in the queue."""
        self._planned = False
        self._mean = _LEAST
        """Seconds of one thread per question, smoothed."""

    def submit(self, key: Key, questions: Sequence[str], until: float) -> list[asyncio.Future[bytes]]:
        """Return a future for the reply to each question. Raises Problem 429 if the queue has no room for
        all.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            if self.waiting + len(questions) > self._queue and self.waiting:
                raise busy(self.waiting * self._mean / self._threads)
            items = [PendingQuestion(question, until, loop.create_future()) for question in questions]
            self._waiting.setdefault(key, deque()).extend(items)
            self.waiting += len(items)
            wake = self._free > 0 and not self._planned
        if wake:
            self._planned = True
            loop.call_soon(self._dispatch)  # questions that arrive in this turn join the batch
        return [item.done for item in items]

    def _dispatch(self) -> None:
        self._planned = False
        loop = asyncio.get_running_loop()
        while True:
            with self._lock:
                batch = self._next_batch(self._free) if self._free > 0 else None
                if batch is None:
                    return
                self._free -= 1
            self._pool.submit(self._run, loop, *batch)

    def _next_batch(self, threads: int) -> tuple[Key, BatchPlan, list[PendingQuestion]] | None:
        """Return the next batch if `threads` threads share the queue. The caller holds the lock."""
        for key in list(self._waiting):
            plan = self._plan(key)
            if plan.model in self._embedding:
                continue
            items = self._waiting[key]
            share = len(items) if plan.model is not None else -(-len(items) // threads)
            count = min(plan.largest, share)
            taken = [items.popleft() for _ in range(count)]
            self.waiting -= count
            if items:
                self._waiting.move_to_end(key)  # keys take turns
            else:
                del self._waiting[key]
            taken = [item for item in taken if not item.done.done()]  # the client may be gone
            if taken:
                if plan.model is not None:
                    self._embedding.add(plan.model)
                return key, plan, taken
        return None

    def _run(
        self, loop: asyncio.AbstractEventLoop, key: Key, plan: BatchPlan, items: list[PendingQuestion]
    ) -> None:
        """Answer batches, on a thread, until the queue is empty."""
        while True:
            self._on_batch(len(items))
            began = time.monotonic()
            if plan.model is not None:
                self._prepare(loop, plan, items)
            results = self._results(key, items)
            taken = (time.monotonic() - began) / len(items)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._finish, items, results, taken)
            with self._lock:
                batch = self._next_batch(self._free + 1) if self._free >= 0 else None
                if batch is None:
                    self._free += 1
                    return
            key, plan, items = batch

    def _prepare(
        self, loop: asyncio.AbstractEventLoop, plan: BatchPlan, items: list[PendingQuestion]
    ) -> None:
        with self._lock:
            self._free += 1
        self._wake(loop)
        left = min(item.until for item in items) - time.monotonic()
        try:
            if plan.prepare is not None and left > 0:
                plan.prepare([item.question for item in items], left)
        except Exception as error:  # noqa: BLE001 - answering raises the same error
            log.debug("questions could not be prepared: %s", error)
        with self._lock:
            self._free -= 1  # this thread goes on, possibly next to one more than usual
            self._embedding.discard(plan.model)
        self._wake(loop)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have waiting questions answered, if a thread is free."""
        with self._lock:
            wake = bool(self._waiting) and self._free > 0
        if wake:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._dispatch)

    def _results(self, key: Key, items: list[PendingQuestion]) -> list[bytes | Exception]:
        left = min(item.until for item in items) - time.monotonic()
        try:
            if left <= 0:
                raise DeadlineExceeded("the deadline passed while the question was in the queue")
            replies = self._answer(key, [item.question for item in items], left / len(items))
            return list(replies)
        except Exception as error:  # noqa: BLE001 - becomes the result of each question
            if len(items) == 1 or not isinstance(error, KetragError):
                return [error] * len(items)
        # One of them failed or is too slow; answer the others one by one.
        return [self._results(key, [item])[0] for item in items]

    def _finish(
        self, items: list[PendingQuestion], results: Sequence[bytes | Exception], seconds: float
    ) -> None:
        self._mean += _SMOOTH * (max(seconds, 1e-6) - self._mean)
        for item, result in zip(items, results, strict=True):
            if item.done.done():
                continue
            if isinstance(result, Exception):
                item.done.set_exception(result)
            else:
                item.done.set_result(result)

    def close(self) -> None:
        """Wait for running batches; drop the queue."""
        with self._lock:
            self._waiting.clear()
            self.waiting = 0
        self._pool.shutdown(wait=True, cancel_futures=True)
