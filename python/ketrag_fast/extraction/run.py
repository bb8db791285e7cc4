"""Reads chunks in the order given: what is kept is not asked again, what arrives is kept at once.

Killed at any moment, nothing that arrived is lost; stopped by a limit, what is there can be folded.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ketrag_fast.backends.llms.protocol import Limits, Prompt, Reply
from ketrag_fast.backends.spending import LimitReachedError
from ketrag_fast.errors import BackendError, Cancelled
from ketrag_fast.extraction.barren import Watch
from ketrag_fast.extraction.calls import Calls
from ketrag_fast.extraction.journal import Journal, Row
from ketrag_fast.extraction.parse import PARSER
from ketrag_fast.extraction.reader import Chunk, Reader, dumps
from ketrag_fast.extraction.talk import Talk
from ketrag_fast.progress import Limited, Meter

LEAST_ROOM: Final = 128
"""Tokens that a reply must have room for; with less it would hold no whole record."""
_BATCH: Final = 500
_TOLD: Final = 3


@dataclass
class Outcome:
    """What one build found read, read itself, and left."""

    core: int = 0
    read: int = 0
    hits: int = 0
    asked: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_shared: int = 0
    seconds: float = 0.0
    barren: int = 0
    """Chunks with a usable reply that names nothing."""
    failed: list[tuple[Chunk, str]] = field(default_factory=list)
    pending: list[Chunk] = field(default_factory=list)
    whole: Mapping[str, float] = field(default_factory=dict)
    """Calls, tokens and seconds of all these chunks, whichever build asked: what the skeleton costs alone."""
    summaries: tuple[int, int] | None = None
    """Descriptions that a model condensed, and those that it was to; None where none is asked to."""
    stopped: str | None = None
    """The limit that ended the reading, `limit_seconds` or `limit_usd`."""

    def to_json(self) -> dict[str, Any]:
        """The counts, as the command prints them."""
        names = ("core", "read", "hits", "asked", "tokens_in", "tokens_out", "tokens_shared", "barren")
        counts = {name: getattr(self, name) for name in names}
        left = {"failed": len(self.failed), "pending": len(self.pending), "whole": dict(self.whole)}
        if self.summaries is not None:
            left["summaries"] = {"made": self.summaries[0], "wanted": self.summaries[1]}
        return {**counts, **left, "seconds": round(self.seconds, 3), "stopped": self.stopped}


@dataclass
class Reading:
    """One build's reading. `number` is the reader's in the journal; `limit` says when time is up."""

    journal: Journal
    reader: Reader
    number: int
    on_barren: str = "stop"
    retry_failed: bool = False
    limit: Limited | None = None
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def expired(self) -> bool:
        """Whether time is up."""
        return self.limit is not None and self.limit.reached

    def read(self, chunks: Sequence[Chunk], report: Meter) -> Outcome:
        """Reads what is not kept, in the order of `chunks`; afterwards `outcome` tells about all of them.

        Raises Cancelled when `report` says so, ExtractionError where the first chunks are barren,
        BackendError where the model or endpoint is gone.
        """
        self.outcome = Outcome(core=len(chunks))
        names = [self.reader.name(chunk) for chunk in chunks]
        talks = self._talks(chunks, names)
        todo = [talk for talk in talks.values() if self._lacks(talk)] if self.reader.asks else []
        self.outcome.hits = sum(1 for name in names if talks[name].usable)
        if self.reader.local is not None:
            started = time.monotonic()
            self._locally(todo, report)
            self.outcome.seconds = time.monotonic() - started
        elif todo:
            _Asking(self, list(talks.values()), todo, report).run()
        self._settle(chunks, names, talks)
        if self.reader.grounded:  # rules and recordings cost no call
            self.outcome.whole = self.journal.totals(self.number, names)
        if self.reader.asks:
            self.journal.add_hits(self.number, self.outcome.hits)
        return self.outcome

    def _talks(self, chunks: Sequence[Chunk], names: Sequence[bytes]) -> dict[bytes, Talk]:
        """One for each distinct text, in the order of importance."""
        talks: dict[bytes, Talk] = {}
        options = self.reader.options
        gleanings = options.gleanings if self.reader.model is not None else 0
        for place, rows in self.journal.rows(self.number, names, text=gleanings > 0):
            name, chunk = names[place], chunks[place]
            if name in talks:
                continue
            if any(row.parser != PARSER for row in rows):
                rows = self._judged_anew(name, chunk)
            talks[name] = Talk(chunk, name, rows, gleanings, self.retry_failed)
        return talks

    def _judged_anew(self, name: bytes, chunk: Chunk) -> list[Row]:
        rows = []
        for _, kept in self.journal.rows(self.number, [name]):
            for row in kept:
                judged, _ = self.reader.judged(row, chunk)
                self.journal.judge(self.number, name, judged)
                rows.append(judged)
        return rows

    def _lacks(self, talk: Talk) -> bool:
        if self.reader.local is not None:
            return not talk.rows  # it says the same whenever it is asked
        return talk.next() is not None

    def _locally(self, todo: Sequence[Talk], report: Meter) -> None:
        local = self.reader.local
        assert local is not None  # noqa: S101 - the caller looked
        for start in range(0, len(todo), _BATCH):
            if self.expired:
                self.outcome.stopped = "limit_seconds"
                return
            with self.journal.transaction():
                for talk in todo[start : start + _BATCH]:
                    found = local.extract(talk.chunk)
                    if found is None:
                        row = Row(0, 1, "", "error", local.lacking, "unusable", 0, PARSER)
                    else:
                        row = Row(0, 1, dumps(found), "stop", None, "clean", len(found.entities), PARSER)
                    self.journal.put(self.number, talk.name, row)
                    talk.rows.append(row)
                    self.outcome.asked += 1
            if report(min(start + _BATCH, len(todo)), len(todo)) is False:
                raise Cancelled("stopped while reading the chunks; what was read is kept")

    def _settle(self, chunks: Sequence[Chunk], names: Sequence[bytes], talks: dict[bytes, Talk]) -> None:
        outcome = self.outcome
        for chunk, name in zip(chunks, names, strict=True):
            talk = talks[name]
            last = talk.last
            if talk.usable:
                outcome.read += 1
                outcome.barren += last is not None and last.entities == 0
            elif last is not None and (talk.spent or talk.here[0] or self._final(last)):
                outcome.failed.append((chunk, self._why(last, name, talk.chunk)))
            else:
                outcome.pending.append(chunk)

    def _final(self, row: Row) -> bool:
        """A recording's error is no accident: it lacks the chunk today and tomorrow."""
        return row.finish == "error" and self.reader.places

    def _why(self, row: Row, name: bytes, chunk: Chunk) -> str:
        if row.error is not None:
            return row.error
        from ketrag_fast.extraction.parse import parse_reply

        kept = [one for _, rows in self.journal.rows(self.number, [name]) for one in rows]
        text = next((one.text for one in kept if (one.turn, one.attempt) == (0, row.attempt)), "")
        why = parse_reply(text, chunk.source).why or "nothing in it could be read"
        ended = "" if row.finish == "stop" else f" (it ended by {row.finish})"
        return f"the reply could not be used: {why}{ended}"


class _Asking:
    """The driver of one model over the chunks that lack a reply."""

    def __init__(self, reading: Reading, talks: list[Talk], todo: list[Talk], report: Meter) -> None:
        self._reading = reading
        self._reader = reading.reader
        self._outcome = reading.outcome
        self._report = report
        self._talks = todo
        self._fresh = iter(range(len(todo)))
        self._more: deque[int] = deque()
        self._narrow: list[tuple[Prompt, int]] = []
        self._turns: dict[int, tuple[int, int]] = {}
        self._calls = Calls(reading, report, len(todo))
        self._empty = 0
        self._started = time.monotonic()
        fertile = any(row.entities for talk in talks for row in talk.rows)
        self._watch = None
        if reading.on_barren == "stop":
            self._watch = Watch(fertile, self._reader.spec)
            for talk in talks:
                if talk.next() is None and talk.last is not None:
                    self._watch.see(talk.last)

    def run(self) -> None:
        """Until all is read, or something says stop."""
        report = self._report
        try:
            self._calls.tell()
            while not self._calls.stop():
                self._stream(self._prompts(), self._reader.limits)
                narrow, self._narrow = self._narrow, []
                for prompt, room in narrow:
                    if self._calls.stop():
                        break
                    self._squeezed(prompt, room)
                if not self._more and not narrow:
                    break
        except LimitReachedError:
            self._outcome.stopped = "limit_usd"
        except BackendError as error:
            if error.hint is None:
                error.hint = "what was read is kept: run the same command again and it goes on"
            raise
        finally:
            self._outcome.seconds = time.monotonic() - self._started
        if report.stopped:
            raise Cancelled(
                "stopped while reading the chunks; what was read is kept",
                hint="the same command goes on; with --publish-partial it publishes what was read",
            )

    def _prompts(self) -> Iterator[Prompt]:
        model = self._reader.model
        assert model is not None  # noqa: S101 - the caller looked
        while True:
            number = self._more.popleft() if self._more else next(self._fresh, None)
            if number is None:
                return
            talk = self._talks[number]
            wanted = talk.next()
            if wanted is None:
                continue
            self._turns[number] = wanted
            prompt = talk.prompt(number, wanted[0], self._reader.options)
            room = model.room(prompt)
            if room is not None and room < self._reader.limits.tokens:
                self._narrow.append((prompt, room))
                continue
            yield prompt

    def _stream(self, prompts: Iterator[Prompt], limits: Limits) -> None:
        model = self._reader.model
        assert model is not None  # noqa: S101 - the caller looked
        replies = model.replies(prompts, limits, self._calls.stop)
        with closing(replies):
            for reply in replies:
                self._take(reply)

    def _squeezed(self, prompt: Prompt, room: int) -> None:
        """A chunk that leaves less room than a reply may take: it gets what there is, or is listed."""
        if room >= min(LEAST_ROOM, self._reader.limits.tokens):
            self._stream(iter([prompt]), replace(self._reader.limits, tokens=room))
            return
        size = self._reader.identity.get("context")
        error = (
            f"the chunk does not fit the model's context of {size} tokens: {max(room, 0)} are left to reply"
        )
        self._take(Reply(prompt.number, "", "error", error=error), called=False)

    def _take(self, reply: Reply, *, called: bool = True) -> None:
        if reply.finish == "cancelled" or reply.number not in self._turns:
            return
        talk = self._talks[reply.number]
        turn, attempt = self._turns.pop(reply.number)
        row = Row(turn, attempt, reply.text, reply.finish, reply.error, "unusable", 0, 0)
        row, _ = self._reader.judged(row, talk.chunk)
        self._reading.journal.put(self._reading.number, talk.name, row, reply)
        talk.rows.append(row)
        talk.here[turn] += 1 if called else 2
        if talk.next() is not None:
            self._more.append(reply.number)
        else:
            self._settled(talk)
        self._calls.count(reply, called=called)

    def _settled(self, talk: Talk) -> None:
        self._calls.done += 1
        last = talk.last
        if last is not None and self._watch is not None:
            self._watch.see(last)
        self._empty += last is None or last.entities == 0
        seconds = max(time.monotonic() - self._started, 1e-9)
        if self._calls.done >= _TOLD:
            speed = f"{self._outcome.tokens_out / seconds:,.1f} tokens/s"
            self._report.note = f"{speed}, {self._empty / self._calls.done:.0%} without entities"
        self._calls.tell()
