"""Extract from chunks in the given order and report the state of each.

Replies are stored on arrival, so a killed run loses none of them; after a limit, the stored ones can be
folded.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Generic

from ketrag_fast.base.progress import Limited, Meter
from ketrag_fast.errors import ConfigError, ExtractionError
from ketrag_fast.models.extraction.chunk_reader import READING, Chunk, ChunkReader
from ketrag_fast.models.extraction.parse import parse_reply, read_json
from ketrag_fast.models.extraction.recording import RecordingWriter
from ketrag_fast.models.extraction.records import Extraction
from ketrag_fast.models.tasks.driver import Driver, Spent
from ketrag_fast.models.tasks.task import Item, Task, V
from ketrag_fast.records import dataclass, field
from ketrag_fast.storage.journal import Journal, KeptReply

FEW: Final = 10
"""Number of chunks without entities, at the start, after which the first build stops."""

_CAUSES: Final = (
    ("does not fit", "the model's context is too small for a chunk: give --llm-context, or smaller chunks"),
    ("time", "the model is too slow for this machine, or never ends: give a smaller one, or --llm-seconds"),
    ("repetition", "the model repeats itself: give one that was trained to follow instructions"),
    ("length", "replies end at the cap on tokens: give --llm-tokens, or a model that keeps to the form"),
    ("error", "the calls fail: see the message above, and try `curl` at the endpoint"),
    ("empty", "the model says nothing: reasoning models do so under a grammar; give an instruct model"),
    ("unusable", "the model does not keep to the form: give one that was trained to follow instructions"),
    ("clean", "the model is too small, or the texts name nothing of --entity-types"),
)


class Watch:
    """Checks the last reply of each chunk, in order of arrival."""

    def __init__(self, fertile: bool, spec: str) -> None:
        self._spec = spec
        self._rows: list[KeptReply] = []
        self.fertile = fertile
        """Whether any entity was found, in this build or before; then the build is never stopped."""

    def see(self, row: KeptReply) -> None:
        """Raise ExtractionError after enough chunks without entities."""
        if self.fertile or row.entities:
            self.fertile = True
            return
        self._rows.append(row)
        if len(self._rows) >= FEW:
            raise ExtractionError(self._message(), hint=self._hint())

    def _message(self) -> str:
        kinds = Counter(_kind(row) for row in self._rows)
        shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        last = next((row.error for row in reversed(self._rows) if row.error), None)
        tail = f"; the last error: {last}" if last else ""
        return f"{self._spec} found no entity in the first {len(self._rows)} chunks ({shown}){tail}"

    def _hint(self) -> str:
        kind = Counter(_kind(row) for row in self._rows).most_common(1)[0][0]
        cause = next(text for name, text in _CAUSES if name == kind)
        return f"{cause}. The same command continues anyway; finished chunks are not sent again"


def _kind(row: KeptReply) -> str:
    """Return the name of the likely cause in `_CAUSES`."""
    if row.finish == "error":
        return "does not fit" if row.error and "does not fit" in row.error else "error"
    if row.finish in ("time", "repetition", "length") and not row.usable:
        return row.finish
    if not row.usable:
        return "unusable" if row.text.strip() else "empty"
    return "clean"


_TOLD: Final = 3
"""Number of finished chunks from which speed is reported."""


@dataclass
class ReadingOutcome(Spent):
    """The counts of a build: chunks already read, read now, and left."""

    core: int = 0
    read: int = 0
    hits: int = 0
    barren: int = 0
    """Chunks with a usable reply without entities."""
    failed: list[tuple[Chunk, str]] = field(default_factory=list)
    pending: list[Chunk] = field(default_factory=list)
    whole: Mapping[str, float] = field(default_factory=dict)
    """Calls, tokens and seconds of all these chunks over all builds: the cost of extraction."""
    summaries: tuple[int, int] | None = None
    """Summaries written and requested; None if there are no summaries."""

    def to_json(self) -> dict[str, Any]:
        """Return the counts that the command prints."""
        names = ("core", "read", "hits", "asked", "tokens_in", "tokens_out", "tokens_shared", "barren")
        counts = {name: getattr(self, name) for name in names}
        left = {"failed": len(self.failed), "pending": len(self.pending), "whole": dict(self.whole)}
        if self.summaries is not None:
            left["summaries"] = {"made": self.summaries[0], "wanted": self.summaries[1]}
        return {**counts, **left, "seconds": round(self.seconds, 3), "stopped": self.stopped}


@dataclass(frozen=True)
class ExtractionWork(Generic[V]):
    """The work per chunk: a task for a model, or `local` without a model. `count` returns the number of
    entities in a result.
    """

    task: Task[Chunk, V]
    local: Callable[[Chunk], V | None] | None
    count: Callable[[V], int]


@dataclass
class Reading:
    """The reading of one build. `number` identifies the reader in the journal; `limit` is the time limit.

    `outcome` has the counts of the last pass; `earlier` those of previous passes, because a build may read
    chunks for several graphs.
    """

    journal: Journal
    reader: ChunkReader
    number: int
    retry_failed: bool = False
    limit: Limited | None = None
    outcome: ReadingOutcome = field(default_factory=ReadingOutcome)
    earlier: list[ReadingOutcome] = field(default_factory=list)

    scratch: dict[str, Any] = field(default_factory=dict)
    """Data that the `look` of a stage passes to its `run` in the same build."""

    @property
    def driver(self) -> Driver:
        """The driver of this build's tasks; its costs are added to the outcome."""
        return Driver(
            self.reader.model,
            self.journal,
            self.number,
            limit=self.limit,
            spent=self.outcome,
            name=self.reader.spec,
        )

    def read(
        self, chunks: Sequence[Chunk], report: Meter, work: ExtractionWork[Any] | None = None
    ) -> ReadingOutcome:
        """Read the chunks without stored replies, in order, and return the outcome for all chunks.

        The default `work` extracts entities and relations. Raises Cancelled when `report` requests it,
        ExtractionError if the first chunks yield nothing, BackendError if the model or endpoint fails.
        """
        if self.outcome.core:
            self.earlier.append(self.outcome)
        self.outcome = ReadingOutcome(core=len(chunks))
        reader, driver = self.reader, self.driver
        work = entities_and_relations(reader) if work is None else work
        texts = reader.model is not None and reader.options.gleanings > 0
        items = driver.items(work.task, chunks, texts=texts, again=self.retry_failed)
        self.outcome.hits = sum(item.usable for item in items)
        if reader.local is not None and work.local is not None:
            driver.run_locally(items, work.local, reader.local.lacking, report, count=work.count)
        elif reader.model is not None and any(item.next() is not None for item in items):
            watch = _Progress(self, list(dict.fromkeys(items)), report)
            driver.run(items, report, watch.settled)
        self._settle(chunks, items)
        if reader.grounded:  # rules and recordings need no calls
            self.outcome.whole = driver.totals(items)
        if reader.asks:
            self.journal.add_hits(self.number, self.outcome.hits)
        return self.outcome

    @property
    def total(self) -> ReadingOutcome:
        """The sum of all passes of this build."""
        every = [*self.earlier, self.outcome]
        return self.outcome if len(every) == 1 else _sum(every)

    def _settle(self, chunks: Sequence[Chunk], items: Sequence[Item[Chunk, Any]]) -> None:
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
        """Return whether an error is permanent: a recording will never have the chunk."""
        return reply.finish == "error" and self.reader.places

    def _why(self, last: KeptReply, item: Item[Chunk, Any]) -> str:
        if last.error is not None:
            return last.error
        kept = [reply for _, replies in self.journal.rows(self.number, [item.key]) for reply in replies]
        text = next((reply.text for reply in kept if (reply.turn, reply.attempt) == (0, last.attempt)), "")
        known = parse_reply(text, item.about.source).why if item.task.name == READING else read_json(text).why
        why = known or "nothing in it could be read"
        ended = "" if last.finish == "stop" else f" (it ended by {last.finish})"
        return f"the reply could not be used: {why}{ended}"


def entities_and_relations(reader: ChunkReader) -> ExtractionWork[Extraction]:
    """Return the work that extracts entities and relations."""
    local = None if reader.local is None else reader.local.extract
    return ExtractionWork(reader.task, local, lambda found: len(found.entities))


def _sum(outcomes: Sequence[ReadingOutcome]) -> ReadingOutcome:
    """Return the sum of the counts, with the last reason for a stop."""
    total = ReadingOutcome()
    for each in outcomes:
        for name in _COUNTS:
            setattr(total, name, getattr(total, name) + getattr(each, name))
        total.failed += each.failed
        total.pending += each.pending
        names = {*total.whole, *each.whole}
        total.whole = {name: total.whole.get(name, 0) + each.whole.get(name, 0) for name in sorted(names)}
        total.summaries = each.summaries if total.summaries is None else total.summaries
        total.stopped = each.stopped or total.stopped
    return total


_COUNTS: Final = (
    *("core", "read", "hits", "barren", "asked"),
    *("tokens_in", "tokens_out", "tokens_shared", "seconds"),
)


class _Progress:
    """Reports the speed after each finished chunk, and stops a build that finds nothing."""

    def __init__(self, reading: Reading, items: Sequence[Item[Chunk, Any]], report: Meter) -> None:
        self._outcome, self._report = reading.outcome, report
        self._done = self._empty = 0
        self._started = time.monotonic()
        stored = [item.last for item in items if item.next() is None and item.last is not None]
        fertile = any(reply.entities for item in items for reply in item.kept)
        # With as many stored replies an earlier build was stopped, and the same command continues it.
        self._watch = Watch(fertile or len(stored) >= FEW, reading.reader.spec)
        for last in stored:
            self._watch.see(last)

    def settled(self, item: Item[Chunk, Any]) -> None:
        """Record a finished chunk."""
        self._done += 1
        last = item.last
        if last is not None:
            self._watch.see(last)
        self._empty += last is None or last.entities == 0
        if self._done >= _TOLD:
            seconds = max(time.monotonic() - self._started, 1e-9)
            speed = f"{self._outcome.tokens_out / seconds:,.1f} tokens/s"
            self._report.note = f"{speed}, {self._empty / self._done:.0%} without entities"


# `--record FILE.jsonl`: everything that the journal has about the core chunks, in order. It is also written
# when a build is stopped, and completed when the build is resumed.


_FIRST_LINE: Final = 4096


def check_place(path: Path, reader: ChunkReader) -> None:
    """Raise ConfigError if the recording cannot be written; called before chunks are read."""
    if not path.parent.is_dir():
        raise ConfigError(f"cannot write the recording {path.name}: no such folder: {path.parent}")
    if path.is_dir():
        raise ConfigError(f"--record must name a file, but {path} is a folder")
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            about = json.loads(file.readline(_FIRST_LINE))
        own = isinstance(about, dict) and about.get("reader") == reader.key
    except (OSError, ValueError, RecursionError):
        own = False
    if not own:
        raise ConfigError(
            f"{path} already exists and is not a recording of this model with this prompt",
            hint="use another name for --record, or remove the file",
        )


def write_recording(path: Path, reading: Reading, chunks: Sequence[Chunk]) -> int:
    """Write the usable extractions and return their number."""
    reader = reading.reader
    about = {
        "reader": reader.key,
        "spec": reader.spec,
        "fingerprint": reader.identity.get("fingerprint"),
    }
    ordered = sorted(chunks)
    names = [reader.name(chunk) for chunk in ordered]
    with RecordingWriter(path, about, replace=True) as writer:
        for place, rows in reading.journal.rows(reading.number, names):
            chunk = ordered[place]
            found = reader.extraction(rows, chunk)
            if found is not None:
                writer.write(chunk.document, chunk.start, chunk.end, found)
        return writer.count
