"""Which reader extracts entities and relations from the core chunks in a build.

* `llm` is given (flag, environment, file, `Settings`): this reader handles chunks without a stored reply.
* `llm` is not given, and the system requires a reader: the rules (`heuristic`) read.
* `llm` is not given otherwise: the index keeps its skeleton from the stored replies; new core chunks are
  pending. If the stored reader is `heuristic`, which costs nothing, it reads them immediately.
* `llm` is `none`: no model is called, and the skeleton is kept, because it may have taken hours. Only a
  rebuild with `none` drops it.
* The reader of a first build that was stopped reads on.
* A partial build calls no model and publishes the replies that the last reader has produced so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import ConfigError
from ketrag_fast.models.llms.registry import HEURISTIC, NONE, parse_spec, require_file
from ketrag_fast.storage.generation import Generation
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import Failure

if TYPE_CHECKING:
    from ketrag_fast.models.extraction.run import Reading
    from ketrag_fast.models.spending import SpendingLimit


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """Whether a reader may be called; if not, the key of the reader whose stored replies are used."""

    asks: bool = False
    key: str | None = None
    partial: bool = False


def plan(
    given: Settings,
    base: Generation | None,
    layout: Layout,
    *,
    rebuild: bool,
    partial: bool,
    begun: Mapping[str, Any] | None = None,
) -> tuple[Settings, ReadingPlan]:
    """Return the given settings with `llm` as this build uses it, and the plan for reading.

    Without a generation, `begun` are the settings of the unfinished build that this one continues.
    """
    named = given.given.get("llm")
    if base is None and named is None and begun is not None and _is_continued(given, begun):
        named = str(begun["llm"])
        given = given.having(llm=named)
    if named is not None:
        parse_spec(named)
    manifest = base.manifest if base is not None else None
    stored = str(manifest.settings.get("llm", NONE)) if manifest is not None else NONE
    key = manifest.models.get("llm", {}).get("reader") if manifest is not None else None
    if partial:
        return _partial(given, named, layout)
    if named is None and stored == NONE and _defaults_to_rules(given):
        return given.having(llm=HEURISTIC), ReadingPlan(True)
    if named is None:
        return given, ReadingPlan(stored == HEURISTIC, key)
    if named == NONE and stored != NONE and not rebuild:
        return given.having(llm=stored), ReadingPlan(key=key)
    require_file(named)  # before any document is read
    return given, ReadingPlan(named != NONE)


def _is_continued(given: Settings, begun: Mapping[str, Any]) -> bool:
    """Return whether an unfinished build had a reader, and its system is not replaced."""
    system = begun.get("system")
    return begun.get("llm", NONE) != NONE and given.given.get("system", system) == system


def _defaults_to_rules(given: Settings) -> bool:
    """Return whether the named system requires a reader and uses rules by default."""
    from ketrag_fast.systems.registry import registry

    named = given.given.get("system")
    return named is not None and registry().presets.get(named, {}).get("llm") == HEURISTIC


def _partial(given: Settings, named: str | None, layout: Layout) -> tuple[Settings, ReadingPlan]:
    from ketrag_fast.storage.journal import Journal

    row = None
    if layout.tables.is_file():
        with Journal(layout.tables) as journal:
            row = journal.latest(None if named in (None, NONE) else named)
    if row is None:
        who = "" if named in (None, NONE) else f" by {named}"
        raise ConfigError(
            f"no chunks have been read{who} in {layout.root}",
            hint="run `ketrag index SOURCE... --llm SPEC` first; it stores each reply",
        )
    return given.having(llm=row.spec), ReadingPlan(key=row.key, partial=True)


@contextmanager
def open_reading(
    settings: Settings, layout: Layout, plan: ReadingPlan, limit: Limited, spending: SpendingLimit
) -> Iterator[Reading | None]:
    """Open the reader of this build; None without one. Its model is loaded on first use.

    `limit` stops the reading when time is up; `spending` bounds the cost of all models of the build.
    """
    if settings.llm == NONE:
        yield None
        return
    from ketrag_fast.models.extraction.chunk_reader import (
        find_stored_reader,
        open_reader,
        replay_only_reader,
    )
    from ketrag_fast.models.extraction.run import Reading, check_place
    from ketrag_fast.storage.journal import Journal

    with Journal(layout.tables) as journal:
        journal.require_sound()
        if plan.asks:
            reader = open_reader(settings, spending)
            number = journal.reader(reader.key, reader.spec, reader.identity).number
        else:
            row = find_stored_reader(journal, plan.key, settings.llm)
            if row is None:  # the tables were lost: every chunk is pending again
                row = journal.reader(plan.key or f"lost {settings.llm}", settings.llm, {})
            reader, number = replay_only_reader(settings, row), row.number
        try:
            if settings.record is not None:
                check_place(Path(settings.record), reader)
            yield Reading(
                journal,
                reader,
                number,
                on_barren=settings.on_barren,
                retry_failed=settings.retry_failed,
                limit=limit,
            )
        finally:
            reader.close()


def identity(reading: Reading) -> dict[str, Any]:
    """Return the manifest's record of the reader."""
    reader = reading.reader
    return {**reader.identity, "spec": reader.spec, "reader": reader.key}


def failures(reading: Reading | None) -> list[Failure]:
    """Return the chunks that could not be read."""
    if reading is None:
        return []
    return [Failure(chunk.place, "chunk", why) for chunk, why in reading.total.failed]


def warnings(reading: Reading | None, plan: ReadingPlan, base: Generation | None) -> list[str]:
    """Return warnings about an incomplete skeleton."""
    if reading is None:
        return []
    outcome, reader = reading.total, reading.reader
    told = []
    if outcome.pending:
        count = f"{len(outcome.pending):,} of {outcome.core:,} core chunks are pending"
        why = {"limit_seconds": "the time was up", "limit_usd": "the limit in USD was reached"}
        reason = f": {why[outcome.stopped]}" if outcome.stopped else ""
        told.append(f"{count}{reason}; `ketrag index --llm {reader.spec}` reads them, and nothing twice")
    made, wanted = outcome.summaries or (0, 0)
    if made < wanted:
        told.append(
            f"{wanted - made:,} of {wanted:,} descriptions are concatenated, because they have no usable "
            f"summary; `ketrag index --llm {reader.spec}` requests the missing ones"
        )
    if outcome.read and outcome.barren == outcome.read:
        told.append(f"{reader.spec} found no entity in any of {outcome.read:,} chunks")
    replaced = _replaced_reader(base, reader.key, outcome.read) if plan.asks or plan.partial else None
    if replaced is not None:
        told.append(replaced)
    return told


def _replaced_reader(base: Generation | None, key: str, read: int) -> str | None:
    record = base.manifest.stages.get("replies") if base is not None else None
    about = base.manifest.models.get("llm", {}) if base is not None else {}
    if record is None or about.get("reader") in (None, key) or "reply_chunk" not in record.files:
        return None
    before = record.files["reply_chunk"].shape[0]
    if before <= read:
        return None
    return (
        f"the previous skeleton came from {before:,} chunks read by {about.get('spec')}; its replies are "
        f"stored: `--llm {about.get('spec')}` restores it without a call"
    )
