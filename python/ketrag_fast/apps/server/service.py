"""State that all requests of a worker share: indexes, threads, limits and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from ketrag_fast.apps.server.metrics import Metrics
from ketrag_fast.apps.server.options import ServerOptions, is_local
from ketrag_fast.apps.server.replies import Problem, busy, json_bytes, late_reply, log
from ketrag_fast.errors import ConfigError, KetragError
from ketrag_fast.index import Index
from ketrag_fast.query.query import QueryFields
from ketrag_fast.query.themes.question import SURVEY, asks_about_the_whole
from ketrag_fast.secrets import Key
from ketrag_fast.types import Context

BATCH: Final = 32
"""Queries that a thread runs together."""
_BUSY: Final = 1.0
_CLOSING: Final = 3.0
_PAUSES: Final = 20.0
"""Times the duration of a check of all files that passes between two checks."""
_AGAIN: Final = 30.0


@dataclass(eq=False)
class OpenIndex:
    """An open index and its name. The lock `answering` lets one question at a time use the language model."""

    name: str
    index: Index
    created: int
    answering: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _later: float = 0.0

    def keep_up(self) -> float:
        """Index changed files, however long it takes, and return how long looking for them took, in seconds.

        After a failure, such as a folder that cannot be written, it pauses for `_AGAIN` seconds.
        """
        begin = time.monotonic()
        if begin < self._later:
            return 0.0
        found = self.index.freshen()
        took = 0.0 if found.updated else time.monotonic() - begin
        if found.is_pending:
            found = self.index.freshen("always")
        if found.reason is not None:
            self._later = time.monotonic() + _AGAIN
        return took


class OpenIndexes:
    """The indexes of a service by name."""

    def __init__(self, options: ServerOptions) -> None:
        settings = options.opened_with()
        if options.writable and settings.allow is not None:
            raise ConfigError(
                "--allow-write with --allow: clients that may not see all documents may not change them",
                hint="leave out one of them",
            )
        self._all: dict[str, OpenIndex] = {}
        try:
            for name, folder in options.indexes.items():
                index = Index.open(folder, settings=settings)
                self._all[name] = OpenIndex(name, index, int(index.path.stat().st_mtime))
                index.inspect.open_answer_llm()
        except KetragError:
            self.close()
            raise
        self.folders = tuple(sorted(options.indexes.items(), key=lambda row: -len(row[1])))
        """Names and folders, longest folder first; messages must not show folders."""
        self.on_change: Callable[[], object] = lambda: None
        """Called when queries see a new generation."""

    def __iter__(self) -> Iterator[OpenIndex]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def find(self, name: str | None) -> OpenIndex:
        """Return the index of a name, the first one for None. Raises Problem 404 for an unknown name."""
        entry = next(iter(self)) if name is None else self._all.get(name)
        if entry is None:
            hint = f"indexes: {', '.join(self._all)}"
            raise Problem(404, "unknown_index", f"unknown index {str(name)[:80]!r}", hint=hint)
        return entry

    @contextlib.asynccontextmanager
    async def fresh(self, seconds: float) -> AsyncIterator[None]:
        """Index changed files and open new generations while the block runs, without delaying queries."""
        task = asyncio.create_task(self._stay_fresh(seconds))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _stay_fresh(self, seconds: float) -> None:
        """Look for changed files and new generations until cancelled.

        A damaged generation is logged, and the old one stays in use.
        """
        errors: dict[str, str] = {}
        pause = seconds
        while True:
            await asyncio.sleep(pause)
            pause = seconds
            for entry in self:
                before = entry.index.generation
                try:
                    await asyncio.to_thread(entry.index.refresh, warm=True)
                    took = await asyncio.to_thread(entry.keep_up)
                    pause = max(pause, _PAUSES * took)
                    if entry.index.generation != before:
                        self.on_change()
                        log.info("index %s: generation %d", entry.name, entry.index.generation)
                    errors.pop(entry.name, None)
                except KetragError as error:
                    if errors.get(entry.name) != error.message:
                        errors[entry.name] = error.message
                        log.error("index %s stays at its generation: %s", entry.name, error.message)

    def close(self) -> None:
        """Release files and models."""
        for entry in self:
            with contextlib.suppress(KetragError):
                entry.index.close()


class Service:
    """The state of one worker. Requests must send `token` if it is not None."""

    def __init__(self, options: ServerOptions, token: str | None) -> None:
        self.options = options
        self.token = token
        if token is not None:
            Key(token)  # redacted from now on in all output
        self.indexes = OpenIndexes(options)
        self.metrics = Metrics()
        self.ready = False
        self.stopping = False
        self.waiting = 0
        """Number of questions that wait for a thread."""
        self._turns = asyncio.Semaphore(options.concurrency)
        self._threads = ThreadPoolExecutor(options.concurrency, thread_name_prefix="ketrag-question")
        self._slow = ThreadPoolExecutor(4, thread_name_prefix="ketrag-slow")
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

    async def contexts(
        self, index: Index, fields: QueryFields, questions: Sequence[str], seconds: float
    ) -> list[bytes]:
        """Return the reply to each question.

        The core answers plain requests; these are the others. Those of a large request take turns with other
        requests.

        Raises Problem 429 if the queue has no room for all, 504 after the deadline.
        """
        if self.waiting and self.waiting + len(questions) > self.options.queue:
            raise busy(_BUSY)
        until = time.monotonic() + seconds
        replies: list[bytes] = []
        left = len(questions)
        self.waiting += left
        size = self.options.batch or BATCH
        try:
            async with asyncio.timeout(seconds):
                for first in range(0, len(questions), size):
                    some = questions[first : first + size]
                    async with self._turns:
                        self.waiting -= len(some)
                        left -= len(some)
                        self.metrics.batches.observe(len(some))
                        replies += await asyncio.get_running_loop().run_in_executor(
                            self._threads, self._contexts, index, fields, some, until
                        )
        except TimeoutError:
            raise late_reply(seconds) from None
        finally:
            self.waiting -= left
        return replies

    def _contexts(
        self, index: Index, fields: QueryFields, questions: Sequence[str], until: float
    ) -> list[bytes]:
        """Return the replies to some questions, on a thread."""
        fields = {**fields, "deadline": max(until - time.monotonic(), 0.0) / len(questions)}
        if len(questions) == 1:
            contexts = [index.retrieve(questions[0], **fields)]
        else:
            contexts = index.retrieve_many(questions, threads=self.options.concurrency, **fields)
        return [json_bytes(context_json(context, fields)) for context in contexts]

    async def aside(self, call: Any, *args: Any) -> Any:
        """Run a call on a separate thread, so that queries do not wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._slow, call, *args)

    def close(self, seconds: float = _CLOSING) -> None:
        """Wait for running work and release everything.

        What still runs after `seconds` (a silent language model, for example) is abandoned: `stuck` is then
        true, and the indexes stay open for it.
        """
        pools = (self._threads, self._slow, self.writers)
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        waiter = threading.Thread(target=lambda: [*map(ThreadPoolExecutor.shutdown, pools)], daemon=True)
        waiter.start()
        waiter.join(seconds)
        self.stuck = waiter.is_alive()
        if not self.stuck:
            self.indexes.close()


def context_json(context: Context, fields: QueryFields) -> dict[str, Any]:
    """Return a context as JSON.

    With `explain`, `suggested_mode` is survey for a question that may be about the whole. Plain questions are
    answered by the core, which does not know the rule.
    """
    found = context.to_json()
    is_open = fields.get("explain") and fields.get("mode") is None and context.mode != SURVEY
    if is_open and asks_about_the_whole(context.question):
        found["suggested_mode"] = SURVEY
    return found
