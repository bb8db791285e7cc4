"""Keep an index up to date with its files: find those that have changed, and index them before a query."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ketrag_fast.base.open_beneath import open_regular
from ketrag_fast.base.progress import stop_after
from ketrag_fast.base.time_limit import in_time
from ketrag_fast.errors import Cancelled, IndexLocked, KetragError, ReadOnly
from ketrag_fast.records import asdict, dataclass, replace
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.slow_update import is_update_slow, mark_slow_update

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings
    from ketrag_fast.building.file_changes import FileChanges
    from ketrag_fast.index.state import IndexState
    from ketrag_fast.storage.generation import Generation
    from ketrag_fast.storage.manifest import Manifest

Refresh = Literal["auto", "always", "never"]
Step = Literal["words", "all"]
"""A step of an update: without computing vectors, or with."""
QUICK: Final = 2.0
"""Maximum predicted seconds of an update that runs before a query is answered."""
LOOK: Final = 3.0
"""Maximum seconds to look up the files before a query: 100,000 take 0.2 s, and a hanging disk never ends."""
_BUSY: Final = 6.0
"""Seconds that a look may take in addition on a machine on which other programs compute."""
COMPARE: Final = 1.0
"""Seconds in which a look before a query compares the contents of touched files, in addition to `LOOK`.

What it learns is stored, so that the next look continues.
"""
READ: Final = 3.0
"""Maximum seconds to read changed files once before an update indexes them: a disk may list its files from
a cache, and hang when one is read. An update in itself could not be stopped then.
"""
_READ_BYTES: Final = 4 << 20
_READ_FILES: Final = 2_000
"""Bytes and files that are read for that: a quick update has at most 3.3 MB of changes. Of a larger one, and
of more files, only the first are read; other numbers were not compared.
"""
HANGS: Final = "takes too long: does a disk or a server not answer?"
_WAIT: Final = 4.0
_WAIT_ALWAYS: Final = 600.0
"""Maximum seconds to wait for another process that has just begun to change the index, and with `always`."""
_POLL: Final = 0.02
LONGEST: Final = 4.0
"""Seconds after which an update before a query is stopped, because its prediction was wrong.

It bounds the wait for an answer when somebody puts a file into the sources that takes long to read. A stopped
update is tried again after `slow_update.PAUSE`, so the wait is rare.
"""
_TOO_SLOW: Final = f"indexing them takes longer than {LONGEST:g} s; --fresh indexes them first"
BEHIND: Final = "a build is indexing changed files now"
_NAMED: Final = 3
"""Files that a message names."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """The differences between the source files and the index.

    Attributes:
        changed, added, removed: Numbers of changed, added and removed files.
        missing: Sources that do not exist now; a disk may not be connected.
        emptied: Sources that have lost most of their files, perhaps for the same reason.
        updated: Whether the changes have been indexed.
        reason: Why changes have not been indexed, or why sources may not be read; None if there is no reason.
        files: Paths of the changed and added files, if they have not been indexed.
        is_pending: Whether the changes can be indexed, or vectors computed, but not before an answer.
        unembedded: The number of passages that are found by their words only, because their vectors are not
            computed yet.

    Examples:
        >>> index.freshen().changes
        0
    """

    changed: int = 0
    added: int = 0
    removed: int = 0
    missing: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    updated: bool = False
    reason: str | None = None
    files: tuple[str, ...] = ()
    is_pending: bool = False
    unembedded: int = 0

    @property
    def changes(self) -> int:
        """The number of files that differ."""
        return self.changed + self.added + self.removed

    @property
    def line(self) -> str | None:
        """The message that commands print; None if the index is up to date."""
        if self.updated and not self.unembedded:
            return None
        if not (self.changes or self.missing or self.reason or self.unembedded):
            return None
        from ketrag_fast.types.wording import counted

        parts = []
        if self.changes and not self.updated:
            named = f" ({first_names(self.files)})" if self.files else ""
            parts.append(f"{counted(self.changes, 'file')} changed since the index was built{named}")
        if self.missing and not self.updated:
            names = ", ".join(self.missing[:_NAMED])
            parts.append(f"{names} cannot be found: its documents stay in the index")
        if self.unembedded:
            passages = counted(self.unembedded, "passage")
            parts.append(f"{passages} without a vector yet, found by words only (`ketrag index` computes it)")
        if self.reason is not None:
            parts.append(self.reason)
        return "; ".join(parts)


def first_names(files: Sequence[str]) -> str:
    """Return the names of the first files, and the number of the others.

    Examples:
        >>> first_names(["/notes/a.md", "/notes/b.md", "/notes/c.md", "/notes/d.md"])
        'a.md, b.md, c.md and 1 more'
    """
    more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
    return ", ".join(Path(path).name for path in files[:_NAMED]) + more


def find(folder: Path, seconds: float = float("inf")) -> tuple[FileChanges | None, Mapping[str, Any]]:
    """Return what has changed in the sources of an index (None: nothing is known), and its settings.

    The contents of touched files are compared in about `seconds`. What is learned of them is stored.
    """
    from ketrag_fast.building.file_changes import READING, find_changes
    from ketrag_fast.storage.source_table import open_sources

    layout = Layout(folder)
    if not layout.tables.is_file():
        return None, {}
    with open_sources(layout.tables) as tables:
        settings = tables.build_settings((*READING, "llm", "embedder"))
        changes = find_changes(tables, settings, compare_seconds=seconds)
        if changes is not None and not tables.is_published():
            from ketrag_fast.storage.lock import is_building

            is_behind = is_building(layout)  # otherwise a build was killed, or has published meanwhile
            changes = replace(changes, is_behind=is_behind, is_published=is_behind or tables.is_published())
    if changes is not None and changes.same:
        from ketrag_fast.building.touched import store_compared

        store_compared(layout, changes.same)
    return changes, settings


def _described(changes: FileChanges) -> Freshness:
    every = changes.sources
    changed = [row.path for one in every for row, _ in one.changed if not row.is_skipped]
    new = [path for one in every for _, path in one.new]
    return Freshness(
        changed=len(changed),
        added=len(new),
        removed=sum(not row.is_skipped for one in every for row in one.gone),
        missing=tuple(one.source.spec for one in every if one.is_missing),
        emptied=tuple(one.source.spec for one in every if one.is_emptied),
        files=(*changed, *new),
        reason=changes.refused,
    )


def freshen_state(state: IndexState, how: Refresh | None, every: float) -> Freshness:
    """Check the sources of an open index, unless that was done less than `every` seconds ago."""
    if state.checked is not None and time.monotonic() - state.checked[0] < every:
        earlier: Freshness = state.checked[1]
        return earlier
    how = how or state.opened.settings.refresh
    stamp = state.stamp
    if state.without_sources == stamp and not state.refresh():
        return Freshness()

    def is_without() -> None:
        state.without_sources = stamp

    found = freshen(state.path, how, state.settings, state.whole, is_without)
    if found.reason != BEHIND:  # files that are stored stay unindexed until they are published
        hangs = found.reason is not None and found.reason.endswith(HANGS)
        state.unindexed = () if found.updated or hangs else found.files
    if found.updated or (
        how != "never" and not found.changes
    ):  # another process may have indexed the changes
        state.refresh()
    if state.allows:  # numbers of files and names of sources are not those of the permitted documents
        found = Freshness(reason=None if found.changes else found.reason)
    state.checked = time.monotonic(), found
    return found


def freshen(
    folder: Path,
    how: Refresh,
    settings: Settings,
    opened: Generation | None = None,
    is_without: Callable[[], object] = lambda: None,
) -> Freshness:
    """Check the sources for changes, and index the changes: always, or only if that is quick.

    The index is not changed if another process is changing it, if it cannot be written, or if a source has
    lost most of its files. If computing vectors is not quick, or sends texts to an endpoint, the words of the
    changes are indexed without. `opened` is the generation of the whole index, if the caller has it open.
    `is_without` is called if the index knows no sources, such as one of documents that a program gave.
    """
    unembedded = 0 if opened is None else opened.manifest.unembedded
    if how == "never":
        return Freshness(unembedded=unembedded)
    looked = _look(folder, how)
    if looked is None:
        return Freshness(reason=f"looking up its files {HANGS}")
    changes, stored = looked
    is_settled = changes is None or (changes.is_published and not changes.is_behind and not changes.refused)
    if not unembedded and is_settled and (changes is None or not changes.has_sources):
        is_without()
    if changes is None:
        return Freshness(unembedded=unembedded)
    found = replace(_described(changes), unembedded=unembedded)
    if changes.is_behind and not found.changes:
        return replace(found, reason=BEHIND, is_pending=True)
    if changes.uncompared:
        found = replace(found, reason=_uncompared(changes.uncompared), is_pending=True)
    if how == "auto" and not _can_read(folder, changes):
        return replace(found, reason=f"reading them {HANGS}")
    is_same = not changes.keys and (not changes.needs_all or changes.uncompared)  # a build compares them all
    if is_same and (not unembedded or changes.uncompared):
        return found
    reason, is_pending, steps = None, False, _steps(opened, folder, how, changes, stored)
    if is_same and not any(step == "all" for step in steps):
        return replace(found, is_pending=True)
    if found.emptied:
        named = ", ".join(found.emptied[:_NAMED])
        reason = f"most files of {named} are gone: is a disk missing? `ketrag index` removes their documents"
    elif how == "auto" and is_update_slow(Layout(folder)) and steps != ("words",):
        reason = _TOO_SLOW
    elif not steps:
        reason, is_pending = "--fresh indexes them first", _is_local(stored)
    if reason is None:
        is_slow = how == "auto" and is_update_slow(Layout(folder))
        update = partial(_update, folder, settings, changes, LONGEST if how == "auto" else None)
        done = _run_steps(update, folder, opened, found, steps)
        if done.reason == _TOO_SLOW and found.changes:
            is_slow, steps = True, _steps(opened, folder, how, changes, stored)
            done = _run_steps(update, folder, opened, found, steps) if steps == ("words",) else done
        if is_slow and done.updated:
            mark_slow_update(Layout(folder))  # publishing the words has ended the pause
        return done
    if reason == _TOO_SLOW:  # a service finishes it behind its answers
        is_pending = _is_local(stored)
    is_pending |= bool(changes.uncompared)
    return replace(found, reason=reason if found.changes else found.reason, is_pending=is_pending)


def _can_read(folder: Path, changes: FileChanges) -> bool:
    """Return whether changed files can be read in time; a file with an error is left to the update."""
    files = [
        (Path(path), one.root)
        for one in changes.sources
        for path in (*(row.path for row, _ in one.changed), *(path for _, path in one.new))
    ]
    return not files or in_time(lambda: _read_starts(files), READ, _BUSY, f"read {folder}") is not None


def _read_starts(files: Sequence[tuple[Path, Path | None]]) -> bool:
    """Read files within the folders of their sources, up to a number of files and bytes."""
    left = _READ_BYTES
    for path, root in files[:_READ_FILES]:
        with suppress(OSError), open_regular(path, root) as file:
            left -= len(file.read(left))
        if left <= 0:
            break
    return True


def _uncompared(count: int) -> str:
    from ketrag_fast.types.wording import counted

    return f"{counted(count, 'file')} with new times must still be compared: the next query continues"


def _look(folder: Path, how: Refresh) -> tuple[FileChanges | None, Mapping[str, Any]] | None:
    """Find the changes, after those that a build has just stored are published; None if it takes too long."""
    from ketrag_fast.storage.lock import read_progress

    end = time.monotonic() + (_WAIT_ALWAYS if how == "always" else _WAIT)
    while True:
        limits = LOOK + COMPARE, _BUSY
        name = f"look {folder}"
        looked = find(folder) if how == "always" else in_time(lambda: find(folder, COMPARE), *limits, name)
        is_behind = looked is not None and looked[0] is not None and looked[0].is_behind
        is_long = how != "always" and is_behind and read_progress(Layout(folder)) is not None
        if not is_behind or is_long or time.monotonic() > end:
            return looked
        time.sleep(_POLL)


_LOCAL_LLMS: Final = (None, "none", "heuristic")
_PER_BYTE: Final = 0.6e-6
_PER_BYTE_EMBEDDED: Final = 30e-6
_PER_FILE: Final = 50e-6
"""Seconds of the processor that a delta takes for a changed byte, without and with an embedding model in this
process, and a comparison of all files for each of them. Measured on 10,000 notes of 0.8 kB; twice or half of
them moves the limit of an update before a query, but changes no answer.
"""
_PASSAGE: Final = 1_000
"""Bytes of a passage without a vector, for the prediction of the time to compute it."""
_DELTA: Final = frozenset(
    ("units", "links", "vectors", "unit_search", "sentence_vectors", "delta", "delta_before")
)
"""The stages that a delta changes; an index with others is computed again as a whole."""


def _steps(
    opened: Generation | None, folder: Path, how: Refresh, changes: FileChanges, settings: Mapping[str, Any]
) -> tuple[Step, ...]:
    """Return the steps of an update, each of which is published; none if an update would not be quick.

    Its seconds are predicted from the bytes that it reads.
    """
    from ketrag_fast.building.file_changes import bytes_of

    is_remote = str(settings.get("embedder")).startswith("openai:")
    if how == "always" and not is_remote:
        return ("all",)
    manifest = _manifest(folder) if opened is None else opened.manifest
    has_model, stages = "embedder" in manifest.models, manifest.stages
    can_wait = has_model and _DELTA.issuperset(stages) and not stages["unit_search"].files
    if how == "always":
        return ("words", "all") if can_wait else ("all",)
    if settings.get("llm") not in _LOCAL_LLMS:
        return ()
    size = bytes_of(changes)
    if not _DELTA.issuperset(stages):
        size += sum(record.bytes for record in stages.values())
    for_all = _PER_FILE * sum(one.files for one in changes.sources) if changes.needs_all else 0.0
    with_vectors = size + manifest.unembedded * _PASSAGE
    may_encode = not is_remote and not (can_wait and is_update_slow(Layout(folder)))
    if may_encode and with_vectors * (_PER_BYTE_EMBEDDED if has_model else _PER_BYTE) + for_all <= QUICK:
        return ("all",)
    return ("words",) if can_wait and size * _PER_BYTE + for_all <= QUICK else ()


def _manifest(folder: Path) -> Manifest:
    from ketrag_fast.storage.generation import open_current

    return open_current(Layout(folder), "sizes").manifest


def _is_local(settings: Mapping[str, Any]) -> bool:
    """Return whether an update sends nothing to an endpoint, which takes time and may cost money."""
    return settings.get("llm") in _LOCAL_LLMS and not str(settings.get("embedder")).startswith("openai:")


def _run_steps(
    update: Callable[[Generation | None, Step], str | None],
    folder: Path,
    opened: Generation | None,
    found: Freshness,
    steps: Sequence[Step],
) -> Freshness:
    """Run the steps of an update until one fails, and return the differences that are left."""
    is_updated, left, reason = False, found.unembedded, None
    for step in steps:
        while True:
            reason = update(opened, step)
            is_updated |= reason is None
            before, left = left, _manifest(folder).unembedded if left or "words" in steps else 0
            if reason is not None or step == "words" or not 0 < left < before:
                break  # else some of the passages have their vectors now, and others may change the index
        if reason is not None:
            break
    if is_updated:
        return replace(found, updated=True, files=(), unembedded=left, reason=reason, is_pending=left > 0)
    is_pending = found.is_pending or left > 0 or reason == _TOO_SLOW
    return replace(found, unembedded=left, reason=reason, is_pending=is_pending)


def _update(
    folder: Path,
    settings: Settings,
    changes: FileChanges,
    limit: float | None,
    opened: Generation | None,
    step: Step,
) -> str | None:
    """Index the changes in at most `limit` seconds. Returns the reason if that fails, else None."""
    from ketrag_fast.base.config import Settings, names
    from ketrag_fast.index.building import build_index
    from ketrag_fast.storage.lock import read_progress

    own = Settings(**{name: value for name, value in settings.given.items() if name in names("run")})
    keys = None if changes.needs_all else changes.keys
    end = time.monotonic() + (_WAIT_ALWAYS if limit is None else _WAIT)
    is_long = limit is not None and read_progress(Layout(folder)) is not None
    try:
        while True:
            try:
                progress = None if limit is None else stop_after(limit)
                options: dict[str, Any] = {"changed": keys, "opened": opened, "words_only": step == "words"}
                build_index((), folder, own, progress=progress, refresh=True, **options)
                return None
            except IndexLocked:  # another process may be indexing the same changes
                if is_long or time.monotonic() > end:
                    return "another process is changing the index"
                time.sleep(_POLL)
    except Cancelled:
        mark_slow_update(Layout(folder))
        return _TOO_SLOW
    except ReadOnly:
        return "the index cannot be written"
    except KetragError as error:
        return f"they could not be indexed: {error.message}"


_WRONG = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
"""Exceptions raised when an altered report lacks an entry or an entry has the wrong type."""


@dataclass(frozen=True, slots=True)
class PastBuild:
    """A build that changed the index, or had failures.

    Attributes:
        started: time in UTC, ISO 8601.
        seconds: duration of the build.
        generation: the current generation after the build.
        documents, added, updated, removed: the number of documents after the build, and of changed documents.
        ran, reused: names of the stages that ran, and of the stages whose results were reused.
        calls, tokens_in, tokens_out: number of LLM calls and their tokens.
        failures: documents and chunks that could not be read.
        settings: names of the settings that had changed.
    """

    started: str
    seconds: float
    generation: int
    documents: int
    added: int
    updated: int
    removed: int
    ran: tuple[str, ...]
    reused: tuple[str, ...]
    calls: int
    tokens_in: int
    tokens_out: int
    failures: int
    settings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the entry of `GET /v1/builds`."""
        return asdict(self)


def past_builds(folder: Path, most: int) -> list[PastBuild]:
    """Return at most `most` builds, newest first. Altered rows are skipped."""
    from ketrag_fast.storage import read_only  # imported here because few queries look at past builds

    found = []
    for started, seconds, generation, report in read_only.runs(Layout(folder), most):
        try:
            found.append(_past_build(started, seconds, generation, json.loads(report)))
        except _WRONG:
            continue
    return found


def _past_build(started: str, seconds: float, generation: int, report: Any) -> PastBuild:
    documents, usage = report["documents"], report["usage"]
    stages = [(str(stage["name"]), stage["how"]) for stage in report["stages"]]
    return PastBuild(
        started=started,
        seconds=seconds,
        generation=generation,
        documents=int(documents["total"]),
        added=int(documents["added"]),
        updated=int(documents["updated"]),
        removed=int(documents["removed"]),
        ran=tuple(name for name, how in stages if how != "reused"),
        reused=tuple(name for name, how in stages if how == "reused"),
        calls=int(usage["calls"]),
        tokens_in=int(usage["tokens_in"]),
        tokens_out=int(usage["tokens_out"]),
        failures=int(report["failures"]),
        settings=tuple(str(row["name"]) for row in report["settings_changed"]),
    )
