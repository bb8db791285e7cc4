"""The driver: asks a language model what its tasks want to know, in batches, and nothing twice.

Each reply is kept in the journal when it arrives, so that a run that was killed goes on where it was. Limits
of time and money end a run early with what there is; a stop from outside, and a model that is gone, raise.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final

from ketrag_fast.base.progress import Limited, Meter
from ketrag_fast.errors import BackendError, Cancelled, DeadlineExceeded
from ketrag_fast.models.llms.protocol import LanguageModel, Limits, ModelReply, Prompt
from ketrag_fast.models.spending import LimitReachedError
from ketrag_fast.models.tasks.task import LEAST_ROOM, Item, S, Task, V
from ketrag_fast.storage.journal import Journal, KeptReply

ERRORS: Final = 10
"""Calls in a row that fail before a run stops: the model or its endpoint is gone."""
_TICK: Final = 0.2
_BATCH: Final = 500
"""Subjects that are answered without a model between two looks at the clock."""


@dataclass
class Spent:
    """What runs took together: calls, tokens, seconds, and the limit that ended the last one."""

    asked: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_shared: int = 0
    seconds: float = 0.0
    stopped: str | None = None
    """`limit_seconds` or `limit_usd`."""

    def add(self, reply: ModelReply, *, called: bool = True) -> None:
        """One reply; `called` is False where nothing was sent."""
        self.asked += called
        self.tokens_in += reply.tokens_in
        self.tokens_out += reply.tokens_out
        self.tokens_shared += reply.tokens_shared


class Driver:
    """One model, and where its replies are kept: under `number` in `journal`, or nowhere without one.

    Without a model what is kept is all there is. `limit` says when time is up; money is limited by the
    model's own account.
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
    def over(cls, model: LanguageModel, journal: Journal, *, limit: Limited | None = None) -> Driver:
        """A driver that keeps its replies in `journal` under the model's fingerprint."""
        about = model.identity
        number = journal.model(about.fingerprint, about.spec, about.to_json()).number
        return cls(model, journal, number, limit=limit)

    @property
    def expired(self) -> bool:
        """Whether time is up."""
        return self.limit is not None and self.limit.reached

    def items(
        self, task: Task[S, V], subjects: Sequence[S], *, texts: bool = True, again: bool = False
    ) -> list[Item[S, V]]:
        """For each subject what is kept about it; equal subjects share an item.

        Without `texts` the replies come without their words, for who only wants to know what is missing.
        """
        made: dict[bytes, Item[S, V]] = {}
        keys = [task.key(subject) for subject in subjects]
        for key, subject in zip(keys, subjects, strict=True):
            if key not in made:
                made[key] = Item(task, subject, key, again=again)
        if self.journal is not None:
            wanted = list(made)
            for place, kept in self.journal.rows(self.number, wanted, text=texts):
                item = made[wanted[place]]
                item.kept = kept if all(r.parser == task.version for r in kept) else self._judged_anew(item)
        return [made[key] for key in keys]

    def _judged_anew(self, item: Item[S, V]) -> list[KeptReply]:
        """Replies that an earlier parser read."""
        assert self.journal is not None  # noqa: S101 - the caller looked
        found = []
        for _, kept in self.journal.rows(self.number, [item.key]):
            for reply in kept:
                judged, _ = item.task.judged(item.about, reply)
                self.journal.judge(self.number, item.key, judged)
                found.append(judged)
        return found

    def totals(self, items: Iterable[Item[S, V]]) -> dict[str, float]:
        """Calls, tokens and seconds that these items took in all runs."""
        assert self.journal is not None  # noqa: S101 - who keeps nothing has no totals
        return self.journal.totals(self.number, [item.key for item in items])

    # ------------------------------------------------------------ asking

    def run(
        self,
        items: Iterable[Item[S, V]],
        report: Meter | None = None,
        settled: Callable[[Item[S, V]], None] | None = None,
    ) -> None:
        """Asks what the items of one task lack, in their order. `settled` gets each that is done with.

        What is missing afterwards had no usable reply, or `spent.stopped` says which limit was reached.
        Raises Cancelled when `report` says so, BackendError where the model or its endpoint is gone.
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
        """Has rules or a recording answer, which costs no call; None for what `answer` has nothing about.

        Raises Cancelled when `report` says so.
        """
        assert self.journal is not None  # noqa: S101 - such answers are only kept
        todo = [item for item in dict.fromkeys(items) if not item.kept]  # it says the same at each call
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
        """One reply, given to `piece` as it is made, until that returns False. Nothing of it is kept.

        Raises BackendError where the model fails, DeadlineExceeded where no time was left to begin.
        """
        assert self.model is not None  # noqa: S101 - nobody is asked without one
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
        raise BackendError(f"{self.name} gave no answer: nothing came")


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
        """Until all is answered, or something says stop."""
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
                error.hint = "what was done is kept: run the same command again and it goes on"
            raise
        finally:
            spent.seconds += time.monotonic() - started
        if self._report.stopped:
            raise Cancelled(_stop_message(self._task), hint=self._task.go_on)

    def stop(self) -> bool:
        """Whether to ask nothing more; also keeps the progress line alive while a model computes.

        A backend may call this from a thread of its own: progress is reported in the caller's alone.
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
        """Later turns and second attempts first, so that a subject is done with soon."""
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
        """What leaves less room than a reply may take gets what there is, or is given up."""
        if room >= min(LEAST_ROOM, self._task.tokens):
            self._ask(iter([prompt]), replace(self._task.limits, tokens=room))
            return
        error = (
            f"{self._task.subject} does not fit the model's context of {self._model.identity.context} "
            f"tokens: {max(room, 0)} are left to reply"
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
                f"{driver.name}: {ERRORS} calls in a row failed; the last said: {reply.error}",
                hint="what came before is kept: mend the endpoint and run the same command again",
            )


def _stop_message(task: Task[Any, Any]) -> str:
    return f"stopped while {task.activity}; what was done is kept"
