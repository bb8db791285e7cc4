"""What one worker holds, for all requests: indexes, threads, counters, bounds."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from ketrag_fast.apps.server.batching import Batcher, BatchPlan
from ketrag_fast.apps.server.indexes import Indexes, OpenIndex
from ketrag_fast.apps.server.metrics import Metrics
from ketrag_fast.apps.server.options import ServerOptions
from ketrag_fast.apps.server.problems import Problem
from ketrag_fast.apps.server.replies import json_bytes
from ketrag_fast.apps.server.reply_cache import ReplyCache
from ketrag_fast.secrets import Key

_WHOLE: Final = b'"warnings":[]'
_EMBEDDED: Final = 32
_PLAIN: Final = 8
_CLOSING: Final = 3.0


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What questions have in common that are put to the core together."""

    entry: OpenIndex
    mode: str | None
    budget: int | None
    top: int | None
    explain: bool
    filter: str | None = None
    """In words, or as JSON."""


Group = tuple[QueryOptions, int]


class Service:
    """One worker's. `token` is what a request must show, if there is one."""

    def __init__(self, options: ServerOptions, token: str | None) -> None:
        self.options = options
        self.token = token
        if token is not None:
            Key(token)  # covered from now on in whatever is written
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
        """For statistics, graphs and documents: no question waits behind them."""
        self.writers = ThreadPoolExecutor(max(2, 2 * len(self.indexes)), thread_name_prefix="ketrag-answer")
        """For the answers of language models."""
        self.stuck = False
        """Whether threads still ran when the service ended."""
        self.answers = 0
        """Answers that are made or wait."""

    def _plan(self, group: Group) -> BatchPlan:
        query, _ = group
        index, most = query.entry.index, self.options.batch
        if not index.inspect.embeds(query.mode):
            return BatchPlan(_PLAIN if most is None else most)

        def embed(questions: Sequence[str], seconds: float) -> None:
            index.inspect.vectors(questions, seconds=seconds)  # which remembers them for those who answer

        return BatchPlan(_EMBEDDED if most is None else most, query.entry, embed)

    async def contexts(self, query: QueryOptions, questions: Sequence[str], seconds: float) -> list[bytes]:
        """The reply to each question; what is at hand is not made again."""
        generation = query.entry.index.generation
        made: list[bytes | None] = [self.cache.get((query, generation, text)) for text in questions]
        new = [at for at, reply in enumerate(made) if reply is None]
        if len(new) < len(made):
            self.metrics.cache.inc(len(made) - len(new))
        if new:
            until = time.monotonic() + seconds
            # Single questions go together; those of a request with many are a group of their own, and groups
            # take turns: nobody waits for all of a large request.
            group = (query, 0 if len(new) == 1 else next(self._requests))
            futures = self.batcher.submit(group, [questions[at] for at in new], until)
            self.metrics.waiting.set(self.batcher.waiting)
            late = asyncio.get_running_loop().call_later(seconds, _late, futures, seconds)
            try:
                replies = [await future for future in futures]
            finally:
                late.cancel()
                for future in futures:
                    if not future.cancel() and not future.cancelled():
                        future.exception()  # said once, by the first that failed
            for at, reply in zip(new, replies, strict=True):
                made[at] = reply
                # What had to do without something (a model, for a while) is not what is asked for later.
                if query.entry.index.generation == generation and _WHOLE in reply:
                    text = questions[at]
                    self.cache.add((query, generation, text), reply, (text, query.filter, query.mode))
        return [reply for reply in made if reply is not None]

    async def aside(self, call: Any, *given: Any) -> Any:
        """Runs a call on a thread that no question waits for."""
        return await asyncio.get_running_loop().run_in_executor(self.slow, call, *given)

    def close(self, seconds: float = _CLOSING) -> None:
        """Wait for what runs and release everything. What still runs after some seconds (a language model
        that is silent, say) is abandoned: `stuck` is then true, and the indexes stay open for it.
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
    """Whoever waits for these waits no longer."""
    for future in futures:
        if not future.done():
            future.set_exception(Problem(504, "deadline", f"no answer within {seconds:g} s"))
            return


def _answers(group: Group, questions: Sequence[str], seconds: float) -> list[bytes]:
    """On a thread: the core ranks without the interpreter, so that these threads fill the processors."""
    query, _ = group
    index = query.entry.index
    options: dict[str, Any] = {
        "mode": query.mode,
        "budget": query.budget,
        "top": query.top,
        "explain": query.explain,
        "deadline": seconds,
        "filter": query.filter,
    }
    if len(questions) == 1:  # on this very thread
        return [json_bytes(index.retrieve(questions[0], **options).to_json())]
    return [json_bytes(context.to_json()) for context in index.retrieve_many(questions, threads=1, **options)]
