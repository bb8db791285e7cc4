"""Second pass of a change: read the sources, and compare their documents with the stored ones by content."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

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
    with_text,
)
from ketrag_fast.building.unchanged import UnchangedFiles, is_recorded
from ketrag_fast.errors import Cancelled, DocumentError
from ketrag_fast.readers import ALONE, Item, SourceFile, SourceFiles, is_glob, single
from ketrag_fast.readers.file_types import BY_SUFFIX
from ketrag_fast.readers.sandbox import UNCHANGED, Apart
from ketrag_fast.storage.checksum import hash_purged_id
from ketrag_fast.storage.document_table import Known
from ketrag_fast.storage.source_files import SourceStamps, path_hash, stamps_of
from ketrag_fast.storage.source_table import FileReading, SourceRow
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import ENCODING, NOTES, DocumentBatch

_LONGEST_NAME: Final = 40
_NAMED_ALIKE: Final = ALONE | {UNCHANGED}
"""Kinds whose documents are named after the file, which shows that the source was a file."""
_WITH_PARTS: Final = frozenset(("gzip", "zip", "mail", "mbox", "xlsx", "old office"))
"""Kinds of files whose parts become documents with the id `FILE/PART`."""
_MOST_ITEMS: Final = 32
"""Bits for the number of an item within its file; the number of the file is in the bits above."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A new document, or one whose content changed: then `key` is that of the stored one."""

    document: Document
    content: str
    source: int
    place: int
    key: int | None = None


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
        unchanged: The files that need not be parsed.
        seen: The ids of all documents that stay or are stored.
        kept: Those of sources that are not read, until a program gives a document with the id.
        passed_over: The number of documents that were removed earlier and are not restored.
        elsewhere: The number of skipped files and documents of other shards.
        skipped: Files of unknown formats, files that programs wrote, and hidden parts.
        unsure: Files whose encoding was guessed and may be wrong.
        stamps: Sizes and times of the files of each source that was listed, before they were read.
        read_by: The source that each file was read for.
    """

    def __init__(
        self,
        known: dict[str, Known],
        removed: set[str],
        settings: Settings,
        meter: Meter,
        unchanged: UnchangedFiles,
    ) -> None:
        self.known = known
        self.removed = removed
        self.settings = settings
        self.unchanged = unchanged
        self.shards: Shards | None = shards_of(settings.shard)
        self.seen: set[str] = set()
        self.kept: set[str] = set()
        self.failures: list[Failure] = []
        self.warnings: list[str] = []
        self.skipped: list[Failure] = []
        self.unsure: list[Failure] = []
        self.stamps: dict[str, SourceStamps] = {}
        self.read_by: dict[str, int] = {}
        self.passed_over = self.elsewhere = 0
        self._meter = meter
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
        files = self._list_files(source)
        if files is None:
            return
        named = files.files[0][0] if len(files.files) == 1 and not Path(source.spec).is_dir() else None
        selection = ComparedFiles(self, task, named)
        jobs = read_jobs(files, self.settings, selection)
        order = {path: number for number, (_, path) in enumerate(files.files)} if self.shards else {}
        place = 0
        compared: set[str] = set()
        for number, (file, items) in enumerate(sandbox.read(jobs, self._check_stop), 1):
            self._meter.note = _file_note(number, len(files.files), self._bytes, file.id)
            place = order.get(file.path, 0) << _MOST_ITEMS if self.shards else place
            before, passed_over = len(self.seen), self.passed_over
            place = yield from self._compare_file(selection, file, items, place)
            if passed_over == self.passed_over or before < len(self.seen):
                compared.add(str(file.path))
            with suppress(OSError):
                self._bytes += file.size()
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
        folders, paths = list(files.folders or ()), [str(path) for _, path in files.files]
        stamps, count = stamps_of([*folders, *paths], now), len(folders)
        self.stamps[source.spec] = SourceStamps(
            source.spec,
            dict(zip(folders, stamps[:count], strict=True)),
            dict(zip(paths, stamps[count:], strict=True)),
            is_complete=files.folders is not None,
        )
        if not files.files and not files.failures:
            self.warnings.append(f"the source {source.label} has no files")
        for failure in files.failures:
            self._fail(failure)
        return self._ids.rename(source, files)

    def _compare_file(
        self, selection: ComparedFiles, file: SourceFile, items: Iterable[Item | DocumentBatch], place: int
    ) -> Generator[Step, None, int]:
        """Yield the changes of one file, record that it was read, and return the next position."""
        task, kind = selection.task, selection.kinds[file.id]
        unchanged, recorded = self.unchanged, self.unchanged.is_used and is_recorded(kind)
        if file.id in selection.reused:
            place = yield from self._keep_file(task, place, file, selection.reused[file.id])
        failed, passed_over = len(self.failures), self.passed_over
        documents: dict[str, str] = {}
        for batch in items:
            if isinstance(batch, DocumentBatch) and self._are_new(batch):
                yield BatchInsert(batch, batch.contents, task.row.number, place)
                place += len(batch)
                continue
            for item in single((batch,)):
                steps, place = self._steps_of(task, place, item, file.path)
                yield from steps
                if recorded and isinstance(item, Document):
                    stored = next((one for one in steps if isinstance(one, DocumentChange)), None)
                    known = stored or self.known.get(item.id)
                    documents[item.id] = "" if known is None else known.content
        if passed_over == self.passed_over:
            unchanged.add(task.row.number, file, kind, documents, self.failures[failed:])
        if file.id == selection.named and kind not in _NAMED_ALIKE:
            unchanged.add_named(task.row.number, file.id)
        return place

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
            return
        what = "file or folder" if Path(source.spec).suffix.lower() in BY_SUFFIX else "folder"
        self._keep_unread(source, f"the {what} is missing")

    def _keep_unread(self, source: SourceRow, why: str, *, looks: bool = True) -> None:
        """Keep the documents of a source that cannot be read, and report it."""
        self._ids.keep(source, looks=looks)
        count = len(self._stored_ids(source.number))
        self._keep_all(source)
        self.unchanged.keep(source.number)
        kept = "its document stays" if count == 1 else f"its {count:,} documents stay"
        more = f"; {kept} in the index (`ketrag remove` removes documents)" if count else ""
        name = source.label if looks else source.spec
        self._fail(Failure(name, "source", f"{why}{more}"))

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
        files = self.unchanged.files_of(source.number)
        return len(files) == 1 and files <= set(names)

    def _keep_file(
        self, task: SourceTask, place: int, file: SourceFile, row: FileReading
    ) -> Generator[DocumentMove, None, int]:
        """Keep the stored documents of a file that has not changed, and return the next position."""
        self._check_stop()
        for failure in row.failures:
            self._fail(failure)
        for name in row.documents:
            if name in self.seen:
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
                self._fail(item)
            elif item.code == ENCODING:
                self.unsure.append(item)
            else:
                self.skipped.append(item)
            return [], False
        item = with_text(item)
        content, problem = check_document(item)
        if problem is None and item.id in self.seen:
            # A document of a program replaces one of a source that is not read.
            is_kept = item.id in self.kept
            self.kept.discard(item.id)
            if task.action != "extend" or not is_kept:
                self._fail(_repeated_id(item.id))
                return [], False
        if problem is not None:
            shown = str(item.id).encode("utf-8", "backslashreplace").decode()
            self._fail(Failure(shown, "document", problem))
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
            steps.append(DocumentChange(item, content, number, place, stored.key))
        elif (stored.source, stored.place) != (number, place):
            steps.append(DocumentMove(stored.key, number, place))
        return steps, True

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
        reused: How unchanged files were read before, by their ids.
    """

    def __init__(self, comparison: SourceComparison, task: SourceTask, named: str | None) -> None:
        super().__init__(named, comparison.skipped)
        self.task = task
        self.reused: dict[str, FileReading] = {}
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
        """Return whether reading a file again would give its stored documents."""
        own = self._comparison
        row = own.unchanged.find(self.task.row.number, file, own.known, own.seen)
        if row is not None:
            self.reused[file.id] = row
        return row is not None

    def is_reported(self, path: Path) -> bool:
        """Return whether the change names the file, or its whole source."""
        return self.task.names(path)


def _repeated_id(name: str) -> Failure:
    problem = f"the id {name!r} is already in use; the first document with it is kept"
    return Failure(name.encode("utf-8", "backslashreplace").decode(), "document", problem)


def _file_note(number: int, files: int, size: int, name: str) -> str:
    shown = "".join(mark if mark.isprintable() else "?" for mark in name[-_LONGEST_NAME:])
    cut = "…" if len(name) > _LONGEST_NAME else ""
    return f"file {number:,} of {files:,}, {size / 1e6:,.1f} MB, {cut}{shown}"
