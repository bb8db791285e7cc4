"""Reads chunks in the order given, and says afterwards how each of them stands.

Killed at any moment, nothing that arrived is lost; stopped by a limit, what is there can be folded.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ketrag_fast.extraction.barren import Watch
from ketrag_fast.extraction.parse import parse_reply
from ketrag_fast.extraction.reader import Chunk, ChunkReader
from ketrag_fast.extraction.records import Extraction
from ketrag_fast.progress import Limited, Meter
from ketrag_fast.storage.journal import Journal, KeptReply
from ketrag_fast.tasks.driver import Driver, Spent
from ketrag_fast.tasks.task import Item

_TOLD: Final = 3
"""Chunks that are done before their speed is worth saying."""


@dataclass
class ReadingOutcome(Spent):
    """What one build found read, read itself, and left."""

    core: int = 0
    read: int = 0
    hits: int = 0
    barren: int = 0
    """Chunks with a usable reply that names nothing."""
    failed: list[tuple[Chunk, str]] = field(default_factory=list)
    pending: list[Chunk] = field(default_factory=list)
    whole: Mapping[str, float] = field(default_factory=dict)
    """Calls, tokens and seconds of all these chunks, whichever build asked: what the skeleton costs alone."""
    summaries: tuple[int, int] | None = None
    """Descriptions that a model condensed, and those that it was to; None where none is asked to."""

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
    reader: ChunkReader
    number: int
    on_barren: str = "stop"
    retry_failed: bool = False
    limit: Limited | None = None
    outcome: ReadingOutcome = field(default_factory=ReadingOutcome)

    scratch: dict[str, Any] = field(default_factory=dict)
    """What a stage's `look` leaves for its `run` in the same build."""

    @property
    def driver(self) -> Driver:
        """The driver of this build's tasks; what it spends counts with the outcome."""
        return Driver(
            self.reader.model,
            self.journal,
            self.number,
            limit=self.limit,
            spent=self.outcome,
            name=self.reader.spec,
        )

    def read(self, chunks: Sequence[Chunk], report: Meter) -> ReadingOutcome:
        """Reads what is not kept, in the order of `chunks`; afterwards `outcome` says how all of them stand.

        Raises Cancelled when `report` says so, ExtractionError where the first chunks are barren,
        BackendError where the model or endpoint is gone.
        """
        self.outcome = ReadingOutcome(core=len(chunks))
        reader, driver = self.reader, self.driver
        texts = reader.model is not None and reader.options.gleanings > 0
        items = driver.items(reader.task, chunks, texts=texts, again=self.retry_failed)
        self.outcome.hits = sum(item.usable for item in items)
        if reader.local is not None:
            extract, lacking = reader.local.extract, reader.local.lacking
            driver.run_locally(items, extract, lacking, report, count=lambda found: len(found.entities))
        elif reader.model is not None and any(item.next() is not None for item in items):
            watch = _Progress(self, list(dict.fromkeys(items)), report)
            driver.run(items, report, watch.settled)
        self._settle(chunks, items)
        if reader.grounded:  # rules and recordings cost no call
            self.outcome.whole = driver.totals(items)
        if reader.asks:
            self.journal.add_hits(self.number, self.outcome.hits)
        return self.outcome

    def _settle(self, chunks: Sequence[Chunk], items: Sequence[Item[Chunk, Extraction]]) -> None:
        outcome = self.outcome
        for chunk, item in zip(chunks, items, strict=True):
            last = item.last
            if item.usable:
                outcome.read += 1
                outcome.barren += last is not None and last.entities == 0
            elif last is not None and (item.spent or item.calls[0] or self._final(last)):
                outcome.failed.append((chunk, self._why(last, item)))
            else:
                outcome.pending.append(chunk)

    def _final(self, reply: KeptReply) -> bool:
        """A recording's error is no accident: it lacks the chunk today and tomorrow."""
        return reply.finish == "error" and self.reader.places

    def _why(self, last: KeptReply, item: Item[Chunk, Extraction]) -> str:
        if last.error is not None:
            return last.error
        kept = [reply for _, replies in self.journal.rows(self.number, [item.key]) for reply in replies]
        text = next((reply.text for reply in kept if (reply.turn, reply.attempt) == (0, last.attempt)), "")
        why = parse_reply(text, item.about.source).why or "nothing in it could be read"
        ended = "" if last.finish == "stop" else f" (it ended by {last.finish})"
        return f"the reply could not be used: {why}{ended}"


class _Progress:
    """Looks at each chunk that is done: says how fast it goes, and stops a build that finds nothing."""

    def __init__(self, reading: Reading, items: Sequence[Item[Chunk, Extraction]], report: Meter) -> None:
        self._outcome, self._report = reading.outcome, report
        self._done = self._empty = 0
        self._started = time.monotonic()
        self._watch = None
        if reading.on_barren == "stop":
            fertile = any(reply.entities for item in items for reply in item.kept)
            self._watch = Watch(fertile, reading.reader.spec)
            for item in items:
                if item.next() is None and item.last is not None:
                    self._watch.see(item.last)

    def settled(self, item: Item[Chunk, Extraction]) -> None:
        """One chunk is done."""
        self._done += 1
        last = item.last
        if last is not None and self._watch is not None:
            self._watch.see(last)
        self._empty += last is None or last.entities == 0
        if self._done >= _TOLD:
            seconds = max(time.monotonic() - self._started, 1e-9)
            speed = f"{self._outcome.tokens_out / seconds:,.1f} tokens/s"
            self._report.note = f"{speed}, {self._empty / self._done:.0%} without entities"
