"""Second pass of a change: read the sources, and compare their documents with the stored ones by content."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.base.config.settings import Shards, shards_of
from ketrag_fast.base.progress import Meter
from ketrag_fast.building.sources import (
    FileSelection,
    SourceTask,
    UniqueIds,
    check_document,
    find_files,
    read_jobs,
    usable_document,
)
from ketrag_fast.building.unchanged import (
    IN_USE,
    REMOVED,
    FileLedger,
    FileState,
    changed_rows,
    documents_of,
    escaped_id,
    reader_number,
)
from ketrag_fast.errors import Cancelled, DocumentError, IndexDamaged
from ketrag_fast.readers import ALONE, Item, SourceFile, SourceFiles, is_glob, single
from ketrag_fast.readers.file_types import BY_SUFFIX
from ketrag_fast.readers.sandbox import Apart
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage.checksum import PURGED, hash_purged_id
from ketrag_fast.storage.document_table import Known
from ketrag_fast.storage.known_files import (
    AGAIN,
    NO_DIGEST,
    KnownFile,
    is_hidden_by_error,
    is_missing,
    size_of,
    stats_of,
)
from ketrag_fast.storage.source_files import root_of
from ketrag_fast.storage.source_table import SourceRow
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import ENCODING, FORMAT, NOTES, DocumentBatch

if TYPE_CHECKING:
    from ketrag_fast.storage.tables import Tables

_LONGEST_NAME: Final = 40
_NAMELESS: Final = frozenset(("pdf", "docx", "pptx", "odt", "odp", "epub", "rtf"))
"""Kinds of files that are slow to parse, have one document, and do not take its title from their names."""
_WITH_PARTS: Final = frozenset(
    ("gzip", "zip", "mail", "mbox", "outlook", "winmail", "xlsx", "xls", "ods", "old office")
)
"""Kinds of files whose parts become documents with the id `FILE/PART`."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A new document, or one whose content changed: then `key` is that of the stored one.

    `taken_from` is the source and the position of a stored one of another source.
    """

    document: Document
    content: str
    source: int
    place: int
    key: int | None = None
    taken_from: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class DocumentMove:
    """A new position for a stored document."""

    key: int
    source: int
    place: int


@dataclass(frozen=True, slots=True)
class Restored:
    """Marks of removal to delete, because the document is indexed again."""

    marks: frozenset[str]


@dataclass(frozen=True, slots=True)
class BatchInsert:
    """New documents, with their hashes, in adjacent positions from `place` on."""

    batch: DocumentBatch
    contents: list[bytes]
    source: int
    place: int


Step = DocumentChange | DocumentMove | Restored | BatchInsert


class SourceComparison:
    """The stored documents, what the sources have of them, and what was skipped.

    Attributes:
        known: The stored documents by id.
        removed: Ids of documents that were removed.
        before: The known files of each source.
        seen: The ids of all documents that stay or are stored.
        kept: Those of sources that are not read, until a program gives a document with the id.
        passed_over: The number of documents that were removed earlier and are not restored.
        elsewhere: The number of skipped files and documents of other shards.
        skipped: Files of unknown formats, files that programs wrote, and hidden parts.
        unsure: Files whose encoding was guessed and may be wrong.
        rows, gone: The rows of known files to write, and the keys of those to delete.
        read_by: The source that each file was read for.
    """

    def __init__(
        self,
        known: dict[str, Known],
        removed: set[str],
        settings: Settings,
        meter: Meter,
        before: Sequence[KnownFile],
        *,
        is_new: bool = False,
        thorough: bool = False,
        tables: Tables | None = None,
    ) -> None:
        """Compare with the files `before`; with `is_new`, read all files, with `thorough`, hash them.

        With `tables`, a new file with the content of a known one takes over its document.
        """
        self.known = known
        self.removed = removed
        self.settings = settings
        self.before: defaultdict[int, list[KnownFile]] = defaultdict(list)
        for row in before:
            self.before[row.source].append(row)
        self.is_new = is_new
        self.rows: list[KnownFile] = []
        self.gone: list[tuple[int, int]] = []
        self.has_several = False
        self.shards: Shards | None = shards_of(settings.shard)
        self.seen: set[str] = set()
        self.kept: set[str] = set()
        self.failures: list[Failure] = []
        self.warnings: list[str] = []
        self.skipped: list[Failure] = []
        self.unsure: list[Failure] = []
        self.read_by: dict[str, int] = {}
        self.passed_over = self.elsewhere = 0
        self.tables = None if is_new else tables
        self._meter, self._thorough = meter, thorough
        self._ids = UniqueIds(lambda name: known[name].source if name in known else None)
        self._bytes = 0
        self._by_source: dict[int, list[str]] | None = None

    def changes(self, task: SourceTask, sandbox: Apart) -> Iterator[Step]:
        """Yield a change for each document of a source that is not stored as it is."""
        if task.action == "read":
            yield from self._compare_files(task, sandbox)
        elif task.action in ("replace", "extend"):
            yield from self._compare_documents(task)
        elif task.action == "keep":
            self._ids.keep(task.row)
            self._keep_all(task.row)
        elif task.action == "refuse":
            self._keep_unread(task.row, task.why, looks=False)

    def _compare_documents(self, task: SourceTask) -> Iterator[Step]:
        """Compare documents that a program gave; earlier ones, which cannot be read again, stay."""
        places: dict[str, int] = {}
        if task.action == "extend":
            places = {name: one.place for name, one in self.known.items() if one.source == task.row.number}
            self.seen |= places.keys() - {document.id for document in task.documents}
        place = max(places.values(), default=-1) + 1
        for document in task.documents:
            at = places.get(document.id)
            steps, after = self._steps_of(task, place if at is None else at, document)
            place = after if at is None else place
            yield from steps

    def _compare_files(self, task: SourceTask, sandbox: Apart) -> Iterator[Step]:
        source = task.row
        listed = self._list_files(source)
        if listed is None:
            return
        files, ledger, folders = listed
        named = files.files[0][0] if len(files.files) == 1 and not Path(source.spec).is_dir() else None
        selection = ComparedFiles(self, task, named, ledger)
        selection.is_linked = files.linked or self.has_several
        jobs = read_jobs(source.spec, files, self.settings, selection)
        order = {name: number for number, (name, _) in enumerate(files.files)} if self.shards else {}
        for number, (file, items) in enumerate(sandbox.read(jobs, self._check_stop), 1):
            self._meter.note = _file_note(number, len(files.files), self._bytes, file.id)
            place = ledger.place_of(file.id, order.get(file.id))
            place = yield from self.compare_file(selection, file, items, place)
            ledger.end(place)
            self._bytes += max(0, size_of(ledger.files[file.id].stat))
        for failure in selection.failures:
            self.fail(failure)
        ledger.place_rest()
        rows, gone = changed_rows(self.before[source.number], ledger.rows(list(folders), [*folders.values()]))
        self.rows += rows
        self.gone += gone

    def _list_files(self, source: SourceRow) -> tuple[SourceFiles, FileLedger, dict[str, bytes]] | None:
        """Return the files of a source, what is known of them, and the present stats of its folders.

        Returns None if the documents of the source stay or go without reading any file.
        """
        try:
            files = find_files(source.spec, self.settings)
        except OSError as error:
            self._keep_unread(source, f"it cannot be read: {error.strerror}")
            return None
        if files.missing:
            self._skip_missing(source)
            return None
        if not files.files and is_glob(source.spec) and self._has_lost_folder(source):
            self._keep_unread(source, "nothing matches it any more, and its folder may be missing")
            return None
        if not files.files and any(one.document == source.spec for one in files.failures):
            self._keep_unread(source, f"it cannot be read: {files.failures[0].message}")
            return None
        folders = list(files.folders or ())
        stats = dict(zip(folders, stats_of(folders), strict=True))
        files = self._keep_unreadable(source, self._ids.rename(source, files))
        if not files.files and not files.failures:
            self.warnings.append(f"the source {source.label} has no files")
        for failure in files.failures:
            self.fail(failure)
        before = [] if self.is_new else self.before[source.number]
        own = documents_of(before, ((name, self.known[name]) for name in self._stored_ids(source.number)))
        paths = {name: str(path) for name, path in files.files}
        reader = reader_number(self.settings, source.spec)
        root = root_of(source.spec, follow=self.settings.follow_links)
        ledger = FileLedger(source.number, before, paths, own, reader, root=root, thorough=self._thorough)
        return files, ledger, stats

    def _keep_unreadable(self, source: SourceRow, files: SourceFiles) -> SourceFiles:
        """Add the known files that are not found, but may exist in a folder that cannot be read."""
        there = {name for name, _ in files.files}
        lost = [row for row in self.before[source.number] if row.file not in there and not row.is_folder]
        kept = [row for row in lost if is_hidden_by_error(row.path)]
        if not kept:
            return files
        failures = []
        for failure in files.failures:
            below = os.path.join(source.spec, failure.document, "")  # noqa: PTH118 - of many
            count = sum(row.documents for row in kept if row.path.startswith(below))
            failures.append(_staying(failure, count) if count else failure)
        if not any(failure not in files.failures for failure in failures):
            failures += [_staying(Failure(row.file, "document", "cannot be read"), 1) for row in kept]
        every = sorted(
            (*files.files, *((row.file, Path(row.path)) for row in kept)),
            key=lambda one: os.fsencode(one[0]),
        )
        return replace(files, files=tuple(every), failures=tuple(failures))

    def compare_file(
        self, selection: ComparedFiles, file: SourceFile, items: Iterable[Item | DocumentBatch], place: int
    ) -> Generator[Step, None, int]:
        """Yield the changes of one file, record that it was read, and return the next position."""
        task, ledger = selection.task, selection.ledger
        before = len(self.seen)
        state = ledger.files[file.id]
        if file.id in selection.reused:
            return (yield from self._keep_file(task, place, state))
        if file.id in selection.renamed:
            items = (selection.renamed[file.id],)
        failed, passed_over = len(self.failures), self.passed_over
        noted = len(self.skipped), len(self.unsure)
        for batch in items:
            if isinstance(batch, DocumentBatch) and self._are_new(batch):
                yield BatchInsert(batch, batch.contents, task.row.number, place)
                place += len(batch)
                continue
            for item in single((batch,)):
                steps, place = self._steps_of(task, place, item, file.path)
                yield from steps
        state.count = len(self.seen) - before
        state.notes += [*self.failures[failed:], *self.skipped[noted[0] :], *self.unsure[noted[1] :]]
        if passed_over < self.passed_over:
            state.notes.append(Failure(file.id, REMOVED, str(self.passed_over - passed_over)))
            state.is_lost = any(name.startswith(PURGED) for name in self.removed)
        return place

    def recall(self, notes: Iterable[Failure]) -> None:
        """Report what was not read of unchanged files, or guessed; failures are stored elsewhere."""
        self.skipped, self.unsure = [], []
        for note in notes:
            if note.code == ENCODING:
                self.unsure.append(note)
            elif note.code in (*NOTES, FORMAT):
                self.skipped.append(note)
            elif note.code == REMOVED:
                self.passed_over += int(note.message)

    def _keep_all(self, source: SourceRow) -> None:
        own = self._stored_ids(source.number)
        self.seen.update(own)
        self.kept.update(own)

    def _stored_ids(self, source: int) -> list[str]:
        """Return the ids of the stored documents of a source."""
        if self._by_source is None:
            self._by_source = defaultdict(list)
            for name, one in self.known.items():
                self._by_source[one.source].append(name)
        return self._by_source.get(source, [])

    def _skip_missing(self, source: SourceRow) -> None:
        """Remove the documents of a deleted file.

        Those of a folder are kept, because it may be on a drive that is not connected, and so are those of a
        source that may have been either.
        """
        own = self._stored_ids(source.number)
        if not own:
            self.warnings.append(f"the source {source.label} is missing")
            return
        if self._was_file(source, own):
            self.warnings.append(f"the source {source.label} is missing; its documents were removed")
            self.gone += [(row.source, row.place) for row in self.before[source.number]]
            return
        what = "file or folder" if Path(source.spec).suffix.lower() in BY_SUFFIX else "folder"
        self._keep_unread(source, f"the {what} is missing")

    def _keep_unread(self, source: SourceRow, why: str, *, looks: bool = True) -> None:
        """Keep the documents of a source that cannot be read, and report it."""
        self._ids.keep(source, looks=looks)
        count = len(self._stored_ids(source.number))
        self._keep_all(source)
        kept = "its document stays" if count == 1 else f"its {count:,} documents stay"
        more = f"; {kept} in the index (`ketrag remove` removes documents)" if count else ""
        name = source.label if looks else source.spec
        self.fail(Failure(name, "source", f"{why}{more}"))

    def _has_lost_folder(self, source: SourceRow) -> bool:
        """Return whether a pattern that matches nothing may have lost its folder rather than its files.

        A pattern with only brackets may be the name of a folder.
        """
        folders = [Path(source.spec), *Path(source.spec).parents]
        base = next(folder for folder in folders if not is_glob(str(folder)))
        own = self._stored_ids(source.number)
        pattern = Path(source.spec).relative_to(base).as_posix()
        are_matches = all(fnmatchcase(re.split("[#:]", name, maxsplit=1)[0], pattern) for name in own)
        is_name = not set("*?").intersection(source.spec) and not are_matches
        return bool(own) and (is_name or not base.is_dir())

    def _was_file(self, source: SourceRow, own: Iterable[str]) -> bool:
        """Return whether a missing source was a file, in a folder that exists.

        The ids of its stored documents are made from the name of the file, or the file has the only row of
        the files that were read.
        """
        path = Path(source.spec)
        if not path.parent.is_dir():
            return False
        names = tuple("/".join(path.parts[-count:]) for count in range(1, len(path.parts)))
        marks = ":#/" if BY_SUFFIX.get(path.suffix.lower()) in _WITH_PARTS else ":#"
        parts = tuple(f"{name}{mark}" for name in names for mark in marks)
        if all(one in names or one.startswith(parts) for one in own):
            return True
        rows = self.before[source.number]
        return len(rows) == 1 and rows[0].path == source.spec

    def _keep_file(
        self, task: SourceTask, place: int, state: FileState
    ) -> Generator[DocumentMove, None, int]:
        """Keep the stored documents of a file that is not read, and return the next position."""
        self._check_stop()
        for note in state.notes:
            if note.code == ENCODING:
                self.unsure.append(note)
            elif note.code in NOTES:
                self.skipped.append(note)
            elif note.code != FORMAT:
                self.fail(note)
            elif task.names(Path(state.path)):
                self.skipped.append(note)
        for name in state.documents:
            if name in self.seen:
                state.count = AGAIN
                self.fail(_repeated_id(name))
                continue
            stored = self.known[name]
            if (stored.source, stored.place) != (task.row.number, place):
                yield DocumentMove(stored.key, task.row.number, place)
            self.seen.add(name)
            state.count += state.count >= 0
            place += 1
        return place

    def _are_new(self, batch: DocumentBatch) -> bool:
        """Return whether all documents of a batch are stored as they are, and note their ids."""
        self._check_stop()
        if self.known or self.removed or self.shards is not None:
            return False
        own = set(batch.ids)
        if len(own) < len(batch) or not self.seen.isdisjoint(own):
            return False
        self.seen |= own
        return True

    def _check_stop(self) -> None:
        if self._meter(len(self.seen)) is False:
            raise Cancelled("stopped while reading the sources")

    def _steps_of(
        self, task: SourceTask, place: int, item: Item, path: Path | None = None
    ) -> tuple[list[Step], int]:
        """Return the steps for one item, and the position of the next item."""
        self._check_stop()
        name = item.document if isinstance(item, Failure) else item.id
        if self.shards is not None and isinstance(name, str) and not self.shards.holds(name):
            self.elsewhere += 1
            return [], place + 1
        steps, is_stored = self._compare(task, place, item, path)
        # With shards, items of others count too, so that `merge` can restore the order of the whole.
        return steps, place + (is_stored or self.shards is not None)

    def _compare(
        self, task: SourceTask, place: int, item: Item, path: Path | None
    ) -> tuple[list[Step], bool]:
        """Return the steps for one item, and whether its document is stored."""
        if isinstance(item, Failure):
            if item.code not in NOTES:
                self.fail(item)
            elif item.code == ENCODING:
                self.unsure.append(item)
            else:
                self.skipped.append(item)
            return [], False
        item = usable_document(item)
        content, problem = check_document(item)
        if problem is None and item.id in self.seen:
            # A document of a program replaces one of a source that is not read.
            is_kept = item.id in self.kept
            self.kept.discard(item.id)
            if task.action != "extend" or not is_kept:
                self.fail(_repeated_id(item.id))
                return [], False
        if problem is not None:
            shown = str(item.id).encode("utf-8", "backslashreplace").decode()
            self.fail(Failure(shown, "document", problem))
            return [], False
        marks = {item.id, hash_purged_id(item.id)} & self.removed if self.removed else set()
        if marks and not task.restores(path):
            self.passed_over += 1
            return [], False
        self.seen.add(item.id)
        steps: list[Step] = [Restored(frozenset(marks))] if marks else []
        stored, number = self.known.get(item.id), task.row.number
        if stored is None:
            steps.append(DocumentChange(item, content, number, place))
        elif stored.content != content:
            taken = (stored.source, stored.place) if stored.source != number else None
            steps.append(DocumentChange(item, content, number, place, stored.key, taken))
        elif (stored.source, stored.place) != (number, place):
            steps.append(DocumentMove(stored.key, number, place))
        return steps, True

    def fail(self, failure: Failure) -> None:
        """Record a failure. Raises DocumentError if the build ends with the first one."""
        if self.settings.on_error == "stop":
            raise DocumentError(
                f"{failure.document}: {failure.message}", hint="--on-error skip continues without it"
            )
        self.failures.append(failure)


class ComparedFiles(FileSelection):
    """The files of one source, with what is known about each from earlier builds.

    Attributes:
        task: The source and what is done with it.
        ledger: The files, with what is known of them.
        reused: Ids of the files whose stored documents stay, without reading them.
        renamed: Documents of new files that have the content of a known file, by id.
    """

    def __init__(
        self, comparison: SourceComparison, task: SourceTask, named: str | None, ledger: FileLedger
    ) -> None:
        super().__init__(named, comparison.skipped)
        self.task = task
        self.ledger = ledger
        self.reused: set[str] = set()
        self.renamed: dict[str, Document] = {}
        self._comparison = comparison

    def is_repeated(self, path: str) -> bool:
        """Return whether an earlier source has the file already (a folder, and a file in it)."""
        number = self.task.row.number
        return self._comparison.read_by.setdefault(path, number) != number

    def is_elsewhere(self, file: SourceFile, kind: str) -> bool:
        """Return whether a file with one document, whose id is known, belongs to another shard."""
        shards = self._comparison.shards
        is_skipped = shards is not None and kind in ALONE and not shards.holds(file.id)
        self._comparison.elsewhere += is_skipped
        return is_skipped

    def is_unchanged(self, file: SourceFile) -> bool:
        """Return whether the stored documents of a file stay: it has not changed, or cannot be read now."""
        own, ledger = self._comparison, self.ledger
        state = ledger.files[file.id]
        is_same = not own.is_new and ledger.is_unchanged(file, own.known)
        if is_same and state.row is not None and own.seen.isdisjoint(state.documents):
            can_read = state.row.stat != state.stat
            state.notes = [note for note in state.row.notes if not (can_read and is_staying(note))]
        elif ledger.is_unreadable(file):
            ledger.keep(file.id)
            if not is_missing(state.stat):  # else its folder is reported
                why = file.failure(why_unreadable(file))
                state.notes = [_staying(why, len(state.documents))]
        else:
            return state.row is None and self._is_renamed(file)
        self.reused.add(file.id)
        return True

    def _is_renamed(self, file: SourceFile) -> bool:
        """Return whether a new file has the content of a known one, whose document it then takes over.

        This is for formats that are slow to parse, and whose document does not depend on the file's name.
        """
        tables, suffix = self._comparison.tables, file.path.suffix.lower()
        if tables is None or BY_SUFFIX.get(suffix) not in _NAMELESS:
            return False
        digest = self.ledger.digest_of(file.id)
        for row in tables.files_with(digest) if digest not in (b"", NO_DIGEST) else ():
            is_alike = row.reader == self.ledger.reader and not row.notes
            document = (
                self._document_of(tables, row) if is_alike and row.path.lower().endswith(suffix) else None
            )
            if document is not None:
                self.renamed[file.id] = replace(document, id=file.id)
                return True
        return False

    def _document_of(self, tables: Tables, row: KnownFile) -> Document | None:
        """Return the document of a known file, unless it was changed in this build or is damaged."""
        try:
            found = tables.document_of_file(row)
        except IndexDamaged:
            return None
        known = self._comparison.known
        if found is None or (row.file in known and known[row.file].content != found[0].content):
            return None
        return found[1]

    def is_reported(self, path: Path) -> bool:
        """Return whether the change names the file, or its whole source."""
        return self.task.names(path)

    def begin(self, file: SourceFile) -> None:
        """Hash a file before it is read."""
        self.ledger.digest_of(file.id)

    def note(self, file: SourceFile, failure: Failure) -> None:
        """Record why a file is not read."""
        self.ledger.files[file.id].notes.append(failure)

    def repeat(self, file: SourceFile) -> None:
        """Record that an earlier source has the file: without that source, it must be read."""
        self.ledger.files[file.id].count = AGAIN


_STAYS: Final = " in the index"


def why_unreadable(file: SourceFile) -> str:
    """Return why a file cannot be read."""
    try:
        file.head(1)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return "cannot be read"


def _staying(failure: Failure, count: int) -> Failure:
    """Return the failure to read a file or a folder, with what happens to its documents."""
    kept = "its document stays" if count == 1 else f"its {count:,} documents stay"
    return Failure(failure.document, failure.code, f"{failure.message}; {kept}{_STAYS}")


def is_staying(failure: Failure) -> bool:
    """Return whether a failure reports that documents of an unreadable file or folder stay."""
    return failure.message.endswith(_STAYS)


def _repeated_id(name: str) -> Failure:
    return Failure(escaped_id(name), "document", f"the id {name!r} {IN_USE}")


def _file_note(number: int, files: int, size: int, name: str) -> str:
    shown = "".join(mark if mark.isprintable() else "?" for mark in name[-_LONGEST_NAME:])
    cut = "…" if len(name) > _LONGEST_NAME else ""
    return f"file {number:,} of {files:,}, {size / 1e6:,.1f} MB, {cut}{shown}"
