"""The driver runs LLM tasks in batches and never sends a request twice.

Each reply is stored in the journal on arrival, so a killed run resumes. Limits on time and money end a run
early with partial results; cancellation and a failing model raise.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from ketrag_fast.base.progress import Limited, Meter
from ketrag_fast.errors import BackendError, Cancelled, DeadlineExceeded
from ketrag_fast.models.llms.protocol import LanguageModel, Limits, ModelReply, Prompt
from ketrag_fast.models.spending import LimitReachedError
from ketrag_fast.models.tasks.task import LEAST_ROOM, Item, S, Task, V
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage.journal import Journal, KeptReply

ERRORS: Final = 10
"""A run stops after this many failed calls in a row."""
_TICK: Final = 0.2
_BATCH: Final = 500
"""Number of subjects answered without a model between two checks of the clock."""


@dataclass
class Spent:
    """Total calls, tokens and seconds of all runs, and the limit that ended the last one."""

    asked: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_shared: int = 0
    seconds: float = 0.0
    stopped: str | None = None
    """`limit_seconds` or `limit_usd`."""

    def add(self, reply: ModelReply, *, called: bool = True) -> None:
        """Add a reply; `called` is False if nothing was sent."""
        self.asked += called
        self.tokens_in += reply.tokens_in
        self.tokens_out += reply.tokens_out
        self.tokens_shared += reply.tokens_shared


class Driver:
    """Runs tasks with a model and stores replies in `journal` under `number`, if there is a journal.

    Without a model, only stored replies are used. `limit` is the time limit; spending is limited by the
    account of the model.
    """

    def __init__(
        self,
        model: LanguageModel | None,
        journal: Journal | None = None,
        number: int = 0,
        *,
        limit: Limited | None = None,
        spent: Spent | None = None,
        name: str | None = None,
    ) -> None:
        self.model = model
        self.journal = journal
        self.number = number
        self.limit = limit
        self.spent = Spent() if spent is None else spent
        self.name = name if name is not None else model.identity.spec if model is not None else "nobody"

    @classmethod
    def over(cls, model: LanguageModel, journal: Journal) -> Driver:
        """Return a driver that stores replies in `journal` under the fingerprint of the model."""
        about = model.identity
        number = journal.model(about.fingerprint, about.spec, about.to_json()).number
        return cls(model, journal, number)

    @property
    def expired(self) -> bool:
        """Whether the time limit is reached."""
        return self.limit is not None and self.limit.reached

    def items(
        self, task: Task[S, V], subjects: Sequence[S], *, texts: bool = True, again: bool = False
    ) -> list[Item[S, V]]:
        """Return an item with the stored replies for each subject; equal subjects share an item.

        Without `texts`, reply texts are not loaded, which is enough to find out what is missing.
        """
        items: dict[bytes, Item[S, V]] = {}
        keys = [task.key(subject) for subject in subjects]
        for key, subject in zip(keys, subjects, strict=True):
            if key not in items:
                items[key] = Item(task, subject, key, again=again)
        if self.journal is not None:
            wanted = list(items)
            for place, kept in self.journal.rows(self.number, wanted, text=texts):
                item = items[wanted[place]]
                item.kept = kept if all(r.parser == task.version for r in kept) else self._parse_again(item)
        return [items[key] for key in keys]

    def _parse_again(self, item: Item[S, V]) -> list[KeptReply]:
        """Parse stored replies again if an older version of the parser read them."""
        assert self.journal is not None  # noqa: S101 - the caller checked
        found = []
        for _, kept in self.journal.rows(self.number, [item.key]):
            for reply in kept:
                judged, _ = item.task.judged(item.about, reply)
                self.journal.judge(self.number, item.key, judged)
                found.append(judged)
        return found

    def totals(self, items: Iterable[Item[S, V]]) -> dict[str, float]:
        """Return the calls, tokens and seconds of these items over all runs."""
        assert self.journal is not None  # noqa: S101 - totals need a journal
        return self.journal.totals(self.number, [item.key for item in items])

    # ------------------------------------------------------------ asking

    def run(
        self,
        items: Iterable[Item[S, V]],
        report: Meter | None = None,
        settled: Callable[[Item[S, V]], None] | None = None,
    ) -> None:
        """Request the missing replies of the items of one task, in order; call `settled` for finished ones.

        Items without an answer afterwards had no usable reply, or `spent.stopped` names the limit reached.
        Raises Cancelled when `report` requests it, BackendError if the model or its endpoint fails.
        """
        todo = [item for item in dict.fromkeys(items) if item.next() is not None]
        if self.model is None or not todo:
            return
        _Run(self, self.model, todo, Meter("", None) if report is None else report, settled).work()

    def run_locally(
        self,
        items: Iterable[Item[S, V]],
        answer: Callable[[S], V | None],
        lacking: str,
        report: Meter,
        *,
        count: Callable[[V], int] = lambda _: 0,
    ) -> None:
        """Answer items without an LLM, by rules or a recording; `answer` returns None if it has no answer.

        Raises Cancelled when `report` requests it.
        """
        assert self.journal is not None  # noqa: S101 - these answers are only stored
        todo = [item for item in dict.fromkeys(items) if not item.kept]  # it is deterministic
        started = time.monotonic()
        try:
            for start in range(0, len(todo), _BATCH):
                if self.expired:
                    self.spent.stopped = "limit_seconds"
                    return
                with self.journal.transaction():
                    for item in todo[start : start + _BATCH]:
                        found, version = answer(item.about), item.task.version
                        if found is None:
                            kept = KeptReply(0, 1, "", "error", lacking, "unusable", 0, version)
                        else:
                            text = item.task.dump(found)
                            kept = KeptReply(0, 1, text, "stop", None, "clean", count(found), version)
                        self.journal.put(self.number, item.key, kept)
                        item.kept.append(kept)
                        self.spent.asked += 1
                if report(min(start + _BATCH, len(todo)), len(todo)) is False:
                    raise Cancelled(_stop_message(item.task), hint=item.task.go_on)
        finally:
            self.spent.seconds += time.monotonic() - started

    def stream(self, prompt: Prompt, limits: Limits, piece: Callable[[str], bool | None]) -> ModelReply:
        """Stream one reply to `piece` until that returns False, and return it. It is not stored.

        Raises BackendError if the model fails, DeadlineExceeded if there was no time to begin.
        """
        assert self.model is not None  # noqa: S101 - streaming needs a model
        stop = threading.Event()
        started = time.monotonic()
        try:
            for part in self.model.stream(prompt, limits, lambda: stop.is_set() or self.expired):
                if isinstance(part, ModelReply):
                    self.spent.add(part)
                    if part.finish == "error":
                        raise BackendError(f"{self.name} gave no answer: {part.error}")
                    return part
                if piece(part) is False:
                    stop.set()
        finally:
            self.spent.seconds += time.monotonic() - started
        if self.expired:
            raise DeadlineExceeded(f"{self.name} had no time left to answer", hint="give more seconds")
        raise BackendError(f"{self.name} returned an empty response")


class _Run:
    """One run over the items that lack a reply."""

    def __init__(
        self,
        driver: Driver,
        model: LanguageModel,
        todo: Sequence[Item[Any, Any]],
        report: Meter,
        settled: Callable[[Item[Any, Any]], None] | None,
    ) -> None:
        self._driver, self._model, self._todo = driver, model, todo
        self._report, self._settled = report, settled
        self._task = todo[0].task
        self._fresh = iter(range(len(todo)))
        self._more: deque[int] = deque()
        self._narrow: list[tuple[Prompt, int]] = []
        self._open: dict[int, tuple[int, int]] = {}
        self._done = self._errors = 0
        self._ticked = 0.0
        self._thread = threading.get_ident()

    def work(self) -> None:
        """Work until all items are answered or the run is stopped."""
        spent, started = self._driver.spent, time.monotonic()
        try:
            self._tell()
            while not self.stop():
                self._ask(self._prompts(), self._task.limits)
                narrow, self._narrow = self._narrow, []
                for prompt, room in narrow:
                    if self.stop():
                        break
                    self._squeezed(prompt, room)
                if not self._more and not narrow:
                    break
        except LimitReachedError:
            spent.stopped = "limit_usd"
        except BackendError as error:
            if error.hint is None and self._driver.journal is not None:
                error.hint = "finished work is kept: run the same command again to resume"
            raise
        finally:
            spent.seconds += time.monotonic() - started
        if self._report.stopped:
            raise Cancelled(_stop_message(self._task), hint=self._task.go_on)

    def stop(self) -> bool:
        """Return whether to stop; also updates progress while a model computes.

        A backend may call this from another thread: progress is only reported in the caller's thread.
        """
        if self._driver.expired:
            self._driver.spent.stopped = "limit_seconds"
            return True
        now = time.monotonic()
        if now - self._ticked >= _TICK and threading.get_ident() == self._thread:
            self._ticked = now
            self._tell()
        return self._report.stopped

    def _tell(self) -> None:
        self._report(self._done, len(self._todo))

    def _prompts(self) -> Iterator[Prompt]:
        """Yield prompts; later turns and second attempts come first, to finish subjects early."""
        while True:
            number = self._more.popleft() if self._more else next(self._fresh, None)
            if number is None:
                return
            wanted = self._todo[number].next()
            if wanted is None:
                continue
            self._open[number] = wanted
            prompt = self._todo[number].prompt(number)
            room = self._model.room(prompt)
            if room is not None and room < self._task.tokens:
                self._narrow.append((prompt, room))
                continue
            yield prompt

    def _ask(self, prompts: Iterator[Prompt], limits: Limits) -> None:
        replies = self._model.replies(prompts, limits, self.stop)
        with closing(replies):
            for reply in replies:
                self._take(reply)

    def _squeezed(self, prompt: Prompt, room: int) -> None:
        """Request a shorter reply for a long prompt, or record an error if there is no room."""
        if room >= min(LEAST_ROOM, self._task.tokens):
            self._ask(iter([prompt]), replace(self._task.limits, tokens=room))
            return
        error = (
            f"{self._task.subject} does not fit the model's context of {self._model.identity.context} "
            f"tokens: {max(room, 0)} are left for the reply"
        )
        self._take(ModelReply(prompt.number, "", "error", error=error), called=False)

    def _take(self, reply: ModelReply, *, called: bool = True) -> None:
        if reply.finish == "cancelled" or reply.number not in self._open:
            return
        item, driver = self._todo[reply.number], self._driver
        turn, attempt = self._open.pop(reply.number)
        kept = KeptReply(turn, attempt, reply.text, reply.finish, reply.error, "unusable", 0, 0)
        kept, _ = item.task.judged(item.about, kept)
        if driver.journal is not None:
            driver.journal.put(driver.number, item.key, kept, reply)
        item.kept.append(kept)
        item.calls[turn] += 1 if called else item.task.calls
        driver.spent.add(reply, called=called)
        if item.next() is not None:
            self._more.append(reply.number)
        else:
            self._done += 1
            if self._settled is not None:
                self._settled(item)
            self._tell()
        self._errors = self._errors + 1 if called and reply.finish == "error" else 0
        if self._errors >= ERRORS:
            raise BackendError(
                f"{driver.name}: {ERRORS} calls in a row failed; last error: {reply.error}",
                hint="finished work is kept: fix the endpoint and run the same command again",
            )


def _stop_message(task: Task[Any, Any]) -> str:
    return f"stopped while {task.activity}; finished work is kept"
