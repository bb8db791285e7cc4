"""Merging indexes into one that is equal to a build over all their documents.

Their tables are copied into one file, which is renamed when it is complete; then the usual stages run over
it. No source is read, stored vectors are reused, and no language model is called. If the merge is stopped or
killed, the same call resumes it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.config import Settings, build_settings, names, resolve
from ketrag_fast.base.config.settings import Shards
from ketrag_fast.base.progress import Callback, Limited, Meter
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.building.ingest import as_they_are
from ketrag_fast.building.merge_parts import (
    MergePart,
    MergePlan,
    Prefer,
    first_of,
    open_part,
    plan_of,
    require_alike,
    shards_together,
)
from ketrag_fast.building.model_settings import ReadingPlan
from ketrag_fast.building.reports import remember
from ketrag_fast.building.stages import Build
from ketrag_fast.errors import (
    BackendError,
    Cancelled,
    ConfigError,
    IndexDamaged,
    ModelMismatch,
    NetworkForbidden,
    ReadOnly,
)
from ketrag_fast.models.endpoint_trust import Trust, endpoints_of
from ketrag_fast.models.llms.registry import HEURISTIC, NONE
from ketrag_fast.records import replace
from ketrag_fast.storage.copy_tables import new_tables
from ketrag_fast.storage.durable import json_bytes, replace_file, sync_folder
from ketrag_fast.storage.generation import (
    Generation,
    finish_publication,
    newest_whole,
    open_generation,
)
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.storage.lock import builder_lock
from ketrag_fast.storage.source_table import SourceRow
from ketrag_fast.storage.source_trust import note_sources, source_trust
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.index_settings import spec_here
from ketrag_fast.systems.planning import Planner
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.stage import Stage
from ketrag_fast.types import BuildReport

_FOLDER: Final = ("keep_generations",)


def merge(
    paths: Sequence[Path],
    out: Path,
    stages: Sequence[Stage] | Planner,
    settings: Settings,
    *,
    prefer: Prefer | None = None,
    progress: Callback | None = None,
) -> BuildReport:
    """Merge the indexes at `paths` into a new index at `out`.

    Args:
        settings: run settings count, and `embedder` if the model has moved; the rest comes from the parts.
        prefer: which part's document to keep when parts hold different documents under one id.

    Raises:
        IndexMissing, IndexDamaged, IndexIncompatible: a part cannot be used.
        ConfigError, ModelMismatch, DocumentError: the parts cannot be merged.
        ReadOnly: `out` exists. Also raises what a build raises.
    """
    start = time.monotonic()
    _require_distinct(paths)
    if prefer not in (None, "first", "last"):
        raise ConfigError(f"prefer must be 'first' or 'last', got {prefer!r}")
    target = Layout(out)
    with ExitStack() as stack:
        for path in paths:
            layout = Layout(path)
            if layout.exists() and os.access(path, os.W_OK):
                stack.enter_context(builder_lock(layout))
        parts = [open_part(path) for path in paths]
        require_alike(parts)
        shards = shards_together(parts)
        record = _record(parts, prefer)
        _require_free(target, record)
        plan = plan_of(parts, prefer, shards)
        parts = [replace(part, known={}) for part in parts]  # these fill more memory than anything after them
        sources, away = _locate_sources(plan.sources)
        chosen = _settings(parts, settings, shards)
        target.create()
        stack.enter_context(builder_lock(target))
        callback = Limited(progress, chosen.limit_seconds, start)
        with writing(target.root):
            replace_file(target.work / MERGE, record)
        is_fresh = not target.tables.exists()
        if is_fresh:
            _copy_tables(target, parts, replace(plan, sources=sources), callback)
        trust = _trust(target, parts, settings)
        warnings = _warn_of_shards(shards) + _warn_of_sources(away, plan) + trust.keep(chosen)
        confirmed = [spec for part in parts for spec in _confirmed(part)]
        warnings += note_sources(target, [*confirmed, *trust.readable(chosen.given)])
        with Tables(target.tables) as tables:
            tables.texts.read_also([part.layout for part in parts])
            with tables.transaction():
                tables.set_settings(build_settings(chosen))
            if is_fresh:
                tables.set_verified()
            work = Build(
                layout=target,
                tables=tables,
                resolved=resolve(flags=chosen.given, presets=registry().table),
                base=newest_whole(target),
                stages=stages,
                reads=_reading_plan(parts[0], chosen),
                trust=trust,
                callback=callback,
                start=start,
                parts=_open_parts(parts),
            )
            if work.base is not None:
                finish_publication(target, work.base)
            with work.opened():
                _require_model(parts[0], work)
                read = as_they_are(tables)
                read.added = read.documents
                read.failures += tables.failures()
                read.warnings += warnings
                report = work.run(read)
            remember(tables, report)
        return report


def _trust(target: Layout, parts: Sequence[MergePart], given: Settings) -> Trust:
    """Return the trust of the merged index: endpoints given by the user, or confirmed for a part."""
    trust = Trust.of(target, given)
    known = [
        endpoint.address
        for part in parts
        for endpoint in endpoints_of(part.settings, Trust.of(part.layout, given))
        if endpoint.trusted
    ]
    files = [path for part in parts for path in Trust.of(part.layout, given).readable(part.settings)]
    return replace(trust, named=trust.named.union(known), files=trust.files.union(files))


def _confirmed(part: MergePart) -> list[str]:
    """Return the sources of a part that may be read again."""
    trust = source_trust(part.layout)
    return [row.spec for row in part.sources if trust.allows(row.spec)]


def _require_distinct(paths: Sequence[Path]) -> None:
    if not paths:
        raise ConfigError("no index given", hint="ketrag merge DIR DIR ... -i OUT")
    seen = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            raise ConfigError(f"{path} is given twice", hint="give each index once")
        seen.add(real)


def _record(parts: Sequence[MergePart], prefer: Prefer | None) -> bytes:
    marks = [part.mark() for part in parts]
    return json_bytes({"parts": marks if prefer else sorted(marks), "prefer": prefer})


def _require_free(target: Layout, record: bytes) -> None:
    """Raise ReadOnly unless the folder is missing or empty, or holds this merge, unfinished."""
    root = target.root
    if not root.exists() or (root.is_dir() and not any(root.iterdir())):
        return
    unfinished = target.work / MERGE
    if not unfinished.is_file() and not _has_only_begun(target):
        raise ReadOnly(f"{root} already exists", hint="choose a new or empty folder with -i/--index")
    if unfinished.is_file() and read_regular(unfinished) != record:
        raise ReadOnly(
            f"{root} holds an unfinished merge of other indexes",
            hint="give the same, unchanged indexes to resume it; or remove the folder",
        )


def _has_only_begun(target: Layout) -> bool:
    """Return whether a merge was killed before it had recorded its parts."""
    if target.exists() or not target.root.is_dir() or not target.work.is_dir():
        return False
    left = {path.name for path in target.work.iterdir()}
    return left <= {f"{MERGE}.tmp"} and all(target.is_own(path.name) for path in target.root.iterdir())


def _locate_sources(sources: Sequence[SourceRow]) -> tuple[tuple[SourceRow, ...], tuple[SourceRow, ...]]:
    """Return the sources, with those missing on this machine as given documents; and the missing ones."""
    from ketrag_fast.readers import find, is_glob

    def exists_here(spec: str) -> bool:
        try:
            return Path(spec).exists() or (is_glob(spec) and bool(find(spec).files))
        except (OSError, ValueError):
            return False

    away = tuple(row for row in sources if row.spec and not exists_here(row.spec))
    return tuple(replace(row, kind="documents") if row in away else row for row in sources), away


def _warn_of_sources(away: Sequence[SourceRow], plan: MergePlan) -> list[str]:
    counts = Counter(source for places in plan.places for _, source, _ in places) if away else Counter()
    return [
        f"the source {row.spec} is not on this machine: its {counts[row.number]:,} documents are "
        "kept; when it is available, `ketrag index` with it reads it again"
        for row in away
    ]


def _warn_of_shards(shards: Shards | None) -> list[str]:
    if shards is None:
        return []
    lacking = first_of([f"{number}/{shards.of}" for number in shards.lacking])
    return [f"the index is incomplete: shard {lacking} is missing"]


def _settings(parts: Sequence[MergePart], given: Settings, shards: Shards | None) -> Settings:
    """Return the settings of the parts, with the location of the embedding model on this machine."""
    stored = {**parts[0].settings, "shard": None if shards is None else shards.text()}
    about = {name: value for name, value in given.given.items() if name in (*names("run"), *_FOLDER)}
    stored["embedder"] = given.given.get("embedder") or _find_model(parts, given)
    return resolve(flags=about, index=stored, presets=registry().table).settings


def _find_model(parts: Sequence[MergePart], given: Settings) -> str:
    """Return the first of the parts' specs that gives their model on this machine."""
    from ketrag_fast.models.embedders.registry import fingerprint, options_of

    stored = parts[0].manifest.models.get("embedder")
    named = [str(part.settings["embedder"]) for part in parts]
    if not stored:
        return named[0]
    here = [spec_here(spec, part.layout) for spec, part in zip(named, parts, strict=True)]
    specs = list(dict.fromkeys((*named, *here)))
    for spec in specs:
        try:
            if fingerprint(spec, options_of(given)) == stored["fingerprint"]:
                return spec
        except (BackendError, NetworkForbidden):
            continue
    raise ModelMismatch(
        f"the model of these indexes, {specs[0]}, is not on this machine, or is a different model here",
        hint="give its location: --embedder local:FOLDER",
    )


def _copy_tables(target: Layout, parts: Sequence[MergePart], plan: MergePlan, callback: Callback) -> None:
    """Write the merged tables to a temporary file, and rename it when it is complete."""
    meter = Meter("copy", callback, "documents")
    aside, done = target.work / "merging.sqlite", 0
    paths = [part.layout.tables for part in parts]
    with new_tables(aside) as tables:
        tables.add_sources(plan.sources)
        tables.add_readers(paths)
        for path, places in zip(paths, plan.places, strict=True):
            tables.copy(path, places)
            done += len(places)
            if meter(done) is False:
                raise Cancelled("stopped while copying the indexes", hint="the same command starts over")
        tables.add_removed(paths)
        tables.add_failures(paths)
    with writing(target.root):
        aside.replace(target.tables)
        sync_folder(target.root)
    meter.finish()


def _reading_plan(part: MergePart, settings: Settings) -> ReadingPlan:
    """Return the plan by which the reader of a part is used again."""
    if settings.llm == NONE:
        return ReadingPlan()
    return ReadingPlan(settings.llm == HEURISTIC, part.manifest.models.get("llm", {}).get("reader"))


def _open_parts(parts: Sequence[MergePart]) -> list[Generation]:
    """Open the generations of all parts, as builders do; none if one is damaged."""
    try:
        folders = [part.layout.generation(part.manifest.generation) for part in parts]
        return [open_generation(folder, "sizes") for folder in folders]
    except IndexDamaged:
        return []


def _require_model(part: MergePart, work: Build) -> None:
    stored: dict[str, Any] | None = part.manifest.models.get("embedder")
    found = None if work.source is None else work.source.fingerprint
    if found != (stored["fingerprint"] if stored else None):
        spec = stored["spec"] if stored else part.settings["embedder"]
        raise ModelMismatch(
            f"the indexes were built with {spec}, and {work.settings.embedder} is a different model",
            hint="omit --embedder, or give the location of the same model",
        )
