"""Who reads the chunks in a build, and what a build without a word about it does.

* A model that is named (flag, environment, file, `Settings`) is asked for what is not kept yet.
* Nothing named, but a system that cannot do without a reader: rules read.
* Nothing named: the index keeps its skeleton, as far as replies are kept; chunks that became core since
  are pending. Rules cost nothing, so `heuristic` reads them at once.
* `none` asks nobody and keeps the skeleton too: what took hours is not dropped by leaving a model out.
  Only a rebuild with `none` leaves it out.
* A partial build asks nobody and publishes what the last reader has read so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import ConfigError
from ketrag_fast.models.llms.registry import HEURISTIC, NONE, parse_spec
from ketrag_fast.storage.generation import Generation
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import Failure

if TYPE_CHECKING:
    from ketrag_fast.models.extraction.run import Reading
    from ketrag_fast.models.spending import SpendingLimit


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """Whether anything is asked; if not, the key of the reader whose replies count."""

    asks: bool = False
    key: str | None = None
    partial: bool = False


def plan(
    given: Settings, base: Generation | None, layout: Layout, *, rebuild: bool, partial: bool
) -> tuple[Settings, ReadingPlan]:
    """What was given, with `llm` as this build understands it."""
    named = given.given.get("llm")
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
    return given, ReadingPlan(named != NONE)


def _defaults_to_rules(given: Settings) -> bool:
    """Whether the system that is named cannot do without a reader, and takes rules where none is named."""
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
            f"nothing was read{who} in {layout.root} yet",
            hint="begin with `ketrag index SOURCE... --llm SPEC`; it keeps what it has read",
        )
    return given.having(llm=row.spec), ReadingPlan(key=row.key, partial=True)


@contextmanager
def open_reading(
    settings: Settings, layout: Layout, plan: ReadingPlan, limit: Limited, spending: SpendingLimit
) -> Iterator[Reading | None]:
    """The reading of this build, its model not loaded before it is needed; None where nothing reads.

    `limit` says when time is up, `spending` what all models of the build may cost together.
    """
    if settings.llm == NONE:
        yield None
        return
    from ketrag_fast.models.extraction.reader_choice import (
        find_stored_reader,
        open_reader,
        replay_only_reader,
    )
    from ketrag_fast.models.extraction.recording import check_place
    from ketrag_fast.models.extraction.run import Reading
    from ketrag_fast.storage.journal import Journal

    with Journal(layout.tables) as journal:
        if plan.asks:
            reader = open_reader(settings, spending)
            number = journal.reader(reader.key, reader.spec, reader.identity).number
        else:
            row = find_stored_reader(journal, plan.key, settings.llm)
            if row is None:  # the tables were lost: nothing is kept, and everything is pending
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
    """What the manifest keeps of who read the chunks."""
    reader = reading.reader
    return {**reader.identity, "spec": reader.spec, "reader": reader.key}


def failures(reading: Reading | None) -> list[Failure]:
    """The chunks that could not be read."""
    if reading is None:
        return []
    return [Failure(chunk.place, "chunk", why) for chunk, why in reading.total.failed]


def warnings(reading: Reading | None, plan: ReadingPlan, base: Generation | None) -> list[str]:
    """What a user should know of a skeleton that is not whole."""
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
            f"{wanted - made:,} of {wanted:,} descriptions are joined by rule for want of a usable summary; "
            f"`ketrag index --llm {reader.spec}` asks for those that were not asked yet"
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
        f"the skeleton was read from {before:,} chunks by {about.get('spec')} before; its replies are kept: "
        f"`--llm {about.get('spec')}` brings it back without a call"
    )
