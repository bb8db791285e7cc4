"""State that all requests of a worker share: indexes, threads, batches, caches, limits and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Generic, TypeVar

from ketrag_fast.apps.server.indexes import Indexes, OpenIndex
from ketrag_fast.apps.server.metrics import Metrics
from ketrag_fast.apps.server.options import ServerOptions, is_local
from ketrag_fast.apps.server.problems import busy, late_reply, log
from ketrag_fast.apps.server.replies import json_bytes
from ketrag_fast.errors import DeadlineExceeded, KetragError
from ketrag_fast.query.themes.question import SURVEY, asks_about_the_whole
from ketrag_fast.secrets import Key
from ketrag_fast.types import Context

_WHOLE: Final = b'"warnings":[]'
_EMBEDDED: Final = 32
_PLAIN: Final = 8
_CLOSING: Final = 3.0


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Retrieval options of a question; questions with equal options are batched together."""

    entry: OpenIndex
    mode: str | None
    budget: int | None
    top: int | None
    explain: bool
    filter: str | None = None
    """As text or as JSON."""
    hops: tuple[str, ...] = ()
    newest: bool | None = None
    min_score: float | None = None


Group = tuple[QueryOptions, int]


class Service:
    """The state of one worker. Requests must send `token` if it is not None."""

    def __init__(self, options: ServerOptions, token: str | None) -> None:
        self.options = options
        self.token = token
        if token is not None:
            Key(token)  # redacted from now on in all output
        self.indexes = Indexes(options)
        self.metrics = Metrics()
        self.ready = False
        self.stopping = False
        self.cache = ReplyCache(options.cache)
        self._requests = count(1)
        self.batcher: Batcher[Group] = Batcher(
            _answers,
            threads=options.concurrency,
            plan=self._plan,
            queue=options.queue,
            on_batch=self.metrics.batches.observe,
        )
        self.slow = ThreadPoolExecutor(4, thread_name_prefix="ketrag-slow")
        """For statistics, graphs and documents, so that no question waits for them."""
        self.writers = ThreadPoolExecutor(max(2, 2 * len(self.indexes)), thread_name_prefix="ketrag-answer")
        """For LLM answers."""
        self.stuck = False
        """Whether threads were still running when the service ended."""
        self.waiting_in_front: Callable[[], int] = lambda: 0
        """Returns the number of questions that wait in the core's front."""
        self.answers = 0
        """Number of answers in progress or waiting."""

    @property
    def accepts_any_host(self) -> bool:
        """True if any `Host` is accepted, because every request must carry the token."""
        options = self.options
        return self.token is not None and not options.hosts and not is_local(options.host)

    def _plan(self, group: Group) -> BatchPlan:
        query, _ = group
        index, most = query.entry.index, self.options.batch
        if not index.inspect.embeds(query.mode):
            return BatchPlan(_PLAIN if most is None else most)

        def embed(questions: Sequence[str], seconds: float) -> None:
            index.inspect.vectors(questions, seconds=seconds)  # caches them for `retrieve`

        return BatchPlan(_EMBEDDED if most is None else most, query.entry, embed)

    async def contexts(self, query: QueryOptions, questions: Sequence[str], seconds: float) -> list[bytes]:
        """Return the reply to each question, from the cache if possible."""
        generation = query.entry.index.generation
        replies: list[bytes | None] = [self.cache.get((query, generation, text)) for text in questions]
        new = [at for at, reply in enumerate(replies) if reply is None]
        if len(new) < len(replies):
            self.metrics.cache.inc(len(replies) - len(new))
        if new:
            until = time.monotonic() + seconds
            # Single questions share a group; a request with many questions has its own. Groups take turns,
            # so that no question waits for all of a large request.
            group = (query, 0 if len(new) == 1 else next(self._requests))
            futures = self.batcher.submit(group, [questions[at] for at in new], until)
            self.metrics.waiting.set(self.batcher.waiting)
            late = asyncio.get_running_loop().call_later(seconds, _late, futures, seconds)
            try:
                results = [await future for future in futures]
            finally:
                late.cancel()
                for future in futures:
                    if not future.cancel() and not future.cancelled():
                        future.exception()  # marks it as retrieved; the first failure was raised
            for at, reply in zip(new, results, strict=True):
                replies[at] = reply
                # A reply with warnings (a model that was missing, for example) is not cached.
                if query.entry.index.generation == generation and _WHOLE in reply:
                    text = questions[at]
                    self.cache.add((query, generation, text), reply, (text, query.filter, query.mode))
        return [reply for reply in replies if reply is not None]

    async def aside(self, call: Any, *args: Any) -> Any:
        """Run a call on a separate thread, so that queries do not wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self.slow, call, *args)

    def close(self, seconds: float = _CLOSING) -> None:
        """Wait for running work and release everything.

        What still runs after `seconds` (a silent language model, for example) is abandoned: `stuck` is then
        true, and the indexes stay open for it.
        """
        pools = (self.batcher.close, self.slow.shutdown, self.writers.shutdown)
        for pool in (self.slow, self.writers):
            pool.shutdown(wait=False, cancel_futures=True)
        waiter = threading.Thread(target=lambda: [wait() for wait in pools], daemon=True)
        waiter.start()
        waiter.join(seconds)
        self.stuck = waiter.is_alive()
        if not self.stuck:
            self.indexes.close()


def _late(futures: Sequence[asyncio.Future[bytes]], seconds: float) -> None:
    """Fail the request whose futures are not done in time."""
    for future in futures:
        if not future.done():
            future.set_exception(late_reply(seconds))
            return


def _answers(group: Group, questions: Sequence[str], seconds: float) -> list[bytes]:
    """Return the replies to a batch, on a thread. The core releases the GIL, so threads use all cores."""
    query, _ = group
    index = query.entry.index
    options: dict[str, Any] = {
        "mode": query.mode,
        "budget": query.budget,
        "top": query.top,
        "min_score": query.min_score,
        "explain": query.explain,
        "deadline": seconds,
        "filter": query.filter,
        "hops": query.hops,
        "newest": query.newest,
    }
    if len(questions) == 1:  # on this thread
        return [json_bytes(context_json(index.retrieve(questions[0], **options), query))]
    contexts = index.retrieve_many(questions, threads=1, **options)
    return [json_bytes(context_json(context, query)) for context in contexts]


def context_json(context: Context, query: QueryOptions) -> dict[str, Any]:
    """Return a context as JSON.

    With `explain`, `suggested_mode` is survey for a question that may be about the whole. Plain questions are
    answered by the core, which does not know the rule.
    """
    found = context.to_json()
    is_open = query.explain and query.mode is None and context.mode != SURVEY
    if is_open and asks_about_the_whole(context.question):
        found["suggested_mode"] = SURVEY
    return found


ENTRY_BYTES: Final = 700
"""Bytes of an entry besides its reply and the texts of its key: a key, two tuples, a place in the table, and
what the allocator adds to each."""


class ReplyCache:
    """A cache of replies that evicts the least recently used, for one event loop. `most` is its size in
    bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._replies: OrderedDict[Hashable, tuple[bytes, int]] = OrderedDict()

    @property
    def size(self) -> int:
        """Size of all entries in bytes."""
        return self._size

    def get(self, key: Hashable) -> bytes | None:
        """Return the reply, if it is in the cache."""
        entry = self._replies.get(key)
        if entry is None:
            return None
        self._replies.move_to_end(key)
        return entry[0]

    def add(self, key: Hashable, reply: bytes, texts: tuple[str | None, ...]) -> None:
        """Store a copy of a reply. `texts` are the texts in the key, which count as well.

        A copy, because orjson leaves the buffer of a document as large as it grew while it was written: four
        times the size of a reply with passages.
        """
        size = ENTRY_BYTES + sys.getsizeof(reply) + sum(sys.getsizeof(text) for text in texts if text)
        if size > self._most or key in self._replies:
            return
        self._replies[key] = (bytes(memoryview(reply)), size)
        self._size += size
        while self._size > self._most:
            _, (_, size) = self._replies.popitem(last=False)
            self._size -= size

    def __len__(self) -> int:
        return len(self._replies)


BatchKey = TypeVar("BatchKey", bound=Hashable)
_SMOOTH: Final = 0.05
_LEAST: Final = 0.001
_SPARE: Final = 2
"""Threads in addition to two for each query in progress, for further models that embed."""


@dataclass(slots=True, eq=False)
class PendingQuestion:
    """A question in the queue."""

    question: str
    until: float
    done: asyncio.Future[bytes] = field(repr=False)


Answer = Callable[[BatchKey, Sequence[str], float], Sequence[bytes]]
"""Function from a key, questions and seconds for each to replies. Runs on a thread."""
Prepare = Callable[[Sequence[str], float], object]
"""Function that embeds all waiting questions, one thread at a time."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """How questions with one key are batched: at most `largest` together. One thread at a time prepares the
    questions for a `model`; those that arrive meanwhile form the next batch.
    """

    largest: int
    model: Hashable | None = None
    prepare: Prepare | None = None


class Batcher(Generic[BatchKey]):
    """Batches questions from one event loop; `answer` runs on a pool of `threads` threads."""

    def __init__(
        self,
        answer: Answer[BatchKey],
        *,
        threads: int,
        plan: Callable[[BatchKey], BatchPlan],
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
        self._waiting: OrderedDict[BatchKey, deque[PendingQuestion]] = OrderedDict()
        self.waiting = 0
        """Number of questions in the queue."""
        self._planned = False
        self._mean = _LEAST
        """Seconds of one thread per question, smoothed."""

    def submit(self, key: BatchKey, questions: Sequence[str], until: float) -> list[asyncio.Future[bytes]]:
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

    def _next_batch(self, threads: int) -> tuple[BatchKey, BatchPlan, list[PendingQuestion]] | None:
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
        self, loop: asyncio.AbstractEventLoop, key: BatchKey, plan: BatchPlan, items: list[PendingQuestion]
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
        """Start a thread for the waiting questions, if one is free."""
        with self._lock:
            wake = bool(self._waiting) and self._free > 0
        if wake:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._dispatch)

    def _results(self, key: BatchKey, items: list[PendingQuestion]) -> list[bytes | Exception]:
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
