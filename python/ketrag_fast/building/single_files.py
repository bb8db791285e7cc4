"""Index the files that have changed, and open no other: the counterpart of a comparison of all files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, overload

from ketrag_fast.base.config import Settings
from ketrag_fast.building.file_changes import READING, FileChanges, Places, SourceChanges
from ketrag_fast.building.source_comparison import ComparedFiles, SourceComparison, Step
from ketrag_fast.building.sources import SourceTask, read_jobs, sandbox_pool
from ketrag_fast.building.unchanged import IN_USE, FileLedger, escaped_id, is_repeated, reader_number
from ketrag_fast.readers import SourceFiles
from ketrag_fast.readers.sandbox import Apart
from ketrag_fast.records import replace
from ketrag_fast.storage.document_table import Known
from ketrag_fast.storage.known_files import GAP, KnownFile
from ketrag_fast.storage.tables import Tables

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Meter

_T = TypeVar("_T")


class NeedsComparisonError(Exception):
    """Changes that can only be indexed by comparing all files; raised before anything is lost."""


class ChangedDocuments(dict[str, Known]):
    """The stored documents of the changed files by id.

    If another file has a document with the id of a new one, a comparison of all files decides whose it is.
    """

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self._tables = tables

    def __bool__(self) -> bool:
        return True

    @overload
    def get(self, name: str, default: None = None, /) -> Known | None: ...
    @overload
    def get(self, name: str, default: _T, /) -> Known | _T: ...
    def get(self, name: str, default: _T | None = None, /) -> Known | _T | None:
        """Return a document of the changed files. Raises NeedsComparisonError if another file has it."""
        found = super().get(name)
        if found is None and self._tables.known([name]):
            raise NeedsComparisonError
        return default if found is None else found


class SingleFiles:
    """A comparison of the changed files with their stored documents."""

    def __init__(self, tables: Tables, changes: FileChanges, settings: Settings, meter: Meter) -> None:
        self._tables, self._changes = tables, changes
        self.known = ChangedDocuments(tables)
        self.comparison = SourceComparison(self.known, tables.removed(), settings, meter, (), tables=tables)
        self._settings = settings
        self._documents: dict[str, list[str]] = {}
        self._refused = {note.document for note in tables.notes_of_files(IN_USE) if is_repeated(note)}
        """Ids that several files use. If the file that has one changes, all are compared for the next one."""

    def steps(self) -> Iterator[Step]:
        """Yield the steps that bring the documents of the changed files up to date."""
        with sandbox_pool(self._settings) as sandbox:
            for one in self._changes.sources:
                yield from self._compare(one, sandbox)

    def _compare(self, one: SourceChanges, sandbox: Apart) -> Iterator[Step]:
        comparison, source = self.comparison, one.source
        if one.is_missing:
            return
        known = [row for row, _ in one.changed]
        for row in (*known, *one.gone):
            stored = self._tables.known_between(source.number, row.place, self._end_of(row))
            self._documents[row.file] = list(stored)
            self.known.update(stored)
            if not self._refused.isdisjoint(map(escaped_id, stored)):
                raise NeedsComparisonError
        places = Places(self._tables.known_files(source.number), GAP) if one.new else None
        if places is not None and not places.are_in_order:
            raise NeedsComparisonError
        paths = {row.file: row.path for row in known} | dict(one.new)
        ordered = dict(sorted(paths.items(), key=lambda item: item[0].encode("utf-8", "surrogateescape")))
        reader = reader_number(self._settings, source.spec)
        ledger = FileLedger(source.number, known, ordered, self._documents, reader, root=one.root)
        task = SourceTask(source, "read", (), None)
        selection = ComparedFiles(comparison, task, None, ledger)
        selection.is_linked = comparison.has_several
        files = SourceFiles(tuple((name, Path(path)) for name, path in ordered.items()))
        for file, items in sandbox.read(read_jobs(source.spec, files, self._settings, selection)):
            place, end = self._place(ledger, file.id, places)
            after = yield from comparison.compare_file(selection, file, items, place)
            if end is not None and after > end:
                raise NeedsComparisonError
            if places is not None and ledger.files[file.id].row is None:
                places.add(file.id, place, after - place)
        for failure in selection.failures:
            comparison.fail(failure)
        for name, state in ledger.files.items():
            if state.place is None:
                self._place(ledger, name, places)
                if places is not None and state.row is None and state.place is not None:
                    places.add(name, state.place, 1)
            if state.count < 0:
                raise NeedsComparisonError
        comparison.rows += ledger.rows((), ())
        comparison.rows += [replace(row, stat=stat) for row, stat in one.folders]
        comparison.gone += [(row.source, row.place) for row in one.gone]

    def _place(self, ledger: FileLedger, name: str, places: Places | None) -> tuple[int, int | None]:
        """Return the position of a file, and that of the next one."""
        state = ledger.files[name]
        if state.row is not None:
            state.place = state.row.place
            return state.place, self._end_of(state.row)
        place = None if places is None else places.between(name)
        if place is None or places is None:
            raise NeedsComparisonError
        state.place = place
        return place, places.end(place)

    def _end_of(self, row: KnownFile) -> int | None:
        return self._tables.next_place(row.source, row.place)

    def gone(self) -> list[int]:
        """Return the keys of the documents that are gone, after all steps."""
        return [one.key for name, one in self.known.items() if name not in self.comparison.seen]

    def has_notes(self) -> bool:
        """Return whether the changed files had failures or other notes, or have some now."""
        now = any(row.notes for row in self.comparison.rows)
        return now or bool(self.comparison.failures) or bool(self.changed_notes())

    def changed_notes(self) -> set[str]:
        """Return the ids that earlier failures of the changed files name."""
        rows = (row for one in self._changes.sources for row in (*(row for row, _ in one.changed), *one.gone))
        return {note.document for row in rows for note in row.notes}


def can_change_single_files(tables: Tables, settings: Settings, earlier: Mapping[str, object]) -> bool:
    """Return whether single files can be indexed without comparing all; `earlier` are the stored settings."""
    if settings.shard is not None or not tables.has_known_files():
        return False
    same = all(earlier.get(name) == getattr(settings, name) for name in READING)
    sources = (row for row in tables.sources() if row.kind == "path")
    return same and all(
        tables.can_change_single_files(row.number, reader_number(settings, row.spec)) for row in sources
    )
