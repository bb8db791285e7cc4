"""A build: read the sources, run the stages whose fingerprint is new, publish a generation.

A stage is reused from the published generation, resumed from `work/` (where a stopped build left it finished
and checksummed), or run. A stage is valid if its fingerprint and the checksums of its files match; the
existence of a file proves nothing. If a build is killed, the published generation is unchanged.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.config import Resolved, Settings, build_settings
from ketrag_fast.base.filters import Condition
from ketrag_fast.base.progress import Callback, Limited, Meter
from ketrag_fast.building.async_writer import Kept, Outputs, StageWriter, finished_stage, sound, write_stage
from ketrag_fast.building.chunk_reading import ReadingPlan, failures, identity, open_reading, plan, warnings
from ketrag_fast.building.damage import blame_damage
from ketrag_fast.building.delta_build import change_by_delta, publish_difference, start_deltas
from ketrag_fast.building.extension_errors import blame_extension
from ketrag_fast.building.first_build import hold_folder
from ketrag_fast.building.ingest import Beginning, Change, Ingested, apply_change, begin_change
from ketrag_fast.building.merge_reuse import MergedBefore
from ketrag_fast.building.model_settings import require_same_model, require_some_mode, settings_for, source_of
from ketrag_fast.building.notes import note
from ketrag_fast.building.purge import Used, pending_purge_warnings
from ketrag_fast.building.purge import purge as drop_unused
from ketrag_fast.building.reading_ahead import working_ahead
from ketrag_fast.building.reuse import Before
from ketrag_fast.building.source_list import list_given
from ketrag_fast.building.sources import Others, Sources
from ketrag_fast.building.usage import usage_of, without_graphs
from ketrag_fast.errors import Cancelled, StageError
from ketrag_fast.models.endpoint_trust import Trust
from ketrag_fast.models.spending import SpendingLimit
from ketrag_fast.storage.allowed_folders import drop_old
from ketrag_fast.storage.arrays import RawFile
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.delta import DELTAS
from ketrag_fast.storage.durable import discard_contents
from ketrag_fast.storage.generation import (
    Generation,
    current_number,
    drop_damaged,
    finish_publication,
    is_newest,
    never_finished,
    newest_whole,
    prune,
    publish,
)
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.storage.manifest import StageRecord, content_digest
from ketrag_fast.storage.published_texts import UNITS
from ketrag_fast.storage.source_stamps import merged_stamps, read_stamps, write_stamps
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.index_settings import begun_settings
from ketrag_fast.systems.planning import Planner, planned_stages
from ketrag_fast.systems.spec.ahead import Ahead
from ketrag_fast.systems.spec.arrays import Sizes, check, measure_sizes
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import (
    DOCUMENTS,
    Stage,
    StageContext,
    StageInputs,
    fingerprint_of,
)
from ketrag_fast.types import BuildReport, StageReport, Usage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.extraction.run import Reading
    from ketrag_fast.systems.shared.published_vectors import Published

_EMBEDDED = ("units", "vectors", "sentence_vectors", "title_vectors", *DELTAS)
"""The stages from which vectors of texts are reused."""
_SMALL = 32 << 20
"""Stages smaller than this are written before the next one begins, so that a crash does not lose them."""


def build(
    path: str | os.PathLike[str],
    sources: Sources,
    stages: Sequence[Stage] | Planner,
    settings: Settings | None = None,
    *,
    progress: Callback | None = None,
    others: Others = "read",
    rebuild: bool = False,
    partial: bool = False,
    remove: Sequence[str] = (),
    purge: bool = False,
    where: Condition | None = None,
    trust: Trust | None = None,
    fold: bool = False,
    opened: Generation | None = None,
    quick: bool = False,
    vectors_of: Generation | None = None,
) -> BuildReport:
    """Build the index at `path`, or update it from its sources.

    Args:
        sources: paths, globs or documents to read and register.
        stages: the stages to run, or a function that plans them (`planning.stages_for`).
        settings: values that were given win over the index, the index over the system, that over defaults.
        others: what is done with all other sources.
        rebuild: run every stage again; allows a different embedder or different units.
        partial: call no language model, and publish the replies so far.
        remove: ids, or patterns of ids, of documents to remove.
        purge: delete everything stored of removed documents from every file.
        where: documents whose metadata meets this condition are removed too.
        trust: the endpoints that may receive text; by default those in `settings`, which are then confirmed
            for this index.
        fold: write all arrays, and no delta.
        opened: the generation that the caller has open; a small change uses its files if it is the newest.
        quick: do not read files again that have the size and time which they had.
        vectors_of: a generation of another index whose vectors of the same texts are reused.

    Raises:
        Cancelled: (or KeyboardInterrupt) the build was stopped; the next call resumes after the last
            finished stage and the last reply.
    """
    start = time.monotonic()
    listed = list_given(sources)
    layout = Layout(Path(path))
    with hold_folder(layout):
        is_open = opened is not None and is_newest(layout, opened)
        base = _published(layout, opened if is_open else newest_whole(layout), rebuild)
        is_current = base is not None and base.number == current_number(layout)
        resolved, reads = _plan_settings(settings or Settings(), base, layout, rebuild, partial)
        require_some_mode(resolved.settings)
        own = Trust.of(layout, settings or Settings())
        noted = own.keep(resolved.settings) if trust is None else []
        used = Used()
        callback = Limited(progress, resolved.settings.limit_seconds, start)
        with Tables(layout.tables) as tables:
            stamps = read_stamps(layout) if quick else None
            wanted = Change(listed, others, remove, where, purge, stamps)
            beginning = begin_change(tables, wanted, resolved.settings)
            change = beginning.change
            is_small = is_current and not (rebuild or partial or purge or fold)
            deltas = start_deltas(layout, tables, base, resolved, stages, trust or own) if is_small else None
            if deltas is not None:
                small = change_by_delta(deltas, tables, resolved, change, callback)
                if small is not None:
                    return _finish(layout, tables, resolved.settings, small, noted, start)
            if is_open:
                base = newest_whole(layout)  # without checksums: the stages verify what they use
            meter = Meter("read", callback, "documents")
            again = rebuild or not (tables.texts.all_here() or _has_texts(base, tables, resolved.settings))
            with working_ahead(layout, tables, stages, resolved.settings) as ahead:
                read = _read_sources(tables, beginning, resolved.settings, meter, again, ahead)
                read.warnings += noted
                if quick and base is not None and base.manifest.documents["fingerprint"] == read.fingerprint:
                    _keep_stamps(layout, tables, read, purge)
                    return _unchanged(base, read, start)
                if deltas is not None:
                    small = publish_difference(deltas, tables, resolved, read, callback)
                    if small is not None:
                        _keep_stamps(layout, tables, read, purge)
                        return _finish(layout, tables, resolved.settings, small, read.warnings, start)
                given = None if vectors_of is None else (vectors_of,)
                work = _StageRun(layout, tables, resolved, base, stages, reads, callback, start, ahead, given)
                report = work.run(read, trust or own, rebuild, used if purge else None)
            remember(tables, report)
            _keep_stamps(layout, tables, read, purge)
        _drop_leftovers(layout, resolved.settings, used if purge else None)
    return report


def _keep_stamps(layout: Layout, tables: Tables, read: Ingested, purge: bool) -> None:
    """Store what the sources consisted of when they were read. A purge deletes it, with the names in it."""
    with suppress(OSError):  # it only saves time
        if purge:
            layout.stamps.unlink(missing_ok=True)
        elif read.stamps:
            specs = [source.spec for source in tables.sources() if source.kind == "path"]
            write_stamps(layout, merged_stamps(read_stamps(layout), read.stamps, specs), read.reader)


def _unchanged(base: Generation, read: Ingested, start: float) -> BuildReport:
    """Return the report of a build that found all documents as they are."""
    return BuildReport(
        generation=base.number,
        changed=False,
        digest=base.manifest.digest,
        documents=read.documents,
        added=0,
        removed=0,
        updated=0,
        stages=(),
        failures=tuple(read.failures),
        skipped=tuple(read.skipped),
        settings_changed=(),
        warnings=tuple(read.warnings),
        seconds=time.monotonic() - start,
        usage=Usage(),
        extraction=None,
    )


def _plan_settings(
    given: Settings, base: Generation | None, layout: Layout, rebuild: bool, partial: bool
) -> tuple[Resolved, ReadingPlan]:
    """Return the settings of a build, those of an unfinished first build among them, and the reading plan."""
    begun = begun_settings(layout) if base is None else None
    planned, reads = plan(given, base, layout, rebuild=rebuild, partial=partial, begun=begun)
    return settings_for(base, planned, rebuild, begun), reads


def _published(layout: Layout, base: Generation | None, rebuild: bool) -> Generation | None:
    """Return the newest whole generation, which is current then.

    Raises IndexMissing for an unfinished merge, whose texts are still in its parts.
    """
    if base is not None:
        finish_publication(layout, base)
    elif not rebuild and (layout.work / MERGE).is_file():
        raise never_finished(layout)
    return base


def _drop_leftovers(layout: Layout, settings: Settings, used: Used | None) -> None:
    """Remove what the index needs no longer, after a purge also vectors and replies that were not `used`."""
    if used is not None:
        drop_unused(layout, used)
    prune(layout, settings.keep_generations, settings.keep_days)
    drop_old(layout)


@dataclass(frozen=True)
class _StageRun:
    """Folders, tables and settings that all stages of a build share."""

    layout: Layout
    tables: Tables
    resolved: Resolved
    base: Generation | None
    stages: Sequence[Stage] | Planner
    reads: ReadingPlan
    callback: Limited
    start: float
    ahead: Mapping[str, Ahead]
    vectors_of: Sequence[Generation] | None = None

    def run(self, read: Ingested, trust: Trust, rebuild: bool, dropped: Used | None) -> BuildReport:
        """Run the stages and publish; with `dropped`, run all, and record there what they use."""
        settings, layout, tables = self.resolved.settings, self.layout, self.tables
        limit = SpendingLimit(settings.limit_usd)
        with (
            source_of(settings, layout, limit, trust) as source,
            open_reading(settings, layout, self.reads, self.callback, limit) as reading,
        ):
            require_same_model(self.base, source, rebuild)
            planned = planned_stages(self.stages, settings, reading is not None)
            every = frozenset(stage.name for stage in planned)
            rerun = every if rebuild or dropped is not None else frozenset()
            if dropped is not None:
                dropped.watch(source, reading)
            else:
                read.warnings += pending_purge_warnings(tables)
            built = Build(
                layout,
                tables,
                self.resolved,
                self.base,
                rerun,
                self.callback,
                self.start,
                source,
                self.reads,
                reading,
                self.ahead,
                vectors_of=self.vectors_of,
            )
            return built.run(planned, read)


def _read_sources(
    tables: Tables,
    beginning: Beginning,
    settings: Settings,
    meter: Meter,
    rebuild: bool,
    ahead: Mapping[str, Ahead],
) -> Ingested:
    """Apply the change of a build. Raises Cancelled if the caller has stopped it."""
    begun = tuple(ahead.values())
    read = apply_change(
        tables, beginning.change, settings, meter, rebuild=rebuild, ahead=begun, beginning=beginning
    )
    if meter.finish() is False:
        raise Cancelled("stopped after reading the sources")
    return read


def _finish(
    layout: Layout, tables: Tables, settings: Settings, report: BuildReport, noted: list[str], start: float
) -> BuildReport:
    """Log a change by a delta, and remove what is old."""
    noted = [*noted, *pending_purge_warnings(tables)]
    report = replace(report, warnings=tuple(noted), seconds=time.monotonic() - start)
    remember(tables, report)
    discard_contents(layout.work)
    prune(layout, settings.keep_generations, settings.keep_days)
    drop_old(layout)
    return report


def _has_texts(base: Generation | None, tables: Tables, settings: Settings) -> bool:
    """Return whether the texts that the tables lack are published and undamaged."""
    record = base.manifest.stages.get(UNITS) if base is not None else None
    if base is None or record is None:
        return False
    is_sound = sound(base.folder / UNITS, record, full=settings.verify != "sizes")
    return is_sound and tables.texts.are_in(base.stages[UNITS]["document_hashes"])


@dataclass(frozen=True)
class Making:
    """A stage that may have to run: everything its result depends on, and when it began."""

    stage: Stage
    fingerprint: str
    inputs: StageInputs
    context: StageContext
    before: Before | MergedBefore
    begin: float


@dataclass(frozen=True)
class Build:
    """One run of the stages over the documents of the tables; those in `rerun` are not reused from `base`.

    Without `base`, the arrays of `parts`, generations of indexes that are merged, are reused.
    """

    layout: Layout
    tables: Tables
    resolved: Resolved
    base: Generation | None
    rerun: frozenset[str]
    callback: Callback
    start: float
    source: VectorSource | None = None
    reads: ReadingPlan = field(default_factory=ReadingPlan)
    reading: Reading | None = None
    ahead: Mapping[str, Ahead] = field(default_factory=dict)
    reports: list[StageReport] = field(default_factory=list)
    parts: Sequence[Generation] = ()
    vectors_of: Sequence[Generation] | None = None
    """Generations whose vectors are reused by text; by default `base`, or else `parts`."""
    damaged: set[str] = field(default_factory=set)
    """Stages of `base` with altered files."""

    def run(self, stages: Sequence[Stage], read: Ingested) -> BuildReport:
        """Run the new stages and publish a generation; publish nothing if nothing changed."""
        settings = self.resolved.settings
        with StageWriter() as writer:
            kept = self._run(stages, read, writer)
            done = {stage.name: (stage.folder, stage.record()) for stage in kept}
        made = ((stage.how, stage.record()) for stage in kept)
        self.reports.extend(StageReport(r.name, how, r.seconds, r.bytes) for how, r in made)
        self._list_failures(read)
        base = self.base
        about = {"count": read.documents, "fingerprint": read.fingerprint}
        built = build_settings(settings)
        reused = [report.name for report in self.reports if report.how == "reused"]
        if base is not None and reused == list(done) == list(base.stages):
            stored = base.manifest
            same = (dict(stored.settings), dict(stored.documents)) == (built, about)
            same = same and stored.generation == current_number(self.layout)  # else a newer one is damaged
            if same and stored.models.get("llm") == self._models().get("llm"):
                self._end()  # a build killed after its publication leaves it filled
                self.tables.hand_over(stored.generation)
                read.warnings += self._drop_damaged(max(self.layout.generations()) + 1)
                return self._report(stored.generation, stored.digest, read, done, changed=False)
        manifest = publish(
            self.layout,
            done.values(),
            settings=built,
            documents=about,
            version=_package_version(),
            models=self._models(),
        )
        self._end()
        self.tables.hand_over(manifest.generation)
        read.warnings += self._drop_damaged(manifest.generation)
        return self._report(manifest.generation, manifest.digest, read, done, changed=True)

    def _drop_damaged(self, published: int) -> list[str]:
        """Remove the generations before `published` that are damaged, from the one this build is based on."""
        base = 0 if self.base is None else self.base.number
        dropped = drop_damaged(self.layout, range(base + (not self.damaged), published))
        return [f"generation {number:,} was damaged and is removed" for number in dropped]

    def _run(self, stages: Sequence[Stage], read: Ingested, writer: StageWriter) -> list[Kept]:
        """Run every stage in order. Results may still be on their way to disk."""
        settings = self.resolved.settings
        model = self.source.fingerprint if self.source is not None else None
        fingerprints = {DOCUMENTS: read.fingerprint}
        documents = Documents(self.tables, cut=settings.cut == "sentences")
        done: list[Kept] = []
        outputs: dict[str, Outputs] = {}
        sizes: Sizes = {}
        before: Before | MergedBefore = Before(self.base, documents, settings)
        if self.base is None and self.parts:
            before = MergedBefore(self.parts, documents, settings, self.layout.work)
        published = self._published_vectors()
        for number, stage in enumerate(stages):
            meter = Meter(stage.name, self.callback, stage.unit)
            context = StageContext(
                meter,
                settings.threads,
                self.source,
                self.reading,
                self.layout.work,
                ahead=self.ahead.get(stage.name),
                published=published,
            )
            needs = stage.needed(settings)
            needed = {need: outputs[need] for need in needs if need != DOCUMENTS}
            inputs = StageInputs(needed, documents if DOCUMENTS in needs else None)
            own = fingerprint_of(stage, settings, fingerprints, model)
            begin = time.monotonic()
            with blame_extension(stage):
                looked = stage.looked(inputs, settings, context)
                variant = stage.varied(inputs, settings, context)
            more = [part for part in (looked, variant or None) if part is not None]
            if more:
                own = text_digest([own, *more])
            before.follow(stage, model, looked, more)
            making = Making(stage, own, inputs, context, before, begin)
            with blame_damage(self.base):
                output, arrays = self._stage(making, sizes, writer)
            if stage.arrays is not None and output.how != "ran":
                shapes = {name: file.shape for name, file in output.record().files.items()}
                measure_sizes(stage.arrays, shapes, sizes, stage.name)
            fingerprints[stage.slot] = own if looked is None else content_digest([output.record()])
            done.append(output)
            if not any(DOCUMENTS in later.needed(settings) for later in stages[number + 1 :]):
                documents.forget()
            outputs[stage.slot] = Outputs(output, arrays, self.layout.work)
            del arrays  # else the arrays would stay through the next stage
            if output.how == "ran" and meter.finish() is False:
                raise Cancelled(f"stopped after the stage {stage.name}")
        if isinstance(before, Before):
            self.damaged.update(before.damaged())
        return done

    def _published_vectors(self) -> Published | None:
        """Return the vectors of undamaged generations that the model of this build made."""
        if self.source is None:
            return None
        from ketrag_fast.systems.shared.published_vectors import Published

        generations = self.vectors_of
        if generations is None:
            generations = self.parts if self.base is None else [self.base]
        full, mark = self.resolved.settings.verify != "sizes", self.source.fingerprint
        found = [
            one
            for one in generations
            if one.manifest.models.get("embedder", {}).get("fingerprint") == mark and _has_vectors(one, full)
        ]
        return Published([one.stages for one in found]) if found else None

    def _end(self) -> None:
        """Remove what the build left in `work/`."""
        if self.source is not None:
            self.source.journal.close()
        discard_contents(self.layout.work)

    def _models(self) -> dict[str, Any]:
        models: dict[str, Any] = {}
        if self.source is not None:
            models["embedder"] = self.source.identity().to_json()
        if self.reading is not None:
            models["llm"] = identity(self.reading)
        return models

    def _list_failures(self, read: Ingested) -> None:
        """Add chunks that could not be read to the failed documents."""
        chunks = failures(self.reading)
        if chunks:
            read.failures += chunks
            with self.tables.transaction():
                self.tables.set_failures(read.failures)

    def _stage(
        self, making: Making, sizes: Sizes, writer: StageWriter
    ) -> tuple[Kept, Mapping[str, NDArray[Any]] | None]:
        """Return a stage, and its arrays while they are in memory."""
        stage, fingerprint = making.stage, making.fingerprint
        reused = None if stage.name in self.rerun else self._from_base(stage, fingerprint)
        if reused is not None:
            return Kept(stage.name, "reused", *reused), None
        folder = self.layout.work / f"{stage.name}-{fingerprint[:24]}"
        resumed = finished_stage(folder, stage, fingerprint)
        if resumed is not None:
            return Kept(stage.name, "resumed", folder, resumed), None
        with blame_extension(stage):
            earlier = None if stage.name in self.rerun else making.before.of(stage)
            context = replace(making.context, earlier=earlier)
            outputs = stage.make(making.inputs, self.resolved.settings, context)
            context.check()
            if not isinstance(outputs, Mapping):
                raise StageError(f"{stage.name} returned a {type(outputs).__name__}, not a mapping of arrays")
            arrays = {name: made for name, made in outputs.items() if not isinstance(made, RawFile)}
            if stage.arrays is not None:
                check(stage.arrays, arrays, sizes, stage.name)
        took = time.monotonic() - making.begin
        published = self.base.stages[stage.name] if self.base is not None and earlier is not None else None
        write = partial(write_stage, stage, fingerprint, folder, outputs, took, published)
        if len(arrays) < len(outputs) or sum(array.nbytes for array in arrays.values()) < _SMALL:
            return Kept(stage.name, "ran", folder, write()), None
        return Kept(stage.name, "ran", folder, writer.write(write)), arrays

    def _from_base(self, stage: Stage, fingerprint: str) -> tuple[Path, StageRecord] | None:
        record = self.base.manifest.stages.get(stage.name) if self.base else None
        if self.base is None or record is None or record.fingerprint != fingerprint:
            return None
        if self.base.delta is not None:  # its files are those of earlier documents
            return None
        folder = self.base.folder / stage.name
        full = self.resolved.settings.verify != "sizes"  # so that damage is rebuilt, not published again
        if sound(folder, record, full=full):
            return folder, record
        self.damaged.add(stage.name)
        return None

    def _report(
        self,
        generation: int,
        digest: str,
        read: Ingested,
        done: dict[str, tuple[Path, StageRecord]],
        *,
        changed: bool,
    ) -> BuildReport:
        messages = list(read.warnings)
        about = note(self.resolved.settings, reads=self.reading is not None)
        if about is not None:
            messages.append(about)
        messages += without_graphs(
            self.resolved.settings, {name: kept for name, (_, kept) in done.items()}, self.source is not None
        )
        messages += warnings(self.reading, self.reads, self.base)
        if not read.documents:
            messages.append("the index is empty: no documents were found")
        return BuildReport(
            generation=generation,
            changed=changed,
            digest=digest,
            documents=read.documents,
            added=read.added,
            removed=read.removed,
            updated=read.updated,
            stages=tuple(self.reports),
            failures=tuple(read.failures),
            skipped=tuple(read.skipped),
            settings_changed=self.resolved.differences,
            warnings=tuple(messages),
            seconds=time.monotonic() - self.start,
            usage=usage_of(
                self.tables, {name: kept for name, (_, kept) in done.items()}, self.source, self.reading
            ),
            extraction=self.reading.total.to_json() if self.reading is not None else None,
        )


def _has_vectors(generation: Generation, full: bool) -> bool:
    """Return whether a generation has vectors of texts, and its files are undamaged."""
    records = generation.records()
    needed = [name for name in _EMBEDDED if name in records]
    return "vectors" in needed and all(
        sound(generation.folder / name, records[name], full=full) for name in needed
    )


def remember(tables: Tables, report: BuildReport) -> None:
    """Add the run to the tables, if it changed anything or had failures."""
    if not report.changed and not report.failures:
        return
    about = {"failures": len(report.failures), "settings": tables.settings()}
    data: dict[str, Any] = {**report.to_json(), **about, "skipped": len(report.skipped)}
    started = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=report.seconds)
    with tables.transaction():
        tables.add_run(
            started.isoformat(timespec="seconds"),
            report.seconds,
            report.generation,
            report.changed,
            json.dumps(data, ensure_ascii=False),
        )


def _package_version() -> str:
    try:
        return metadata.version("ketrag-fast")
    except metadata.PackageNotFoundError:
        return "unknown"
