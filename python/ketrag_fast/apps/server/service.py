"""The state of one worker that all requests share: indexes, threads, counters, limits."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from ketrag_fast.apps.server.batching import Batcher, BatchPlan
from ketrag_fast.apps.server.hosts import is_local
from ketrag_fast.apps.server.indexes import Indexes, OpenIndex
from ketrag_fast.apps.server.metrics import Metrics
from ketrag_fast.apps.server.options import ServerOptions
from ketrag_fast.apps.server.problems import late_reply
from ketrag_fast.apps.server.replies import json_bytes
from ketrag_fast.query.themes.question import SURVEY, asks_about_the_whole
from ketrag_fast.secrets import Key
from ketrag_fast.types import Context

_WHOLE: Final = b'"warnings":[]'
_EMBEDDED: Final = 32
_PLAIN: Final = 8
_CLOSING: Final = 3.0


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The options that the questions of a batch share."""

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
        """Run a call on a thread that no question waits for."""
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
    """Return a context as JSON; `suggested_mode` is survey for a question that may be about the whole."""
    found = context.to_json()
    if query.mode is None and context.mode != SURVEY and asks_about_the_whole(context.question):
        found["suggested_mode"] = SURVEY
    return found


ENTRY_BYTES: Final = 700
"""Bytes of an entry besides its reply and the texts of its key: a key, two tuples, a place in the table, and
what the allocator adds to each."""


class ReplyCache:
    """Used from one event loop. `most` is the maximum memory of all entries in bytes."""

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
