"""Recognise the files of converted formats that have not changed since they were read.

Size and time of change are compared first, then the hash of the content. Plain texts are not recorded,
because reading them is as fast as hashing them.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ketrag_fast.base.config import Settings
from ketrag_fast.readers import FORMATS, SourceFile, readers_version
from ketrag_fast.readers.sandbox import UNCHANGED
from ketrag_fast.storage.checksum import file_digest
from ketrag_fast.storage.document_table import Known
from ketrag_fast.storage.source_files import Stamp, StoredStamps
from ketrag_fast.storage.source_table import FileKey, FileReading
from ketrag_fast.types import Failure

_SETTLED: Final = 2_000_000_000
"""Nanoseconds after a change from which a second change has another time on every file system."""


class UnchangedFiles:
    """The files that were read before, and those that the current build has read.

    Without rows of earlier builds (None) every file is read, and none is recorded. With `stamps`, also files
    without a row are unchanged if size and time are those of the stamps.

    Attributes:
        rows: New and changed rows.
        reader: Versions and settings of the readers.
    """

    def __init__(
        self,
        before: Mapping[FileKey, FileReading] | None,
        settings: Settings,
        stamps: StoredStamps | None = None,
    ) -> None:
        self.is_used = before is not None
        self.rows: dict[FileKey, FileReading] = {}
        self.reader = _reader(settings) if self.is_used else ""
        self._before = before or {}
        self._again: dict[FileKey, tuple[int, int]] = {}
        """Size and time of the files that are read again."""
        self._checked: set[FileKey] = set()
        self._files: defaultdict[int, set[str]] | None = None
        self._stamps: dict[str, Stamp] = {}
        if stamps is not None and stamps.reader == self.reader:
            self._stamps = {path: one for row in stamps.unpacked() for path, one in row.files.items()}

    def find(
        self, source: int, file: SourceFile, known: Mapping[str, Known], seen: Container[str]
    ) -> FileReading | None:
        """Return how a file was read before, if it and its stored documents are as they were then.

        Raises OSError if the file cannot be read.
        """
        if not self.is_used:
            return None
        key, stamp = (source, file.id), _stamp(file)
        self._checked.add(key)
        row = self._before.get(key)
        if row is None and self._stamps.get(str(file.path)) == stamp:
            old = known.get(file.id)
            if old is not None and old.source == source and old.content and file.id not in seen:
                return FileReading(*stamp, "", self.reader, (file.id,), (), (old.content,))

        def is_stored(name: str, content: str) -> bool:
            old = known.get(name)
            is_same = old is not None and old.source == source and old.content == content
            return is_same and content != "" and name not in seen

        if (
            row is None
            or (row.reader, row.size) != (self.reader, stamp[0])
            or not all(map(is_stored, row.documents, row.contents))
            or (row.changed != stamp[1] and file_digest(file.path) != row.digest)
        ):
            self._again[key] = stamp
            return None
        if row.changed != stamp[1]:
            self.rows[key] = replace(row, changed=_settled_time(stamp[1]))
        return row

    def forget(self, source: int, file: SourceFile) -> None:
        """Drop the row of a file, so that the next build reads it."""
        self.rows.pop((source, file.id), None)
        self._again[source, file.id] = 0, 0

    def keep(self, source: int) -> None:
        """Keep the rows of a source whose files cannot be looked up."""
        self._checked.update((source, file) for file in self.files_of(source))

    def files_of(self, source: int) -> set[str]:
        """Return the ids of the files of a source that have rows of an earlier build."""
        if self._files is None:
            self._files = defaultdict(set)
            for number, file in self._before:
                self._files[number].add(file)
        return self._files.get(source, set())

    def add_named(self, source: int, name: str) -> None:
        """Record that a source is a single file, if no other row of this build does.

        The documents of such a row are never reused.
        """
        self.rows.setdefault((source, name), FileReading(0, 0, "", "", ()))

    def add(
        self,
        source: int,
        file: SourceFile,
        kind: str,
        documents: Mapping[str, str],
        failures: Sequence[Failure],
    ) -> None:
        """Record a file that was read, unless it changed meanwhile or nothing of it could be read.

        `documents` are the ids of its documents, in order, with their content hashes.
        """
        before = self._again.get((source, file.id))
        if before is None or not documents or not is_recorded(kind):
            return
        try:
            digest = file_digest(file.path)
            if _stamp(file) != before:
                return
        except OSError:
            return
        if all(failure.code == "part" for failure in failures):
            size, changed = before[0], _settled_time(before[1])
            ids, contents = tuple(documents), tuple(documents.values())
            row = FileReading(size, changed, digest, self.reader, ids, tuple(failures), contents)
            self.rows[source, file.id] = row

    def gone(self, sources: Container[int], read: Container[int]) -> list[FileKey]:
        """Return the rows to delete: of removed sources, and of files that sources that were read lost."""

        def is_lost(key: FileKey) -> bool:
            return key not in self._checked or (key in self._again and key not in self.rows)

        return [key for key in self._before if key[0] not in sources or (key[0] in read and is_lost(key))]


def is_recorded(kind: str) -> bool:
    """Return whether files of a kind are recorded when they are read."""
    return kind != UNCHANGED and not (FORMATS[kind].inside or FORMATS[kind].alike)


def _reader(settings: Settings) -> str:
    limits = (settings.read_text, settings.read_seconds, settings.read_memory)
    ocr = ""
    if settings.ocr:
        from ketrag_fast.readers.ocr import check_ocr

        ocr = f" {settings.ocr} {check_ocr(settings.ocr)}"
    about = f"{readers_version()} {settings.fallback_encoding} {limits} {settings.hidden}"
    return f"{about} {settings.generated}{ocr}"


def _stamp(file: SourceFile) -> tuple[int, int]:
    """Return size and time of change of a file."""
    status = os.stat(file.path)  # noqa: PTH116 - a third of the time of Path.stat
    return status.st_size, status.st_mtime_ns


def _settled_time(changed: int) -> int:
    """Return the time of a change, or 0 if it is so recent that the next change may have the same time."""
    return changed if time.time_ns() - changed > _SETTLED else 0
