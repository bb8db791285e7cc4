"""Detects files that have changed since they were indexed, by size and modification time."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ketrag_fast import _core
from ketrag_fast.errors import IndexLocked, KetragError, ReadOnly
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_files import SourceStamps, base_of, path_hash, read_stamps
from ketrag_fast.storage.source_trust import source_trust

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings
    from ketrag_fast.index.state import IndexState

Refresh = Literal["auto", "always", "never"]
QUICK: Final = 0.3
"""Maximum seconds of an update that runs before a query is answered."""
_LOOKED: Final = 5
"""Number of recent builds from which the duration of the next build is predicted."""
_LOCAL_LLMS: Final = (None, "none", "heuristic")


@dataclass(frozen=True, slots=True)
class Freshness:
    """The differences between the source files and the index.

    Attributes:
        changed, added, removed: Numbers of changed, added and removed files.
        missing: Sources that do not exist now; a disk may not be connected.
        emptied: Sources that have lost most of their files, perhaps for the same reason.
        updated: Whether the changes have been indexed.
        reason: Why changes have not been indexed, or why sources may not be read; None if there is no reason.

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

    @property
    def changes(self) -> int:
        """The number of files that differ."""
        return self.changed + self.added + self.removed

    @property
    def line(self) -> str | None:
        """The message that commands print; None if the index is up to date."""
        if self.updated or not (self.changes or self.missing or self.reason):
            return None
        parts = []
        if self.changes:
            from ketrag_fast.types.wording import counted

            parts.append(f"{counted(self.changes, 'file')} changed since the index was built")
        if self.missing:
            names = ", ".join(self.missing[:3])
            parts.append(f"{names} cannot be found: its documents stay in the index")
        if self.reason is not None:
            parts.append(self.reason)
        return "; ".join(parts)


def check(folder: Path) -> Freshness:
    """Compare the files of the sources with what was indexed. Unknown sources count as unchanged.

    Sources that the user has neither named nor confirmed are not looked at, and `reason` reports it.
    """
    stored = read_stamps(Layout(folder))
    if stored is None:
        return Freshness()
    trust = source_trust(Layout(folder))
    reason = trust.why_not(spec for spec, *_ in stored.sources)
    if not trust.confirmed:
        return Freshness(reason=reason)
    now = _core.file_stamps(stored.paths)
    known = stored.stamps
    is_other = (now != known).any(axis=1)
    missing: list[str] = []
    emptied: list[str] = []
    changed = added = removed = at = 0
    unpacked: list[SourceStamps] | None = None
    for number, (spec, folders, files, _, is_complete) in enumerate(stored.sources):
        own = slice(at + folders, at + folders + files)
        listed = slice(at, at + folders)
        at += folders + files
        if not trust.allows(spec):
            continue
        if not base_of(spec).exists():
            missing.append(spec)
            continue
        gone = now[own, 0] < 0
        lost = int(gone.sum())
        removed += lost
        if lost > 1 and 2 * lost > files:
            emptied.append(spec)
        changed += int((is_other[own] & ~gone).sum())
        if is_other[listed].any() or not is_complete:
            unpacked = stored.unpacked() if unpacked is None else unpacked
            added += _count_new(unpacked[number], folder)
    return Freshness(changed, added, removed, tuple(missing), tuple(emptied), reason=reason)


def _count_new(source: SourceStamps, folder: Path) -> int:
    """Return the number of files that were added to a source since it was read."""
    from ketrag_fast.building.sources import find_files
    from ketrag_fast.errors import DocumentError

    try:
        files = find_files(source.spec, _build_settings(folder)).files
    except (OSError, DocumentError):
        return 0
    paths = (str(path) for _, path in files)
    return sum(path not in source.files and path_hash(path) not in source.others for path in paths)


def _build_settings(folder: Path) -> Settings:
    """Return the settings with which the sources were read."""
    from ketrag_fast.base.config import Settings, names
    from ketrag_fast.storage.generation import open_current

    stored = open_current(Layout(folder), "sizes").manifest.settings
    used = names("build")
    return Settings(**{name: value for name, value in stored.items() if name in used})


def freshen_state(state: IndexState, how: Refresh | None, every: float) -> Freshness:
    """Check the sources of an open index, unless that was done less than `every` seconds ago."""
    if state.checked is not None and time.monotonic() - state.checked[0] < every:
        earlier: Freshness = state.checked[1]
        return earlier
    found = freshen(state.path, how or state.opened.settings.refresh, state.settings)
    if found.updated:
        state.refresh()
    state.checked = time.monotonic(), found
    return found


def freshen(folder: Path, how: Refresh, settings: Settings) -> Freshness:
    """Check the sources for changes, and index the changes: always, or only if that is quick.

    The index is not changed if another process is changing it, if it cannot be written, or if a source has
    lost most of its files.
    """
    if how == "never":
        return Freshness()
    found = check(folder)
    if not found.changes:
        return found
    reason = None
    if found.emptied:
        named = ", ".join(found.emptied[:3])
        reason = f"most files of {named} are gone: is a disk missing? `ketrag index` removes their documents"
    elif how == "auto":
        seconds = _predicted_seconds(folder, found.changes)
        reason = None if seconds is not None and seconds <= QUICK else "--fresh indexes them first"
    if reason is None:
        reason = _update(folder, settings)
    return replace(found, updated=reason is None, reason=reason)


def _predicted_seconds(folder: Path, changes: int) -> float | None:
    """Predict the seconds of an update from earlier builds; None if the update calls a model."""

    settings = _build_settings(folder)
    if settings.llm not in _LOCAL_LLMS or settings.embedder.startswith("openai:"):
        return None
    times = []
    for build in past_builds(folder, _LOOKED):
        size = build.added + build.updated + build.removed
        if size:
            times.append(build.seconds * max(1.0, changes / size))
    return min(times, default=None)


def _update(folder: Path, settings: Settings) -> str | None:
    """Index the changes. Returns the reason if that fails, else None."""
    from ketrag_fast.base.config import Settings, names
    from ketrag_fast.index.building import build_index

    own = Settings(**{name: value for name, value in settings.given.items() if name in names("run")})
    try:
        build_index((), folder, own, replace=False, progress=None, examples=None, quick=True)
    except IndexLocked:
        return "another process is changing the index"
    except ReadOnly:
        return "the index cannot be written"
    except KetragError as error:
        return f"they could not be indexed: {error.message}"
    return None


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
