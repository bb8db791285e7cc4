"""Find the files of the sources that have changed since they were read, without opening any other.

All known files are looked up. A folder that has changed is listed again. What this cannot decide (a new
folder, a changed `.gitignore`, a link) is left to a comparison of all files.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.globs import is_glob
from ketrag_fast.records import dataclass, field
from ketrag_fast.storage.known_files import KnownFile, digests_of, is_hidden_by_error, is_missing, size_of
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_files import base_of, root_of
from ketrag_fast.storage.source_trust import source_trust

if TYPE_CHECKING:
    from ketrag_fast.building.touched import Compared
    from ketrag_fast.readers.ignored import Ignored
    from ketrag_fast.storage.source_table import SourceRow, SourceTable

READING: Final = ("exclude", "gitignore")
"""The settings that decide which files a source has."""
_DECIDING: Final = frozenset(("index.sqlite", "corpus.jsonl", "queries.jsonl", "citations.tsv"))
"""Names of files that decide which other files of a folder are read."""

RowKey = tuple[int, int]
"""The number of a source and the position of a known file."""


@dataclass(slots=True)
class SourceChanges:
    """The changes of one source.

    Attributes:
        source: The source.
        root: The folder in which its files must be after all links; None if it does not matter.
        files: The number of its files with documents when it was read.
        changed: Files that were changed, with what is known of them now.
        gone: Files that do not exist any more.
        new: Ids and paths of files that were added.
        folders: Folders that were changed, with what is known of them now.
        is_missing: Whether the source does not exist now; a disk may not be connected.
        is_known: Whether anything is known of the source.
        needs_all: Whether all files of the source must be compared.
    """

    source: SourceRow
    root: Path | None
    files: int
    is_known: bool
    changed: list[tuple[KnownFile, bytes]] = field(default_factory=list)
    gone: list[KnownFile] = field(default_factory=list)
    new: list[tuple[str, str]] = field(default_factory=list)
    folders: list[tuple[KnownFile, bytes]] = field(default_factory=list)
    is_missing: bool = False
    needs_all: bool = False

    @property
    def is_emptied(self) -> bool:
        """Whether most of the files are gone: a disk may not be connected."""
        gone = sum(not row.is_skipped for row in self.gone)
        return gone > 1 and 2 * gone > self.files


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The changes of all sources.

    Attributes:
        sources: The sources with changes.
        keys: The rows that differ, by which the changes are looked up again under the lock of the builder.
        refused: Why some sources may not be read; None if all may be.
        is_published: Whether the stored documents are published; a killed build leaves some that are not.
        is_behind: Whether a build that is running has stored documents, and has not published them yet.
        same: Files with other times and the content that they had, each with what is known of it now.
        uncompared: The number of files with other times whose contents were not compared in time.
        has_sources: Whether there are any sources.
    """

    sources: tuple[SourceChanges, ...] = ()
    keys: tuple[RowKey, ...] = ()
    refused: str | None = None
    is_published: bool = True
    is_behind: bool = False
    same: tuple[tuple[KnownFile, bytes], ...] = ()
    uncompared: int = 0
    has_sources: bool = True

    @property
    def needs_all(self) -> bool:
        """Whether all files must be compared."""
        return not self.is_published or any(one.needs_all for one in self.sources)


def find_changes(
    tables: SourceTable,
    settings: Mapping[str, Any],
    keys: Sequence[RowKey] | None = None,
    *,
    compare_seconds: float | None = None,
) -> FileChanges | None:
    """Return what has changed in the sources; with `keys`, among these rows.

    `settings` are those with which the sources were read. With `compare_seconds`, the contents of files with
    other times and the same size are compared in about that time; else such files count as changed.
    Returns None if nothing is known of the files.
    """
    if not tables.has_known_files():
        return None
    trust = source_trust(Layout(tables.path.parent))
    every_source = [row for row in tables.sources() if row.kind == "path"]
    refused = trust.why_not(row.spec for row in every_source)
    sources = {row.number: row for row in every_source if trust.allows(row.spec)}
    if not sources:
        return FileChanges(refused=refused, has_sources=False)
    found = tables.changed_files(sources, keys, separate=compare_seconds is not None)
    follow = bool(settings.get("follow_links"))
    roots = {number: root_of(row.spec, follow=follow) for number, row in sources.items()}
    compared: Compared | None = None
    if found is not None and found.touched and compare_seconds is not None:
        from ketrag_fast.building.touched import compare_touched  # imported here because it is rare

        compared = compare_touched(tables, found.touched, roots, compare_seconds)
    if found is None or (found.touched and compared is None):
        every = {
            number: SourceChanges(row, roots[number], 0, False, needs_all=True)
            for number, row in sources.items()
        }
        return FileChanges(tuple(every.values()), refused=refused)
    every = {
        number: SourceChanges(row, roots[number], found.counts.get(number, 0), number in found.counts)
        for number, row in sources.items()
        if keys is None or any(source == number for source, _ in keys)
    }
    unsettled: defaultdict[int, list[tuple[KnownFile, bytes]]] = defaultdict(list)
    for row, stat in zip(found.rows, found.stats, strict=True):
        own = every.get(row.source)
        if own is None:
            continue
        if row.is_folder:
            own.folders.append((row, stat))
        elif is_missing(stat):
            own.gone.append(row)
        elif not row.is_settled and row.is_as(stat):
            unsettled[row.source].append((row, stat))
        else:
            own.changed.append((row, stat))
    for row, stat in () if compared is None else compared.changed:
        every[row.source].changed.append((row, stat))
    for number, own in every.items():
        digests = digests_of([row.path for row, _ in unsettled[number]], own.root)
        pairs = zip(unsettled[number], digests, strict=True)
        own.changed += [(row, stat) for (row, stat), digest in pairs if digest != row.digest]
        _look_at(own, tables, settings)
    changed = tuple(
        one
        for one in every.values()
        if one.changed or one.gone or one.new or one.folders or one.is_missing or one.needs_all
    )
    rows = [row for one in changed for row in (*(row for row, _ in one.changed), *one.gone)]
    rows += [row for one in changed for row, _ in one.folders]
    keys = tuple((row.source, row.place) for row in rows)
    if compared is None:
        return FileChanges(changed, keys, refused)
    left = len(found.touched) - compared.count
    return FileChanges(changed, keys, refused, same=tuple(compared.same), uncompared=left)


def _look_at(own: SourceChanges, tables: SourceTable, settings: Mapping[str, Any]) -> None:
    """Complete the changes of a source: list its changed folders, and find out whether it is missing."""
    spec = own.source.spec
    if not base_of(spec).exists():
        own.is_missing = True
        own.changed, own.gone, own.folders = [], [], []
    elif not own.is_known:
        own.needs_all = True
        own.new = _listed(own, settings)
    elif is_glob(spec):
        _compare_glob(own, tables, settings)
    elif own.folders:
        _list_again(own, tables, settings)
    if any(is_hidden_by_error(row.path) for row in own.gone):
        own.needs_all = True


def _listed(own: SourceChanges, settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return ids and paths of all files of a source of which nothing is known."""
    from ketrag_fast.errors import DocumentError
    from ketrag_fast.readers.files import find

    follow, gitignore = bool(settings.get("follow_links")), bool(settings.get("gitignore", True))
    try:
        files = find(own.source.spec, follow=follow, exclude=settings.get("exclude"), gitignore=gitignore)
    except (OSError, DocumentError):  # the build reports it
        return []
    return [(name, str(path)) for name, path in files.files]


def _compare_glob(own: SourceChanges, tables: SourceTable, settings: Mapping[str, Any]) -> None:
    """Find the files that a pattern matches now; a folder does not tell."""
    from ketrag_fast.readers.files import find

    files = find(own.source.spec, follow=bool(settings.get("follow_links")), exclude=settings.get("exclude"))
    known = {row.path for row in tables.known_files(own.source.number)}
    own.new = [(name, str(path)) for name, path in files.files if str(path) not in known]
    own.needs_all = bool(own.new) or not files.files  # without a match, its folder may be missing


def _list_again(own: SourceChanges, tables: SourceTable, settings: Mapping[str, Any]) -> None:
    """List the changed folders of a source, and find what was added to them and what is gone."""
    known = tables.content_of_folders(own.source.number, [row.path for row, _ in own.folders])
    if known is None:
        own.needs_all = True
        return
    gone = {row.path for row in own.gone}
    changed = {row.path for row, _ in own.changed}
    for folder, stat in own.folders:
        if not os.path.isdir(folder.path) or is_missing(stat):  # noqa: PTH112
            own.needs_all = True  # a .gitignore, or a folder that is gone or was replaced
            return
        try:
            entries = list(os.scandir(folder.path))
        except OSError:
            own.needs_all = True
            return
        files, folders = known[folder.path].files, known[folder.path].folders
        names = {entry.name for entry in entries}
        lost = files.keys() - names
        if lost & _DECIDING or not folders <= names:
            own.needs_all = True
            return
        own.gone += [files[name] for name in sorted(lost) if files[name].path not in gone | changed]
        _add_new(own, folder.path, [one for one in entries if one.name not in files], folders, settings)


def _add_new(
    own: SourceChanges,
    folder: str,
    entries: Iterable[os.DirEntry[str]],
    folders: frozenset[str],
    settings: Mapping[str, Any],
) -> None:
    """Add the files of a folder that are not known."""
    ignored: tuple[Ignored, str] | None = None
    for entry in entries:
        if entry.name.startswith(".") and settings.get("gitignore", True) and entry.name not in folders:
            from ketrag_fast.readers.ignored import IGNORE_FILES  # imported here because it is rare

            own.needs_all |= entry.name in IGNORE_FILES
        if entry.name.startswith(".") or entry.name in folders:
            continue
        if ignored is None:
            ignored = _ignored_in(own, folder, settings)
        patterns, prefix = ignored
        name = prefix + entry.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError:  # a loop of links
            own.needs_all = True
            continue
        if patterns.matches(name, folder=is_folder):
            continue
        if is_folder or entry.is_symlink() or entry.name in _DECIDING or not is_file:
            own.needs_all = True
        else:
            own.new.append((name, entry.path))


def _ignored_in(own: SourceChanges, folder: str, settings: Mapping[str, Any]) -> tuple[Ignored, str]:
    """Return what is left out of a folder of a source, and the folder's path in the source."""
    from ketrag_fast.readers.ignored import excluded

    ignored, here, prefix = excluded(settings.get("exclude")), Path(own.source.spec), ""
    if settings.get("gitignore", True):
        ignored, _ = ignored.below(here)
    parts = Path(folder).relative_to(here).parts
    for part in ("", *parts):
        here, prefix = (here / part, f"{prefix}{part}/") if part else (here, prefix)
        if settings.get("gitignore", True):
            ignored, _ = ignored.within(here, prefix, own.root)
    return ignored, prefix


def bytes_of(changes: FileChanges) -> int:
    """Return the size of the files that must be read, in bytes."""
    found = 0
    for one in changes.sources:
        found += sum(size_of(stat) for _, stat in one.changed)
        for _, path in one.new:
            try:
                found += os.stat(path).st_size  # noqa: PTH116 - of a path as text
            except OSError:
                continue
    return found


class Places:
    """Positions of new files among the known files of a source, which are in order."""

    def __init__(self, rows: Iterable[KnownFile], gap: int) -> None:
        ordered = sorted((os.fsencode(row.file), row.place, row.documents) for row in rows if row.file)
        self._names = [name for name, _, _ in ordered]
        self._rows = [(place, max(documents, 1)) for _, place, documents in ordered]
        self._gap = gap

    @property
    def are_in_order(self) -> bool:
        """Whether positions ascend with the ids."""
        return all(a + count <= b for (a, count), (b, _) in zip(self._rows, self._rows[1:], strict=False))

    def between(self, name: str) -> int | None:
        """Return the position for a new file; None if there is no room."""
        at = bisect_left(self._names, os.fsencode(name))
        before = sum(self._rows[at - 1]) if at else 0
        after = self._rows[at][0] if at < len(self._rows) else before + 2 * self._gap
        place = before + (after - before) // 2
        return place if before <= place < after else None

    def add(self, name: str, place: int, count: int) -> None:
        """Add a file that was placed."""
        encoded = os.fsencode(name)
        at = bisect_left(self._names, encoded)
        self._names.insert(at, encoded)
        self._rows.insert(at, (place, max(count, 1)))

    def end(self, place: int) -> int | None:
        """Return the position of the file behind a position, or None."""
        at = bisect_left(self._rows, (place + 1, 0))
        return self._rows[at][0] if at < len(self._rows) else None
