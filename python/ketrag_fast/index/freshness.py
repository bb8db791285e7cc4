"""Whether the files of an index have changed since they were read, by their sizes and times."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ketrag_fast import _core
from ketrag_fast.errors import IndexLocked, KetragError, ReadOnly
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.origins import base_of
from ketrag_fast.storage.source_stamps import (
    SourceStamps,
    path_hash,
    read_stamps,
)
from ketrag_fast.types.wording import counted

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings

Refresh = Literal["auto", "always", "never"]
QUICK: Final = 0.3
"""Seconds that an update may take before a query is answered."""
_LOOKED: Final = 5
"""Builds by which the time of the next one is predicted."""
_LOCAL_LLMS: Final = (None, "none", "heuristic")


@dataclass(frozen=True, slots=True)
class Freshness:
    """How the files of an index differ from what was indexed.

    Attributes:
        changed, added, removed: Numbers of files.
        missing: Sources that do not exist now: a disk may not be connected.
        updated: Whether the changes are in the index now.
        reason: Why they are not, in words; None if they are, or if there are none.

    Examples:
        >>> index.freshen().changes
        0
    """

    changed: int = 0
    added: int = 0
    removed: int = 0
    missing: tuple[str, ...] = ()
    updated: bool = False
    reason: str | None = None

    @property
    def changes(self) -> int:
        """The number of files that differ."""
        return self.changed + self.added + self.removed

    @property
    def line(self) -> str | None:
        """The line that commands print; None if the index is fresh."""
        if self.updated or (not self.changes and not self.missing):
            return None
        parts = []
        if self.changes:
            parts.append(f"{counted(self.changes, 'file')} changed since the index was built")
        if self.missing:
            names = ", ".join(self.missing[:3])
            parts.append(f"{names} cannot be found: its documents stay in the index")
        if self.reason is not None:
            parts.append(self.reason)
        return "; ".join(parts)


def check(folder: Path) -> Freshness:
    """Compare the files of the sources with what was indexed. Unknown sources count as unchanged."""
    stored = read_stamps(Layout(folder))
    if stored is None:
        return Freshness()
    now = _core.file_stamps(stored.paths)
    known = stored.stamps
    is_other = (now != known).any(axis=1)
    missing: list[str] = []
    changed = added = removed = at = 0
    unpacked: list[SourceStamps] | None = None
    for number, (spec, folders, files, _, is_complete) in enumerate(stored.sources):
        own = slice(at + folders, at + folders + files)
        listed = slice(at, at + folders)
        at += folders + files
        if not base_of(spec).exists():
            missing.append(spec)
            continue
        gone = now[own, 0] < 0
        removed += int(gone.sum())
        changed += int((is_other[own] & ~gone).sum())
        if is_other[listed].any() or not is_complete:
            unpacked = stored.unpacked() if unpacked is None else unpacked
            added += _count_new(unpacked[number], folder)
    return Freshness(changed, added, removed, tuple(missing))


def _count_new(source: SourceStamps, folder: Path) -> int:
    """Return the number of files that a source has now and did not have when it was read."""
    from ketrag_fast.build.file_reading import find_files
    from ketrag_fast.errors import DocumentError

    try:
        files = find_files(source.spec, _build_settings(folder)).files
    except (OSError, DocumentError):
        return 0
    paths = (str(path) for _, path in files)
    return sum(path not in source.files and path_hash(path) not in source.others for path in paths)


def _build_settings(folder: Path) -> Settings:
    """Return the settings that the sources were read with."""
    from ketrag_fast.base.config import Settings, names
    from ketrag_fast.storage.generation import open_current

    stored = open_current(Layout(folder), "sizes").manifest.settings
    used = names("build")
    return Settings(**{name: value for name, value in stored.items() if name in used})


def freshen(folder: Path, how: Refresh, settings: Settings) -> Freshness:
    """Check the sources, and bring the index up to date if that is quick, or however long it takes.

    The index stays as it is if another process changes it, or if it cannot be written. If most of its files
    are gone, nothing is done unless `how` is "always".
    """
    if how == "never":
        return Freshness()
    found = check(folder)
    if not found.changes:
        return found
    reason = None
    if how == "auto":
        reason = _reason_to_wait(folder, found)
    if reason is None:
        reason = _update(folder, settings)
    return Freshness(found.changed, found.added, found.removed, found.missing, reason is None, reason)


def _reason_to_wait(folder: Path, found: Freshness) -> str | None:
    """Return why an update is left to the user; None if it is quick and safe."""
    stored = read_stamps(Layout(folder))
    files = sum(row[2] for row in stored.sources) if stored is not None else 0
    if found.removed > 1 and 2 * found.removed > files:
        return "most of its files are gone: is a disk missing? `ketrag index` removes their documents"
    seconds = _predicted_seconds(folder, found.changes)
    if seconds is None or seconds > QUICK:
        return "--fresh indexes them first"
    return None


def _predicted_seconds(folder: Path, changes: int) -> float | None:
    """Return how long an update takes, measured by earlier builds; None if it calls a model."""
    from ketrag_fast.index.history import past_builds

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
    """Index what has changed. Returns why it could not be done, or None."""
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
