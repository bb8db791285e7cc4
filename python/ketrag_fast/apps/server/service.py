"""State that all requests of a worker share: indexes, threads, limits and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ketrag_fast.apps.server.looks import Looks
from ketrag_fast.apps.server.metrics import Metrics
from ketrag_fast.apps.server.options import ServerOptions, is_local
from ketrag_fast.apps.server.replies import Problem, busy, json_bytes, late_reply, log
from ketrag_fast.apps.server.users import ABILITIES, User, UsersFile, digest_of
from ketrag_fast.errors import ConfigError, InputError, KetragError
from ketrag_fast.index import Index
from ketrag_fast.query.query import QueryFields
from ketrag_fast.query.themes.question import SURVEY, asks_about_the_whole
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.secrets import Key
from ketrag_fast.types import Context

if TYPE_CHECKING:
    from ketrag_fast.query.core_plans import RequestLog

_T = TypeVar("_T")
BATCH: Final = 32
"""Queries that a thread runs together."""
_BUSY: Final = 1.0
_CLOSING: Final = 3.0
_PAUSES: Final = 20.0
"""Times the duration of a check of all files that passes between two checks."""
_AGAIN: Final = 30.0
_STANDARD_ERROR: Final = 2


@dataclass(eq=False)
class OpenIndex:
    """An open index and its name. The lock `answering` lets one question at a time use the language model."""

    name: str
    index: Index
    created: int
    answering: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _later: float = 0.0
    _catching_up: threading.Lock = field(default_factory=threading.Lock)
    _seen: dict[str, tuple[tuple[int, str], OpenIndex | None]] = field(default_factory=dict)
    """The index as callers with an `allow` see it, by the condition, with generation and digest of the
    whole."""

    def seen_by(self, allow: str) -> OpenIndex | None:
        """Return the index of the documents that match a condition; None if it lacks a field of the
        condition.

        The first time in a generation, these documents are indexed, on the calling thread.
        """
        if not allow:
            return self
        key = (self.index.generation, self.index.digest)
        known = self._seen.get(allow)
        if known is not None and known[0] == key:
            return known[1]
        try:
            seen = replace(self, index=self.index.allowed(allow), _seen={})
        except InputError as error:
            log.warning("index %s is hidden from users with allow %r: %s", self.name, allow, error.message)
            seen = None
        self._seen[allow] = (key, seen)
        return seen

    def look(self) -> bool:
        """Index changed files if that is quick, unless `keep_up` is doing it.

        Returns whether others must be indexed by `keep_up`.
        """
        if self._catching_up.locked():
            return False
        return self.index.freshen().is_pending

    def keep_up(self) -> float:
        """Index changed files, however long it takes, and return how long looking for them took, in seconds.

        After a failure, such as a folder that cannot be written, it pauses for `_AGAIN` seconds.
        """
        begin = time.monotonic()
        if begin < self._later:
            return 0.0
        found = self.index.freshen()
        took = 0.0 if found.updated else time.monotonic() - begin
        if found.is_pending and (found.updated or not found.changes):
            found = self.index.freshen("always")  # vectors: the words of other edits do not wait for them
        elif found.is_pending:
            with self._catching_up:
                found = self.index.freshen("always")
        if found.reason is not None:
            self._later = time.monotonic() + _AGAIN
        return took


class SeenIndexes:
    """The indexes of a service as a user with an `allow` sees them."""

    def __init__(self, indexes: OpenIndexes, allow: str) -> None:
        self._indexes = indexes
        self._allow = allow
        self.folders = indexes.folders

    def __iter__(self) -> Iterator[OpenIndex]:
        return (seen for entry in self._indexes if (seen := entry.seen_by(self._allow)) is not None)

    def find(self, name: str | None) -> OpenIndex:
        """Return the index of a name, the first one for None. Raises Problem 404 for one that is not seen."""
        names = [entry.name for entry in self]
        for entry in self:
            if name in (None, entry.name):
                return entry
        raise unknown_index(name, names)


def unknown_index(name: str | None, names: Sequence[str]) -> Problem:
    """Return the error for an index that does not exist, or that the caller may not see."""
    hint = f"indexes: {', '.join(names)}" if names else "no index has documents that you may see"
    return Problem(404, "unknown_index", f"unknown index {str(name)[:80]!r}", hint=hint)


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
        self._wake: Callable[[], object] = lambda: None
        """Starts the work behind the answers at once."""
        self._errors: dict[str, str] = {}

    def __iter__(self) -> Iterator[OpenIndex]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def find(self, name: str | None) -> OpenIndex:
        """Return the index of a name, the first one for None. Raises Problem 404 for an unknown name."""
        entry = next(iter(self)) if name is None else self._all.get(name)
        if entry is None:
            raise unknown_index(name, list(self._all))
        return entry

    def seen_by(self, user: User) -> OpenIndexes | SeenIndexes:
        """Return the indexes as a user sees them."""
        return SeenIndexes(self, user.allow) if user.allow else self

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
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(woken.set)
        pause = seconds
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), pause)
                woken.clear()
                pause = seconds
                for entry in self:
                    took = await asyncio.to_thread(self._update, entry, entry.keep_up)
                    pause = max(pause, _PAUSES * (took or 0.0))
        finally:
            self._wake = lambda: None

    def look(self) -> bool:
        """Bring all indexes up to date before a request is answered, if that is quick; the rest follows.

        Returns whether any has changed.
        """
        before = [entry.index.generation for entry in self]
        pending = [self._update(entry, entry.look) for entry in self]
        if any(pending):
            with contextlib.suppress(RuntimeError):  # the service has ended meanwhile
                self._wake()
        return before != [entry.index.generation for entry in self]

    def _update(self, entry: OpenIndex, work: Callable[[], _T]) -> _T | None:
        """Open the latest generation of an index and index its changed files; None if that fails."""
        before = entry.index.generation
        try:
            entry.index.refresh(warm=True)
            done = work()
            if entry.index.generation != before:
                self.on_change()
                log.info("index %s: generation %d", entry.name, entry.index.generation)
            self._errors.pop(entry.name, None)
        except KetragError as error:
            if self._errors.get(entry.name) != error.message:
                self._errors[entry.name] = error.message
                log.error("index %s stays at its generation: %s", entry.name, error.message)
            return None
        return done

    def close(self) -> None:
        """Release files and models."""
        for entry in self:
            with contextlib.suppress(KetragError):
                entry.index.close()


class Service:
    """The state of one worker. Requests must send `token` if it is not None, or that of a user."""

    def __init__(self, options: ServerOptions, token: str | None) -> None:
        self.options = options
        self.token = token
        if token is not None:
            Key(token)  # redacted from now on in all output
        self.users = None if options.users is None else UsersFile(options.users)
        self._everybody = User(may=frozenset(ABILITIES if options.writable else ("read",)))
        self._digest = None if token is None else digest_of(token)
        self.on_users: Callable[[], object] = lambda: None
        """Called when the users have changed."""
        self.indexes = OpenIndexes(options)
        self.looks = Looks(self.indexes.look)
        self.log = request_log(options)
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
    def has_tokens(self) -> bool:
        """True if every request must send a token."""
        return self.token is not None or self.users is not None

    def user_of(self, token: str) -> User | None:
        """Return the user of a token; without tokens, one that may do everything that the service allows."""
        if self.users is not None:
            return self.users.of(token)
        if self._digest is None or hmac.compare_digest(digest_of(token), self._digest):
            return self._everybody
        return None

    def holders(self) -> list[tuple[bytes, str, str, bool]] | None:
        """Return the holders of tokens for the front: digest, name, `allow`, whether they may query."""
        if self.users is not None:
            return [(user.digest, user.name, user.allow, "read" in user.may) for user in self.users]
        return None if self._digest is None else [(self._digest, "", "", True)]

    async def prepare(self, user: User) -> None:
        """Index the documents that a user may see, unless that is done, so that no handler waits for it."""
        if user.allow:
            await self.aside(lambda: [*self.indexes.seen_by(user)])

    @contextlib.asynccontextmanager
    async def watching_users(self) -> AsyncIterator[None]:
        """Read the users file again when it changes, while the block runs."""
        task = asyncio.create_task(self._watch_users())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _watch_users(self) -> None:
        while self.users is not None:
            await asyncio.sleep(self.options.refresh_seconds)
            try:
                changed = await asyncio.to_thread(self.users.refresh)
            except ConfigError as error:
                self.log.note("error", f"{error.message}; the users stay as they were")
                continue
            if changed is not None:
                self.log.note("info", f"read --users {self.users.file} again: {changed}")
                self.on_users()

    @property
    def accepts_any_host(self) -> bool:
        """True if any `Host` is accepted, because every request must carry a token."""
        options = self.options
        return self.has_tokens and not options.hosts and not is_local(options.host)

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

    async def in_turn(self, call: Callable[[], Any], seconds: float) -> Any:
        """Run a call on a thread for queries.

        Raises Problem 429 if the queue is full, TimeoutError after `seconds`.
        """
        if self.waiting >= self.options.queue:
            raise busy(_BUSY)
        self.waiting += 1
        is_waiting = True
        try:
            async with asyncio.timeout(seconds):
                async with self._turns:
                    self.waiting, is_waiting = self.waiting - 1, False
                    return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        finally:
            self.waiting -= is_waiting

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
        self.log.close()
        self.stuck = waiter.is_alive()
        if not self.stuck:
            self.indexes.close()


def request_log(options: ServerOptions) -> RequestLog:
    """Return the log of a worker, which writes to standard error; to nothing if that is closed."""
    from ketrag_fast.query.core_plans import RequestLog  # it imports NumPy, which `ketrag mcp` starts without

    style: dict[str, Any] = {"json": options.log == "json", "all": options.log is not None}
    style |= {"questions": options.log_questions, "slow": options.slow_seconds}
    try:
        return RequestLog(_STANDARD_ERROR, **style)
    except InputError:
        with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - a descriptor is needed
            return RequestLog(nothing.fileno(), **style)


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
