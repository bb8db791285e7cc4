"""Second pass of a change: read the sources, and compare their documents with the stored ones by content."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal

from ketrag_fast.base.config import Settings
from ketrag_fast.base.config.settings import Shards, shards_of
from ketrag_fast.base.progress import Meter
from ketrag_fast.building.file_reading import FileSelection, UniqueIds, check_document, find_files, read_jobs
from ketrag_fast.building.sources import SourceTask
from ketrag_fast.building.unchanged import UnchangedFiles, is_recorded
from ketrag_fast.errors import Cancelled, DocumentError
from ketrag_fast.readers import ALONE, Item, SourceFile, SourceFiles, is_glob, single
from ketrag_fast.readers.file_types import BY_SUFFIX
from ketrag_fast.readers.sandbox import UNCHANGED, Apart, ReadJob
from ketrag_fast.storage.document_hashes import hash_purged_id
from ketrag_fast.storage.source_files import FileReading
from ketrag_fast.storage.source_stamps import SourceStamps, path_hash, stamps_of
from ketrag_fast.storage.source_table import SourceRow
from ketrag_fast.storage.tables import Known
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.document_batch import DocumentBatch
from ketrag_fast.types.documents import ENCODING, NOTES

_LONGEST_NAME: Final = 40
_NAMED_ALIKE: Final = ALONE | {UNCHANGED}
"""Kinds whose documents are named after the file, which shows that the source was a file."""
_WITH_PARTS: Final = frozenset(("gzip", "zip", "mail", "mbox", "xlsx", "old office"))
"""Kinds of files whose parts become documents with the id `FILE/PART`."""
_MOST_ITEMS: Final = 32
"""Bits for the number of an item within its file; the number of the file is in the bits above."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A change to one document, for the third pass to apply.

    `insert` stores it, `update` replaces a stored document whose content changed, `move` changes its
    position, and `keep` changes nothing. `restored` are marks of removal that are deleted.
    """

    action: Literal["insert", "update", "move", "keep"]
    document: Document
    content: str
    source: int
    place: int
    key: int = -1
    restored: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DocumentMove:
    """A new position for a stored document of a file that was not read again."""

    key: int
    source: int
    place: int


@dataclass(frozen=True, slots=True)
class BatchInsert:
    """New documents, with their hashes, in adjacent positions from `place` on."""

    batch: DocumentBatch
    contents: list[bytes]
    source: int
    place: int


Step = DocumentChange | DocumentMove | BatchInsert


@dataclass(slots=True)
class SourceComparison:
    """The stored documents (`known`, by id), what the sources have of them, and what was skipped."""

    known: dict[str, Known]
    removed: set[str]
    settings: Settings
    meter: Meter
    seen: set[str] = field(default_factory=set)
    """The ids of all documents that stay or are stored."""
    kept: set[str] = field(default_factory=set)
    """Those of them that are of sources which are not read, until a program gives a document with the id."""
    failures: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    passed_over: int = 0
    """The number of documents that were removed earlier and are not restored."""
    elsewhere: int = 0
    """The number of skipped files and documents of other shards."""
    skipped: list[Failure] = field(default_factory=list)
    """Files of unknown formats, files that programs wrote, and hidden parts."""
    unsure: list[Failure] = field(default_factory=list)
    """Files whose encoding was guessed and may be wrong."""
    unchanged: UnchangedFiles | None = None
    """The files that need not be parsed; None if all are read."""
    shards: Shards | None = None
    ids: UniqueIds = field(default_factory=UniqueIds)
    stamps: dict[str, SourceStamps] = field(default_factory=dict)
    """Sizes and times of the files of each source that was listed, before they were read."""
    _read: dict[str, int] = field(default_factory=dict)
    _bytes: int = 0
    _by_source: dict[int, list[str]] | None = None

    def __post_init__(self) -> None:
        self.shards = shards_of(self.settings.shard)
        self.ids = UniqueIds(lambda name: self.known[name].source if name in self.known else None)

    def changes(self, task: SourceTask, sandbox: Apart) -> Iterator[Step]:
        """Yield a change for each document of a source that is not stored as it is."""
        if task.action == "read":
            yield from self._compare_files(task, sandbox)
        elif task.action in ("replace", "extend"):
            yield from self._compare_documents(task)
        elif task.action == "keep":
            self.ids.keep(task.row)
            self._keep_all(task.row)

    def _compare_documents(self, task: SourceTask) -> Iterator[DocumentChange | DocumentMove]:
        """Compare documents that a program gave; earlier ones, which cannot be read again, stay."""
        places: dict[str, int] = {}
        if task.action == "extend":
            places = {name: one.place for name, one in self.known.items() if one.source == task.row.number}
            self.seen |= places.keys() - {document.id for document in task.documents}
        place = max(places.values(), default=-1) + 1
        for document in task.documents:
            at = places.get(document.id)
            change, after = self._change_of(task, place if at is None else at, document)
            place = after if at is None else place
            if change is not None:
                yield change

    def _compare_files(self, task: SourceTask, sandbox: Apart) -> Iterator[Step]:
        """List the files of a source, read those that changed, and compare their documents."""
        source = task.row
        files = self._list_files(source)
        if files is None:
            return
        named = files.files[0][0] if len(files.files) == 1 and not Path(source.spec).is_dir() else None
        selection = ComparedFiles(self, task, named)
        jobs = read_jobs(files, self.settings, selection)
        order = {path: number for number, (_, path) in enumerate(files.files)} if self.shards else {}
        place = 0
        compared: set[str] = set()
        readings = sandbox.read(selection.note_kinds(jobs), self._check_stop)
        for number, (file, items) in enumerate(readings, 1):
            self.meter.note = _file_note(number, len(files.files), self._bytes, file.id)
            place = order.get(file.path, 0) << _MOST_ITEMS if self.shards else place
            before, passed_over = len(self.seen), self.passed_over
            place = yield from self._compare_file(selection, file, items, place)
            if passed_over == self.passed_over or before < len(self.seen):
                compared.add(str(file.path))
            self._bytes += _size(file)
        for failure in selection.failures:
            self._fail(failure)
        # Of the other files only hashes are kept: they may be those of documents that were removed.
        stamps = self.stamps[source.spec]
        for path in stamps.files.keys() - compared:
            del stamps.files[path]
            stamps.others.add(path_hash(path))

    def _list_files(self, source: SourceRow) -> SourceFiles | None:
        """Return the files of a source; None if its documents stay or go without reading any."""
        now = time.time_ns()
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
        self.stamps[source.spec] = _stamps_of(source.spec, files, now)
        files = self.ids.rename(source, files)
        if not files.files and not files.failures:
            self.warnings.append(f"the source {source.label} has no files")
        for failure in files.failures:
            self._fail(failure)
        return files

    def _compare_file(
        self, selection: ComparedFiles, file: SourceFile, items: Iterable[Item | DocumentBatch], place: int
    ) -> Generator[Step, None, int]:
        """Yield the changes of one file, record that it was read, and return the next position."""
        task, kind = selection.task, selection.kinds[file.id]
        source = task.row.number
        if file.id in selection.reused:
            place = yield from self._keep_file(task, place, file, selection.reused[file.id])
        failed, passed_over = len(self.failures), self.passed_over
        recorded = self.unchanged is not None and is_recorded(kind)
        documents: dict[str, str] = {}
        for batch in items:
            if isinstance(batch, DocumentBatch) and self._are_new(batch):
                yield BatchInsert(batch, batch.contents, source, place)
                place += len(batch)
                continue
            for item in single((batch,)):
                change, place = self._change_of(task, place, item, file.path)
                if change is not None:
                    yield change
                if recorded and isinstance(item, Document):
                    documents[item.id] = self._content(item.id, change)
        if self.unchanged is not None and passed_over == self.passed_over:
            self.unchanged.add(source, file, kind, documents, self.failures[failed:])
        if self.unchanged is not None and file.id == selection.named and kind not in _NAMED_ALIKE:
            self.unchanged.add_named(source, file.id)
        return place

    def is_repeated(self, path: str, source: int) -> bool:
        """Return whether an earlier source has a file already (a folder, and a file in it)."""
        return self._read.setdefault(path, source) != source

    def _keep_all(self, source: SourceRow) -> None:
        """Keep the stored documents of a source."""
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

    def _content(self, name: str, change: DocumentChange | None) -> str:
        """Return the content hash of a document that was compared; "" if it is not stored."""
        if change is not None:
            return change.content
        return self.known[name].content if name in self.known else ""

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
            return
        what = "file or folder" if Path(source.spec).suffix.lower() in BY_SUFFIX else "folder"
        self._keep_unread(source, f"the {what} is missing")

    def _keep_unread(self, source: SourceRow, why: str) -> None:
        """Keep the documents of a source that cannot be read, and report it."""
        self.ids.keep(source)
        count = len(self._stored_ids(source.number))
        self._keep_all(source)
        if self.unchanged is not None:
            self.unchanged.keep(source.number)
        kept = "its document stays" if count == 1 else f"its {count:,} documents stay"
        more = f"; {kept} in the index (`ketrag remove` removes documents)" if count else ""
        self._fail(Failure(source.label, "source", f"{why}{more}"))

    def _has_lost_folder(self, source: SourceRow) -> bool:
        """Return whether a pattern that matches nothing may have lost its folder rather than its files.

        A pattern with only brackets may be the name of a folder.
        """
        folders = [Path(source.spec), *Path(source.spec).parents]
        base = next(folder for folder in folders if not is_glob(str(folder)))
        own = self._stored_ids(source.number)
        is_name = not set("*?").intersection(source.spec) and not self._are_matches(source, base, own)
        return bool(own) and (is_name or not base.is_dir())

    def _are_matches(self, source: SourceRow, base: Path, own: Iterable[str]) -> bool:
        """Return whether stored documents have the names that a pattern below `base` matches."""
        pattern = Path(source.spec).relative_to(base).as_posix()
        return all(fnmatchcase(re.split("[#:]", name, maxsplit=1)[0], pattern) for name in own)

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
        files = self.unchanged.files_of(source.number) if self.unchanged is not None else ()
        return len(files) == 1 and set(files) <= set(names)

    def _keep_file(
        self, task: SourceTask, place: int, file: SourceFile, row: FileReading
    ) -> Generator[DocumentMove, None, int]:
        """Keep the stored documents of a file that has not changed, and return the next position."""
        self._check_stop()
        for failure in row.failures:
            self._fail(failure)
        for name in row.documents:
            if name in self.seen:
                if self.unchanged is not None:
                    self.unchanged.forget(task.row.number, file)
                self._fail(_repeated_id(name))
                continue
            stored = self.known[name]
            if (stored.source, stored.place) != (task.row.number, place):
                yield DocumentMove(stored.key, task.row.number, place)
            self.seen.add(name)
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
        if self.meter(len(self.seen)) is False:
            raise Cancelled("stopped while reading the sources")

    def _change_of(
        self, task: SourceTask, place: int, item: Item, path: Path | None = None
    ) -> tuple[DocumentChange | None, int]:
        """Return the change of one item if it has any, and the position of the next item."""
        self._check_stop()
        name = item.document if isinstance(item, Failure) else item.id
        if self.shards is not None and isinstance(name, str) and not self.shards.holds(name):
            self.elsewhere += 1
            return None, place + 1
        change, is_stored = self._compare(task, place, item, path)
        # With shards, items of others count too, so that `merge` can restore the order of the whole.
        return change, place + (is_stored or self.shards is not None)

    def _compare(
        self, task: SourceTask, place: int, item: Item, path: Path | None
    ) -> tuple[DocumentChange | None, bool]:
        """Return the change of one item if it has any, and whether its document is stored."""
        if isinstance(item, Failure):
            if item.code not in NOTES:
                self._fail(item)
            elif item.code == ENCODING:
                self.unsure.append(item)
            else:
                self.skipped.append(item)
            return None, False
        content, problem = check_document(item)
        if problem is None and item.id in self.seen and not self._replaces(task, item.id):
            self._fail(_repeated_id(item.id))
            return None, False
        if problem is not None:
            shown = str(item.id).encode("utf-8", "backslashreplace").decode()
            self._fail(Failure(shown, "document", problem))
            return None, False
        marks = {item.id, hash_purged_id(item.id)} & self.removed if self.removed else set()
        if marks and not task.restores(path):
            self.passed_over += 1
            return None, False
        stored = self.known.get(item.id)
        number, restored = task.row.number, frozenset(marks)
        self.seen.add(item.id)
        if stored is None:
            return DocumentChange("insert", item, content, number, place, -1, restored), True
        if stored.content != content:
            return DocumentChange("update", item, content, number, place, stored.key, restored), True
        if (stored.source, stored.place) != (number, place):
            return DocumentChange("move", item, content, number, place, stored.key, restored), True
        if restored:
            return DocumentChange("keep", item, content, number, place, stored.key, restored), True
        return None, True

    def _replaces(self, task: SourceTask, name: str) -> bool:
        """Return whether a document of a program replaces one of a source that is not read."""
        is_kept = task.action == "extend" and name in self.kept
        self.kept.discard(name)
        return is_kept

    def _fail(self, failure: Failure) -> None:
        if self.settings.on_error == "stop":
            raise DocumentError(
                f"{failure.document}: {failure.message}", hint="--on-error skip continues without it"
            )
        self.failures.append(failure)


class ComparedFiles(FileSelection):
    """The files of one source, with what is known about each from earlier builds.

    Attributes:
        task: The source and what is done with it.
        kinds: Kind of each file that was selected, by its id.
        reused: How unchanged files were read before, by their ids.
    """

    def __init__(self, comparison: SourceComparison, task: SourceTask, named: str | None) -> None:
        super().__init__(named, comparison.skipped)
        self.task = task
        self.kinds: dict[str, str] = {}
        self.reused: dict[str, FileReading] = {}
        self._comparison = comparison

    def is_repeated(self, path: str) -> bool:
        """Return whether an earlier source has the file already."""
        return self._comparison.is_repeated(path, self.task.row.number)

    def is_elsewhere(self, file: SourceFile, kind: str) -> bool:
        """Return whether a file with one document, whose id is known, belongs to another shard."""
        shards = self._comparison.shards
        is_skipped = shards is not None and kind in ALONE and not shards.holds(file.id)
        self._comparison.elsewhere += is_skipped
        return is_skipped

    def is_unchanged(self, file: SourceFile) -> bool:
        """Return whether the stored documents of a file are what reading it again would give."""
        unchanged = self._comparison.unchanged
        if unchanged is None:
            return False
        known, seen = self._comparison.known, self._comparison.seen
        row = unchanged.find(self.task.row.number, file, known, seen)
        if row is not None:
            self.reused[file.id] = row
        return row is not None

    def is_reported(self, path: Path) -> bool:
        """Return whether the change names the file, or its whole source."""
        return self.task.names(path)

    def note_kinds(self, jobs: Iterable[ReadJob]) -> Iterator[ReadJob]:
        """Yield files that are to be read, and note their kinds."""
        for file, kind in jobs:
            self.kinds[file.id] = kind
            yield file, kind


def _stamps_of(spec: str, files: SourceFiles, now: int) -> SourceStamps:
    """Return the stamps of the files of a source that are about to be read, and were listed from `now` on."""
    folders, paths = list(files.folders or ()), [str(path) for _, path in files.files]
    stamps = stamps_of([*folders, *paths], now)
    return SourceStamps(
        spec,
        dict(zip(folders, stamps[: len(folders)], strict=True)),
        dict(zip(paths, stamps[len(folders) :], strict=True)),
        set(),
        files.folders is not None,
    )


def _repeated_id(name: str) -> Failure:
    problem = f"the id {name!r} is already in use; the first document with it is kept"
    return Failure(name.encode("utf-8", "backslashreplace").decode(), "document", problem)


def _file_note(number: int, files: int, size: int, name: str) -> str:
    """Return what the progress shows of the file that is being read."""
    shown = "".join(mark if mark.isprintable() else "?" for mark in name[-_LONGEST_NAME:])
    cut = "…" if len(name) > _LONGEST_NAME else ""
    return f"file {number:,} of {files:,}, {size / 1e6:,.1f} MB, {cut}{shown}"


def _size(file: SourceFile) -> int:
    try:
        return file.size()
    except OSError:
        return 0
