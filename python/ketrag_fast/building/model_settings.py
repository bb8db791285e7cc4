"""The settings of a build, its embedding model, and the reader that extracts entities from the core chunks.

Settings and model are checked against those that the index was built with. Which reader is used:

* `llm` is given (flag, environment, file, `Settings`): this reader handles chunks without a stored reply.
* `llm` is not given, and the system requires a reader: the rules (`heuristic`) read.
* `llm` is not given otherwise: the index keeps the entities of the stored replies; new core chunks are
  pending. If the stored reader is `heuristic`, which costs nothing, it reads them immediately.
* `llm` is `none`: no model is called, and the entities are kept, because they may have taken hours. Only a
  rebuild with `none` drops it.
* The reader of a first build that was stopped reads on.
* A partial build calls no model and publishes the replies that the last reader has produced so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.config import Resolved, Settings, resolve
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import ConfigError, ModelMismatch
from ketrag_fast.models.endpoint_trust import Trust
from ketrag_fast.models.llms.registry import HEURISTIC, NONE, parse_spec, require_file
from ketrag_fast.models.spending import SpendingLimit
from ketrag_fast.records import dataclass
from ketrag_fast.storage.generation import Generation
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.index_settings import check_embedder, settings_of, spec_here, to_build_on, with_modes
from ketrag_fast.systems.planning import wanted_modes
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared import has_model
from ketrag_fast.types import Failure

if TYPE_CHECKING:
    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.embedders.fingerprint import Identity
    from ketrag_fast.models.extraction.run import Reading

_SERVES: Final = "the old generation stays in use until then"


def settings_for(
    base: Generation | None, settings: Settings, rebuild: bool, begun: Mapping[str, Any] | None = None
) -> Resolved:
    """Resolve all settings. Without a generation those of an unfinished build (`begun`) are continued.

    Raises if they invalidate earlier work and `rebuild` is False, or name a new model that is missing.
    """
    earlier = settings_of(base.manifest) if base is not None else begun
    stored = to_build_on(earlier, settings) if earlier is not None else None
    settings = with_modes(settings, stored, only=rebuild)
    resolved = resolve(flags=settings.given, index=stored, presets=registry().table)
    heavy, own = resolved.needs_rebuild, resolved.settings
    if has_model(own):
        from ketrag_fast.models.embedders.registry import fingerprint, options_of, require

        if base is not None and "embedder" in heavy:
            model = base.manifest.models.get("embedder")
            if model and model["fingerprint"] == fingerprint(own.embedder, options_of(own)):  # it was moved
                heavy = tuple(name for name in heavy if name != "embedder")
        if base is None or (rebuild and "embedder" in heavy):
            require(own.embedder, options_of(own))  # before any document is read
    if base is None or rebuild or not heavy or base.manifest.documents.get("count") == 0:
        return resolved
    lines = "; ".join(f"{name} is {old!r}, not {new!r}" for name, old, new in resolved.differences)
    alone = heavy == ("embedder",)
    command = "`ketrag reembed --embedder ...` computes new vectors" if alone else "--rebuild builds it again"
    hint = f"{command} ({_SERVES}); or keep the settings of the index"
    if "embedder" in heavy:
        check_embedder(own.embedder)
        raise ModelMismatch(f"the index was built with a different embedder: {lines}", hint=hint)
    raise ConfigError(f"the index was built with different units: {lines}", hint=hint)


def require_some_mode(settings: Settings) -> None:
    """Raise ConfigError if every mode of the settings needs a reader and there is none."""
    if not wanted_modes(settings, settings.llm != NONE):
        raise ConfigError(
            f"modes: {settings.modes} needs entities that an LLM extracts, and no LLM is set",
            hint="give --llm SPEC (heuristic needs no model); --modes +MODE keeps the other modes",
        )


@contextmanager
def source_of(
    settings: Settings, layout: Layout, limit: SpendingLimit, trust: Trust, words_only: bool = False
) -> Iterator[VectorSource | None]:
    """Open the embedding model of the settings; None for the built-in vectors.

    It is loaded on first use, which raises EndpointNotConfirmed if `trust` does not allow its endpoint. With
    `words_only`, it is not used: new texts get placeholders.
    """
    if not has_model(settings):
        yield None
        return
    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.embedders.registry import options_of, parse

    spec = spec_here(settings.embedder, layout)
    parse(spec)  # before a folder is made
    layout.work.mkdir(parents=True, exist_ok=True)
    if words_only:
        from ketrag_fast.models.embedders.placeholders import PlaceholderSource

        with PlaceholderSource(spec, options_of(settings, limit), layout.tables, layout.work) as source:
            yield source
        return
    permit = partial(trust.require, "embedder", spec, "the text of the documents")
    with VectorSource(spec, options_of(settings, limit), layout.tables, layout.work, permit) as source:
        yield source


def stored_identity(base: Generation | None) -> Identity | None:
    """Return the identity of a generation's embedding model; None for the built-in vectors."""
    from ketrag_fast.models.embedders.fingerprint import Identity

    stored = base.manifest.models.get("embedder") if base is not None else None
    return Identity.from_json(stored) if stored else None


def require_same_model(base: Generation | None, source: VectorSource | None, rebuild: bool) -> None:
    """Raise ModelMismatch if the model's files changed in place since the index was built."""
    stored = stored_identity(base) if source is not None and not rebuild else None
    if stored is not None and source is not None and stored.fingerprint != source.fingerprint:
        raise ModelMismatch(
            f"the index was built with {stored.spec} (fingerprint {stored.fingerprint[:12]}); "
            f"{source.spec} has {source.fingerprint[:12]}",
            hint=f"`ketrag reembed` computes new vectors ({_SERVES}); or restore the old model",
        )


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """Whether to call a reader for core chunks, or the key of the one whose stored replies to use."""

    asks: bool = False
    key: str | None = None
    partial: bool = False


def plan_reading(
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
    named, system = given.given.get("llm"), given.given.get("system")
    is_begun = base is None and named is None and begun is not None and begun.get("llm", NONE) != NONE
    if is_begun and begun is not None and system in (None, begun.get("system")):
        named = str(begun["llm"])
        given = given.having(llm=named)
    if named is not None:
        parse_spec(named)
    stored, key = NONE, None
    if base is not None:
        stored = str(base.manifest.settings.get("llm", NONE))
        key = base.manifest.models.get("llm", {}).get("reader")
    if partial:
        return _partial(given, named, layout)
    if named is None:
        uses_rules = system is not None and registry().presets.get(system, {}).get("llm") == HEURISTIC
        if stored == NONE and uses_rules:
            return given.having(llm=HEURISTIC), ReadingPlan(True)
        return given, ReadingPlan(stored == HEURISTIC, key)
    if named == NONE and stored != NONE and not rebuild:
        return given.having(llm=stored), ReadingPlan(key=key)
    require_file(named)  # before any document is read
    return given, ReadingPlan(named != NONE)


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
    from ketrag_fast.base.config.shared import ExtractionSettings
    from ketrag_fast.models.extraction.chunk_reader import open_reader, replay_only_reader
    from ketrag_fast.models.extraction.run import Reading, check_place
    from ketrag_fast.storage.journal import Journal

    with Journal(layout.tables) as journal:
        journal.require_sound()
        if plan.asks:
            reader = open_reader(settings, spending)
            number = journal.reader(reader.key, reader.spec, reader.identity).number
        else:
            row = journal.latest(settings.llm) if plan.key is None else journal.known(plan.key)
            if row is None:  # the tables were lost: every chunk is pending again
                row = journal.reader(plan.key or f"lost {settings.llm}", settings.llm, {})
            reader, number = replay_only_reader(settings, row), row.number
        try:
            record = settings.of(ExtractionSettings).record
            if record is not None:
                check_place(Path(record), reader)
            yield Reading(
                journal,
                reader,
                number,
                retry_failed=settings.retry_failed,
                limit=limit,
            )
        finally:
            reader.close()


def reader_identity(reading: Reading) -> dict[str, Any]:
    """Return the manifest's record of the reader."""
    reader = reading.reader
    return {**reader.identity, "spec": reader.spec, "reader": reader.key}


def failed_chunks(reading: Reading | None) -> list[Failure]:
    """Return the chunks that could not be read."""
    failed = [] if reading is None else reading.total.failed
    return [Failure(chunk.place, "chunk", why) for chunk, why in failed]


def reading_warnings(reading: Reading | None, plan: ReadingPlan, base: Generation | None) -> list[str]:
    """Return warnings about chunks that were not read."""
    if reading is None:
        return []
    outcome, reader = reading.total, reading.reader
    found = []
    if outcome.pending:
        count = f"{len(outcome.pending):,} of {outcome.core:,} core chunks are pending"
        why = {"limit_seconds": "the time was up", "limit_usd": "the limit in USD was reached"}
        reason = f": {why[outcome.stopped]}" if outcome.stopped else ""
        found.append(f"{count}{reason}; `ketrag index --llm {reader.spec}` reads them, and nothing twice")
    made, wanted = outcome.summaries or (0, 0)
    if made < wanted:
        found.append(
            f"{wanted - made:,} of {wanted:,} descriptions are concatenated, because they have no usable "
            f"summary; `ketrag index --llm {reader.spec}` requests the missing ones"
        )
    if outcome.read and outcome.barren == outcome.read:
        found.append(f"{reader.spec} found no entity in any of {outcome.read:,} chunks")
    if base is not None and (plan.asks or plan.partial):
        found += _replaced_reader(base, reader.key, outcome.read)
    return found


def _replaced_reader(base: Generation, key: str, read: int) -> list[str]:
    """Return a warning if another reader had read more chunks."""
    record, about = base.manifest.stages.get("replies"), base.manifest.models.get("llm", {})
    if record is None or about.get("reader") in (None, key) or "reply_chunk" not in record.files:
        return []
    before, spec = record.files["reply_chunk"].shape[0], about.get("spec")
    if before <= read:
        return []
    return [
        f"the previous entities came from {before:,} chunks read by {spec}; its replies are stored: "
        f"`--llm {spec}` restores it without a call"
    ]
