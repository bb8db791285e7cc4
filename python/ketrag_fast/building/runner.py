"""A build: store the settings, read the sources, run the stages, publish a generation.

If a build is killed, the published generation is unchanged, and the next build continues.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ketrag_fast.base.config import Resolved, Settings
from ketrag_fast.base.progress import Callback, Limited, Meter
from ketrag_fast.building.async_writer import sound
from ketrag_fast.building.file_changes import RowKey, find_changes
from ketrag_fast.building.ingest import Beginning, Change, Ingested, apply_change, begin_change
from ketrag_fast.building.model_settings import (
    ReadingPlan,
    plan_reading,
    require_same_model,
    require_some_mode,
    settings_for,
)
from ketrag_fast.building.reports import remember
from ketrag_fast.building.single_files import can_change_single_files
from ketrag_fast.building.source_comparison import is_staying
from ketrag_fast.building.sources import Others, Sources, absolute, list_given
from ketrag_fast.building.stages import Build
from ketrag_fast.errors import Cancelled, KetragError, StorageFailed
from ketrag_fast.models.endpoint_trust import Trust
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage.durable import discard_contents, discard_folder, sync_folder
from ketrag_fast.storage.generation import (
    Generation,
    current_number,
    discard,
    finish_publication,
    is_newest,
    never_finished,
    newest_whole,
    prune,
)
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.storage.lock import builder_lock, drop_old
from ketrag_fast.storage.published_texts import UNITS
from ketrag_fast.storage.source_trust import note_sources
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.index_settings import begun_settings
from ketrag_fast.systems.planning import Planner, published_stages
from ketrag_fast.systems.spec.stage import Ahead, Stage
from ketrag_fast.types import BuildReport, Document

if TYPE_CHECKING:
    from ketrag_fast.base.filters import Condition

_PURGE_AGAIN: Final = "close all readers of the index and run `ketrag remove --purge` again"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Options of a build in addition to its sources and settings.

    Attributes:
        others: How sources that the build does not name are treated: read, left unchanged or dropped.
        rebuild: Run every stage again; allows a different embedder or different units.
        partial: Call no language model, and publish the replies so far.
        remove: Ids, or patterns of ids, of documents to remove.
        purge: Delete everything stored of removed documents from every file.
        where: Documents whose metadata meets this condition are removed too.
        trust: The endpoints that may receive text; by default those in the settings, which are then confirmed
            for this index.
        fold: Write all arrays, and no delta.
        opened: The generation that the caller has open; a small change uses its files if it is the newest.
        refresh: Only index what has changed: fold no delta, and run no stage if no document has changed.
        changed: The known files that may have changed, if the caller has looked; else all are looked up.
        thorough: Compare the contents of all files, and not only of those whose size or times differ.
        vectors_of: A generation of another index whose vectors of the same texts are reused.
        words_only: Do not use the embedding model; new texts get placeholders until another build.
    """

    others: Others = "read"
    rebuild: bool = False
    partial: bool = False
    remove: Sequence[str] = ()
    purge: bool = False
    where: Condition | None = None
    trust: Trust | None = None
    fold: bool = False
    opened: Generation | None = None
    refresh: bool = False
    changed: Sequence[RowKey] | None = None
    thorough: bool = False
    vectors_of: Generation | None = None
    words_only: bool = False

    @property
    def may_be_delta(self) -> bool:
        """Whether a small change may be stored as a delta."""
        return not (self.rebuild or self.partial or self.purge or self.fold)


def build(
    path: str | os.PathLike[str],
    sources: Sources,
    stages: Sequence[Stage] | Planner,
    settings: Settings | None = None,
    options: BuildOptions = BuildOptions(),  # noqa: B008 - it is frozen
    progress: Callback | None = None,
) -> BuildReport:
    """Build the index at `path`, or update it from its sources.

    Args:
        path: Folder of the index.
        sources: Paths, globs or documents to read and register.
        stages: The stages to run, or a function that plans them (`planning.stages_for`).
        settings: Given values take precedence over stored ones, these over the preset, that over defaults.
        options: Optional parts of the build, such as a recording of replies.
        progress: Called with each event; returning False stops the build.

    Raises:
        Cancelled: (or KeyboardInterrupt) the build was stopped; the next call resumes after the last
            finished stage and the last reply.
    """
    start = time.monotonic()
    listed = list_given(sources)
    given = settings or Settings()
    layout = Layout(Path(path))
    with hold_folder(layout):
        is_open = options.opened is not None and is_newest(layout, options.opened)
        base = _finish_published(layout, options.opened if is_open else newest_whole(layout), options.rebuild)
        is_current = base is not None and base.number == current_number(layout)
        resolved, reads = _plan_settings(given, base, layout, options)
        if base is None or published_stages(base.manifest, resolved.settings) is None:
            require_some_mode(resolved.settings)
        own = Trust.of(layout, given)
        noted = own.keep(resolved.settings) if options.trust is None else []
        with Tables(layout.tables) as tables:
            work = Build(
                layout=layout,
                tables=tables,
                resolved=resolved,
                base=base,
                stages=stages,
                reads=reads,
                trust=options.trust or own,
                callback=Limited(progress, resolved.settings.limit_seconds, start),
                start=start,
                vectors_of=None if options.vectors_of is None else (options.vectors_of,),
                words_only=options.words_only,
                is_refresh=options.refresh,
            )
            wanted = Change(
                *(listed, options.others, options.remove, options.where, options.purge, options.thorough)
            )
            named = [absolute(os.fspath(one)) for one in listed if not isinstance(one, Document)]
            files = own.readable(resolved.settings.given) if options.trust is None else []
            noted += note_sources(layout, [*named, *files], only=bool(named) and options.others == "drop")
            beginning = begin_change(tables, wanted, resolved.settings)
            beginning = _with_file_changes(work, beginning, options)
            deltas = None
            if is_current and options.may_be_delta:
                from ketrag_fast.building.delta import start_deltas

                deltas = start_deltas(work, 0) if options.refresh else start_deltas(work)
            small = None if deltas is None else deltas.change_documents(beginning.change)
            if small is not None:
                return _finish_delta(work, small, noted)
            with working_ahead(layout, tables, stages, resolved.settings) as work.ahead:
                read = _read_sources(work, beginning, options.rebuild, has_deltas=deltas is not None)
                read.warnings += noted
                base = work.base
                is_same = base is not None and base.manifest.documents["fingerprint"] == read.fingerprint
                is_whole = options.words_only or base is None or not base.manifest.unembedded
                if options.refresh and base is not None and is_same and is_whole:
                    seconds, warnings = time.monotonic() - start, tuple(read.warnings)
                    report = read.report(base.manifest, changed=False, warnings=warnings, seconds=seconds)
                    remember(tables, report)
                    return report
                small = None if deltas is None else deltas.publish_difference(read)
                if small is not None:
                    return _finish_delta(work, small, read.warnings)
                if is_open:
                    work.base = newest_whole(layout)  # without checksums: the stages verify what they use
                report = _run_stages(work, read, options)
            remember(tables, report)
        if options.purge:
            purge(layout, work.used_vectors, work.used_replies)
        _drop_old(work)
    return report


def _with_file_changes(work: Build, beginning: Beginning, options: BuildOptions) -> Beginning:
    """Add the changed files to a change that reads all sources, if no others need to be looked at."""
    change, settings, tables = beginning.change, work.settings, work.tables
    if options.rebuild or beginning.registered or change.others != "read":
        return beginning
    if change.remove or change.where or change.purge or change.thorough:
        return beginning
    specs = {row.spec for row in tables.sources() if row.kind == "path"}
    given = list_given(change.sources)
    if not all(not isinstance(one, Document) and absolute(os.fspath(one)) in specs for one in given):
        return beginning
    if not can_change_single_files(tables, settings, beginning.earlier):
        return beginning
    changes = find_changes(tables, beginning.earlier, options.changed)
    if changes is None or changes.needs_all:
        return beginning
    if not options.refresh and (changes.refused or any(one.is_missing for one in changes.sources)):
        return beginning  # what is missing is reported, and removed if it was a file
    if tables.has_failure("source"):
        return beginning  # a source that was missing or could not be read may be there again
    if any(one.folders for one in changes.sources) and any(map(is_staying, tables.failures())):
        return beginning  # a folder that could not be read may be readable now
    return replace(beginning, change=replace(change, changes=changes))


def _run_stages(work: Build, read: Ingested, options: BuildOptions) -> BuildReport:
    """Run the stages and publish. A purge runs all, and records which vectors and replies they use."""
    with work.opened():
        require_same_model(work.base, work.source, options.rebuild)
        if options.rebuild or options.purge:
            work.rerun = frozenset(stage.name for stage in work.planned)
        if not options.purge:
            read.warnings += _pending_purge(work.tables)
        else:
            if work.source is not None:
                work.source.cache.used = work.used_vectors
            if work.reading is not None:
                work.reading.journal.used = work.used_replies
        return work.run(read)


def _plan_settings(
    given: Settings, base: Generation | None, layout: Layout, options: BuildOptions
) -> tuple[Resolved, ReadingPlan]:
    """Return the settings of a build, with those of an unfinished first build, and the reading plan."""
    begun = begun_settings(layout) if base is None else None
    planned, reads = plan_reading(
        given, base, layout, rebuild=options.rebuild, partial=options.partial, begun=begun
    )
    return settings_for(base, planned, options.rebuild, begun), reads


def _finish_published(layout: Layout, base: Generation | None, rebuild: bool) -> Generation | None:
    """Return the newest whole generation, which is current then.

    Raises IndexMissing for an unfinished merge, whose texts are still in its parts.
    """
    if base is not None:
        finish_publication(layout, base)
    elif not rebuild and (layout.work / MERGE).is_file():
        raise never_finished(layout)
    return base


def _drop_old(work: Build) -> None:
    """Remove older generations, and outdated indexes of the documents that callers may see."""
    settings = work.settings
    prune(work.layout, settings.keep_generations)
    drop_old(work.layout)


def _read_sources(work: Build, beginning: Beginning, rebuild: bool, *, has_deltas: bool) -> Ingested:
    """Apply the change of a build. Raises Cancelled if the caller has stopped it."""
    tables, settings = work.tables, work.settings
    change = beginning.change
    is_small = change.changes is not None and has_deltas  # a delta reads no other texts
    again = rebuild or not (is_small or tables.texts.all_here() or _has_texts(work.base, tables, settings))
    meter = Meter("read", work.callback, "documents")
    read = apply_change(
        *(tables, replace(change, changes=None) if again else change, settings, meter),
        rebuild=again,
        ahead=tuple(work.ahead.values()),
        beginning=beginning,
    )
    if meter.finish() is False:
        raise Cancelled("stopped after reading the sources")
    return read


def _finish_delta(work: Build, report: BuildReport, noted: Sequence[str]) -> BuildReport:
    """Add a change by a delta to the history, and remove what is old."""
    messages = (*noted, *_pending_purge(work.tables))
    report = replace(report, warnings=messages, seconds=time.monotonic() - work.start)
    remember(work.tables, report)
    discard_contents(work.layout.work)
    _drop_old(work)
    return report


def _has_texts(base: Generation | None, tables: Tables, settings: Settings) -> bool:
    """Return whether the texts that the tables lack are published and undamaged."""
    record = base.manifest.stages.get(UNITS) if base is not None else None
    if base is None or record is None:
        return False
    is_sound = sound(base.folder / UNITS, record, full=settings.verify != "sizes")
    return is_sound and tables.texts.are_in(base.stages[UNITS]["document_hashes"])


@contextmanager
def working_ahead(
    layout: Layout, tables: Tables, stages: Sequence[Stage] | Planner, settings: Settings
) -> Iterator[Mapping[str, Ahead]]:
    """Begin stages of a new index that can read documents before all are stored; yield them by name."""
    begun: dict[str, Ahead] = {}
    with ExitStack() as exits:
        if not tables.count():
            for stage in _plan_stages(stages, settings):
                started = stage.begin(settings, layout.work)
                if started is not None:
                    begun[stage.name] = started
                    exits.callback(started.close)
        yield begun


def _plan_stages(stages: Sequence[Stage] | Planner, settings: Settings) -> Sequence[Stage]:
    with suppress(KetragError):  # the build itself reports it
        return stages(settings, False) if callable(stages) else stages
    return ()


@contextmanager
def hold_folder(layout: Layout) -> Iterator[None]:
    """Create the folder of an index if it is missing, and hold it for building.

    A new index whose build fails before it has stored a document or a source is removed, so that a mistake in
    the command (a wrong path, a folder in which everything is ignored) leaves the disk as it was. A build
    that was stopped or killed keeps its folder, because the next one continues it.
    """
    is_new = not layout.exists()
    missing = [path for path in (layout.root, *layout.root.parents) if not os.path.lexists(path)]
    is_removed = False
    layout.create()
    try:
        with builder_lock(layout):
            try:
                yield
            except Cancelled:
                raise
            except Exception:
                is_removed = is_new and _is_empty(layout)
                if is_removed:
                    _remove_files(layout)
                raise
    finally:
        if is_removed:
            _remove_folders(layout, missing)


def _is_empty(layout: Layout) -> bool:
    """Return whether nothing was published or stored in an index."""
    if layout.generations():
        return False
    if not layout.tables.is_file():
        return True
    try:
        with Tables(layout.tables) as tables:
            return not tables.sources() and tables.count() == 0
    except (KetragError, OSError):
        return False


def _remove_files(layout: Layout) -> None:
    """Remove what a build creates before it reads. A process waiting for the lock finds it free or gone."""
    with suppress(OSError):
        discard_folder(layout.work)
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            layout.tables.with_name(layout.tables.name + suffix).unlink(missing_ok=True)
    for path in (layout.identity, layout.lock, layout.gitignore):
        with suppress(OSError):  # Windows removes no open file
            path.unlink(missing_ok=True)


def _remove_folders(layout: Layout, missing: list[Path]) -> None:
    """Remove the folders that the build created, if they are empty."""
    if os.name == "nt":
        with suppress(OSError):
            layout.lock.unlink(missing_ok=True)
    for path in missing:
        with suppress(OSError):
            path.rmdir()


def purge(layout: Layout, vectors: set[tuple[int, str, bytes]], replies: set[bytes]) -> None:
    """Delete all vectors and replies but those that a build used, and compact the tables.

    Also deletes reports of earlier builds, sources that name a purged document, older generations, and
    allowed indexes. The caller must hold the builder's lock.
    Processes that have an older generation open keep its files until they close it.

    Raises:
        StorageFailed: a file still holds purged data, because it could not be removed or is being read. The
            purge stays pending, and another one completes it.
    """
    discard_folder(layout.allowed)
    with Tables(layout.tables) as tables:
        is_erased = tables.purge(vectors, replies)
    current = current_number(layout)
    for number in layout.generations():
        if number != current:
            discard(layout, number)
    left = [layout.generation(number) for number in layout.generations() if number != current]
    left += layout.work.iterdir()
    if layout.allowed.is_dir():
        left += [one for one in layout.allowed.iterdir() if not one.name.startswith(f"{current or 0:06}-")]
    if left:
        what = f"{left[0]} could not be removed and still holds purged data"
        raise StorageFailed(what, hint=_PURGE_AGAIN)
    if not is_erased:
        what = f"{layout.tables} is being read and still holds purged data"
        raise StorageFailed(what, hint=_PURGE_AGAIN)
    with writing(layout.root):
        for folder in (layout.work, layout.root):
            sync_folder(folder)  # so that no deleted file reappears after a power cut
    with Tables(layout.tables) as tables, tables.transaction():
        tables.set_pending_purge(None)


def _pending_purge(tables: Tables) -> list[str]:
    """Return a warning if a purge was not completed."""
    if tables.pending_purge() is None:
        return []
    return ["an earlier purge was not completed: run `ketrag remove --purge`"]
