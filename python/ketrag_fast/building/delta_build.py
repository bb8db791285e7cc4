"""Changes that are published as a delta: the rows that differ from the last whole generation."""

from __future__ import annotations

from functools import partial

from ketrag_fast.building.delta import Deltas
from ketrag_fast.building.ingest import Change, Ingested
from ketrag_fast.building.model_settings import source_of
from ketrag_fast.building.stages import Build
from ketrag_fast.building.usage import usage_of
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.models.spending import SpendingLimit
from ketrag_fast.storage.manifest import StageRecord
from ketrag_fast.systems.planning import planned_stages
from ketrag_fast.types import BuildReport, StageReport


def start_deltas(build: Build) -> Deltas | None:
    """Prepare to store a change as a delta; None if the index is small or has no whole generation."""
    settings = build.settings
    if settings.llm not in (None, "none"):
        return None
    limit = SpendingLimit(settings.limit_usd)
    source = partial(source_of, settings, build.layout, limit, build.trust)
    stages = planned_stages(build.stages, settings, False)
    return Deltas.start(build.layout, build.tables, build.base, build.resolved, stages, source)


def change_by_delta(deltas: Deltas, build: Build, change: Change) -> BuildReport | None:
    """Publish a change by documents and ids as a delta.

    Returns None if it must be another change, with the tables as they were. Arrays of the base that are
    damaged are computed again by a build of whole files.
    """
    try:
        with build.tables.transaction():
            changed = deltas.apply(change)
            if changed is None:
                return None
            record = None
            if changed.changes:
                record = deltas.write(changed, build.callback)
                if record is None:
                    raise _NeedsWhole
    except (_NeedsWhole, IndexDamaged):
        return None
    read = Ingested(
        added=changed.added, updated=changed.updated, removed=changed.removed, failures=changed.unknown
    )
    return _delta_report(deltas, build, read, record)


def publish_difference(deltas: Deltas, build: Build, read: Ingested) -> BuildReport | None:
    """Publish the documents that reading the sources changed as a delta.

    Returns None if the index must be computed as a whole, also if its arrays are damaged.
    """
    if not (read.added or read.updated or read.removed):
        return None  # a build without changes folds the delta
    try:
        changed = deltas.difference()
        record = None if changed is None else deltas.write(changed, build.callback, read.fingerprint)
    except IndexDamaged:
        return None
    return None if record is None else _delta_report(deltas, build, read, record)


def _delta_report(deltas: Deltas, build: Build, read: Ingested, record: StageRecord | None) -> BuildReport:
    """Publish a delta, if one was written, and report what was changed."""
    manifest = deltas.manifest if record is None else deltas.publish(record)
    seconds = 0.0 if record is None else record.seconds
    return BuildReport(
        generation=manifest.generation,
        changed=record is not None,
        digest=manifest.digest,
        documents=int(manifest.documents["count"]),
        added=read.added,
        removed=read.removed,
        updated=read.updated,
        stages=(StageReport("delta", "ran" if record is not None else "reused", seconds, 0),),
        failures=tuple(read.failures),
        skipped=tuple(read.skipped),
        settings_changed=build.resolved.differences,
        warnings=(),
        seconds=seconds,
        usage=usage_of(build.tables, dict(deltas.manifest.stages), deltas.source, None),
        extraction=None,
    )


class _NeedsWhole(Exception):
    """A change that a delta cannot hold; it undoes what was done in the tables."""
