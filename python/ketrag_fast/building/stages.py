"""Running the stages of a build, and publishing what they return.

A stage is reused from the published generation, resumed from `work/`, where a stopped build left it finished
and checksummed, or run. A stage is valid if its fingerprint and the checksums of its files match; the
existence of a file proves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ketrag_fast._core import __version__
from ketrag_fast.base.config import Resolved, Settings, build_settings
from ketrag_fast.base.progress import Limited, Meter
from ketrag_fast.building.async_writer import Kept, Outputs, StageWriter, finished_stage, sound, write_stage
from ketrag_fast.building.ingest import Ingested
from ketrag_fast.building.model_settings import (
    ReadingPlan,
    failed_chunks,
    open_reading,
    reader_identity,
    reading_warnings,
    source_of,
)
from ketrag_fast.building.reports import usage_of, warn_of_missing_parts
from ketrag_fast.building.reuse import Before
from ketrag_fast.errors import Cancelled, ExtensionError, IndexDamaged, InputError, KetragError, StageError
from ketrag_fast.models.endpoint_trust import Trust
from ketrag_fast.models.llms.registry import NONE
from ketrag_fast.models.spending import SpendingLimit
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.storage.arrays import RawFile
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.delta import DELTAS
from ketrag_fast.storage.durable import discard_contents
from ketrag_fast.storage.generation import Generation, current_number, drop_damaged, publish
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import UNEMBEDDED, Manifest, StageRecord, content_digest
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.planning import Planner, planned_stages
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.arrays import Sizes, check, measure_sizes
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import DOCUMENTS, Ahead, Stage, StageContext, StageInputs, fingerprint_of
from ketrag_fast.types import BuildReport, StageReport

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.building.reuse import MergedBefore
    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.extraction.run import Reading
    from ketrag_fast.systems.shared.published_vectors import Published

_EMBEDDED = ("units", "vectors", "sentence_vectors", "title_vectors", *DELTAS)
"""The stages from which vectors of texts are reused."""
_SMALL = 32 << 20
"""Stages smaller than this are written before the next one begins, so that a crash does not lose them."""


@dataclass(kw_only=True)
class Build:
    """One run of the stages over the documents of the tables, and what it starts from.

    Attributes:
        base: The published generation, whose stages are reused.
        stages: The stages to run, or a function that plans them.
        reads: Which reader extracts entities from the core chunks.
        rerun: Names of stages that are run even if `base` has them.
        ahead: Work that stages began while the sources were read, by name of the stage.
        parts: Generations of merged indexes, whose arrays are reused if there is no `base`.
        vectors_of: Generations whose vectors are reused by text, with their placeholders; by default
            `base`, or else `parts`, without.
        words_only: Whether texts without known vectors get placeholders.
        is_refresh: Whether only what has changed is indexed, without folding a delta.
        source: The embedding model, within `opened`.
        reading: The reader of the core chunks, within `opened`.
        planned: The stages in order, within `opened`.
        used_vectors: The stored vectors (model, role, text) that a purge keeps, because it used them.
        used_replies: The stored replies (chunk) that a purge keeps.
    """

    layout: Layout
    tables: Tables
    resolved: Resolved
    base: Generation | None
    stages: Sequence[Stage] | Planner
    reads: ReadingPlan
    trust: Trust
    callback: Limited
    start: float
    rerun: frozenset[str] = frozenset()
    ahead: Mapping[str, Ahead] = field(default_factory=dict)
    parts: Sequence[Generation] = ()
    vectors_of: Sequence[Generation] | None = None
    words_only: bool = False
    is_refresh: bool = False
    source: VectorSource | None = None
    reading: Reading | None = None
    planned: Sequence[Stage] = ()
    used_vectors: set[tuple[int, str, bytes]] = field(default_factory=set)
    used_replies: set[bytes] = field(default_factory=set)
    _damaged: set[str] = field(default_factory=set)
    """Stages of `base` with altered files."""
    _sizes: Sizes = field(default_factory=dict)
    _unembedded: int = 0
    """Passages with a placeholder in place of a vector."""

    @property
    def settings(self) -> Settings:
        """The settings of the build."""
        return self.resolved.settings

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Open the embedding model and the reader for the time of a block, and plan the stages."""
        unread = {} if self.reads.asks else {"llm": NONE}
        self.trust.require_files({**self.settings.given, **unread})
        limit = SpendingLimit(self.settings.limit_usd)
        with (
            source_of(self.settings, self.layout, limit, self.trust, self.words_only) as self.source,
            open_reading(self.settings, self.layout, self.reads, self.callback, limit) as self.reading,
        ):
            self.planned = planned_stages(self.stages, self.settings, self.reading is not None)
            yield self

    def run(self, read: Ingested) -> BuildReport:
        """Run the new stages and publish a generation; publish nothing if nothing changed."""
        with StageWriter() as writer:
            kept = self._run_all(read, writer)
            done = {stage.name: (stage.folder, stage.record()) for stage in kept}
        records = {name: record for name, (_, record) in done.items()}
        reports = [StageReport(one.name, one.how, one.record().seconds, one.record().bytes) for one in kept]
        self._list_failures(read)
        about: dict[str, Any] = {"count": read.documents, "fingerprint": read.fingerprint}
        if self._unembedded:
            about[UNEMBEDDED] = self._unembedded
        manifest = self._equal_generation(reports, about)
        changed = manifest is None
        if manifest is None:
            manifest = publish(
                self.layout,
                done.values(),
                settings=build_settings(self.settings),
                documents=about,
                version=__version__,
                models=self._models(),
            )
        self._end()  # a build killed after its publication leaves it filled
        self.tables.hand_over(manifest.generation)
        read.warnings += self._drop_damaged(max(self.layout.generations()) + (not changed))
        messages = [
            *read.warnings,
            *warn_of_missing_parts(self.settings, records, self.source is not None, self.reading is not None),
            *reading_warnings(self.reading, self.reads, self.base),
        ]
        if not read.documents:
            messages.append("the index is empty: no documents were found")
        return read.report(
            manifest,
            changed=changed,
            stages=tuple(reports),
            settings_changed=self.resolved.differences,
            warnings=tuple(messages),
            seconds=time.monotonic() - self.start,
            usage=usage_of(self.tables, records, self.source, self.reading),
            extraction=self.reading.total.to_json() if self.reading is not None else None,
        )

    def _equal_generation(
        self, reports: Sequence[StageReport], documents: Mapping[str, Any]
    ) -> Manifest | None:
        """Return the manifest of the current generation if it is what this build would publish."""
        base = self.base
        if base is None or base.number != current_number(self.layout):  # a newer one is damaged
            return None
        reused = [one.name for one in reports if one.how == "reused"]
        if not reused == [one.name for one in reports] == list(base.stages):
            return None
        stored = base.manifest
        same = (dict(stored.settings), dict(stored.documents)) == (build_settings(self.settings), documents)
        return stored if same and stored.models.get("llm") == self._models().get("llm") else None

    def _drop_damaged(self, published: int) -> list[str]:
        """Remove the generations before `published` that are damaged, from the one this build is based on."""
        base = 0 if self.base is None else self.base.number
        dropped = drop_damaged(self.layout, range(base + (not self._damaged), published))
        return [f"generation {number:,} was damaged and is removed" for number in dropped]

    def _run_all(self, read: Ingested, writer: StageWriter) -> list[Kept]:
        """Run every stage in order. Results may still be on their way to disk."""
        settings = self.settings
        model = self.source.fingerprint if self.source is not None else None
        fingerprints = {DOCUMENTS: read.fingerprint}
        documents = Documents(self.tables, cut=settings.cut == "sentences")
        done: list[Kept] = []
        outputs: dict[str, Outputs] = {}
        before: Before | MergedBefore = Before(self.base, documents, settings)
        if self.base is None and self.parts:
            from ketrag_fast.building.reuse import MergedBefore

            before = MergedBefore(self.parts, documents, settings, self.layout.work)
        published = self._published_vectors()
        for number, stage in enumerate(self.planned):
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
            arrays = None
            with blame_damage(self.base):
                output = self._find(stage, own)
                if output is None:
                    with blame_extension(stage):
                        earlier = None if stage.name in self.rerun else before.of(stage)
                    context = replace(context, earlier=earlier)
                    output, arrays = self._compute(stage, own, inputs, context, begin, writer)
            if stage.arrays is not None and output.how != "ran":
                shapes = {name: file.shape for name, file in output.record().files.items()}
                measure_sizes(stage.arrays, shapes, self._sizes, stage.name)
            fingerprints[stage.slot] = own if looked is None else content_digest([output.record()])
            done.append(output)
            if not any(DOCUMENTS in later.needed(settings) for later in self.planned[number + 1 :]):
                documents.forget()
            outputs[stage.slot] = Outputs(output, arrays, self.layout.work)
            del arrays  # else the arrays would stay through the next stage
            if output.how == "ran" and meter.finish() is False:
                raise Cancelled(f"stopped after the stage {stage.name}")
        if self.words_only and "vectors" in outputs:
            from ketrag_fast.systems.shared.vectors import passages_without_vectors

            found = [outputs[name] for name in ("units", "vectors", "sentence_vectors")]
            self._unembedded = int(passages_without_vectors(*found).sum())
        if isinstance(before, Before):
            self._damaged.update(before.damaged())
        return done

    def _folder(self, stage: Stage, fingerprint: str) -> Path:
        """Return the folder in `work/` to which a stage is written."""
        return self.layout.work / f"{stage.name}-{fingerprint[:24]}"

    def _find(self, stage: Stage, fingerprint: str) -> Kept | None:
        """Return a stage that is published, or that a stopped build has finished; None if it must be run."""
        reused = None if stage.name in self.rerun else self._find_published(stage, fingerprint)
        if reused is not None:
            return Kept(stage.name, "reused", *reused)
        folder = self._folder(stage, fingerprint)
        resumed = finished_stage(folder, stage, fingerprint)
        return None if resumed is None else Kept(stage.name, "resumed", folder, resumed)

    def _find_published(self, stage: Stage, fingerprint: str) -> tuple[Path, StageRecord] | None:
        """Return folder and record of a stage of `base` with this fingerprint and undamaged files."""
        record = self.base.manifest.stages.get(stage.name) if self.base else None
        if self.base is None or record is None or record.fingerprint != fingerprint:
            return None
        if self.base.delta is not None:  # its files are those of earlier documents
            return None
        folder = self.base.folder / stage.name
        full = self.settings.verify != "sizes"  # so that damage is rebuilt, not published again
        if sound(folder, record, full=full):
            return folder, record
        self._damaged.add(stage.name)
        return None

    def _compute(
        self,
        stage: Stage,
        fingerprint: str,
        inputs: StageInputs,
        context: StageContext,
        begin: float,
        writer: StageWriter,
    ) -> tuple[Kept, Mapping[str, NDArray[Any]] | None]:
        """Run a stage that began at `begin`, and write its result.

        Large arrays are returned too: the next stages read them while they are written.
        """
        with blame_extension(stage):
            outputs = stage.make(inputs, self.settings, context)
            context.check()
            if not isinstance(outputs, Mapping):
                raise StageError(f"{stage.name} returned a {type(outputs).__name__}, not a mapping of arrays")
            arrays = {name: array for name, array in outputs.items() if not isinstance(array, RawFile)}
            if stage.arrays is not None:
                check(stage.arrays, arrays, self._sizes, stage.name)
        took = time.monotonic() - begin
        has_earlier = self.base is not None and context.earlier is not None
        published = self.base.stages[stage.name] if self.base is not None and has_earlier else None
        folder = self._folder(stage, fingerprint)
        write = partial(write_stage, stage, fingerprint, folder, outputs, took, published)
        if len(arrays) < len(outputs) or sum(array.nbytes for array in arrays.values()) < _SMALL:
            return Kept(stage.name, "ran", folder, write()), None
        return Kept(stage.name, "ran", folder, writer.write(write)), arrays

    def _published_vectors(self) -> Published | None:
        """Return the vectors of undamaged generations that the model of this build made."""
        if self.source is None:
            return None
        from ketrag_fast.systems.shared.published_vectors import Published

        generations = self.vectors_of
        if generations is None:
            generations = self.parts if self.base is None else [self.base]
        full, mark = self.settings.verify != "sizes", self.source.fingerprint
        found = [
            one
            for one in generations
            if one.manifest.models.get("embedder", {}).get("fingerprint") == mark and _has_vectors(one, full)
        ]
        takes_placeholders = self.vectors_of is not None
        return Published([one.stages for one in found], takes_placeholders) if found else None

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
            models["llm"] = reader_identity(self.reading)
        return models

    def _list_failures(self, read: Ingested) -> None:
        """Add chunks that could not be read to the failed documents."""
        chunks = failed_chunks(self.reading)
        if chunks:
            read.failures += chunks
            with self.tables.transaction():
                self.tables.set_failures(read.failures)


def _has_vectors(generation: Generation, full: bool) -> bool:
    """Return whether a generation has vectors of texts, and its files are undamaged."""
    records = generation.records()
    needed = [name for name in _EMBEDDED if name in records]
    return "vectors" in needed and all(
        sound(generation.folder / name, records[name], full=full) for name in needed
    )


@contextmanager
def blame_damage(base: Generation | None) -> Iterator[None]:
    """Raise IndexDamaged for an error of a stage if arrays of the published generation `base` are damaged.

    A build with `verify` = "sizes" does not compare checksums, so a stage may get damaged arrays, and its
    kernels or the check of its result report what they find in them.
    """
    try:
        yield
    except (StageError, InputError) as error:
        if base is None:
            raise
        for name, record in base.manifest.stages.items():
            if not sound(base.folder / name, record):
                raise IndexDamaged(
                    f"stage {name} is damaged: {error.message}",
                    hint="run `ketrag index --verify full`: it rebuilds whatever is damaged",
                ) from error
        raise


@contextmanager
def blame_extension(stage: Stage) -> Iterator[None]:
    """Turn what another package's stage raises into an ExtensionError, and name its system in a StageError.

    Errors of this package's stages pass through: they are typed, or defects whose traceback is needed.
    """
    system = registry().outside(stage)
    if system is None:
        yield
        return
    try:
        yield
    except StageError as error:
        raise StageError(f"system {system}: {error.message}", hint=error.hint) from error
    except (KetragError, MemoryError):
        raise
    except Exception as error:
        raise ExtensionError(
            f"stage {stage.name} of system {system} failed: {type(error).__name__}: {error}",
            hint="the index is unchanged; fix or uninstall the package that provides the system",
        ) from error
