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
from ketrag_fast.readers.ocr import check_ocr
from ketrag_fast.readers.sandbox import UNCHANGED
from ketrag_fast.storage.checksum import file_digest
from ketrag_fast.storage.source_files import FileKey, FileReading
from ketrag_fast.storage.source_stamps import Stamp, StoredStamps
from ketrag_fast.storage.tables import Known
from ketrag_fast.types import Failure

_SETTLED: Final = 2_000_000_000
"""Nanoseconds after a change from which a second change has another time on every file system."""


class UnchangedFiles:
    """The files that were read before, and those that the current build has read."""

    def __init__(
        self,
        before: Mapping[FileKey, FileReading],
        settings: Settings,
        stamps: StoredStamps | None = None,
    ) -> None:
        """Compare files with the rows of earlier builds.

        With `stamps`, also files without a row are unchanged if size and time are those of the stamps.
        """
        self._before = before
        self._again: dict[FileKey, tuple[int, int]] = {}
        self._checked: set[FileKey] = set()
        self._files: defaultdict[int, set[str]] | None = None
        self.rows: dict[FileKey, FileReading] = {}
        """New and changed rows."""
        limits = (settings.read_text, settings.read_seconds, settings.read_memory)
        ocr = f" {settings.ocr} {check_ocr(settings.ocr)}" if settings.ocr else ""
        self._reader = f"{readers_version()} {settings.fallback_encoding} {limits} {settings.hidden}"
        self._reader += f" {settings.generated}{ocr}"
        self._stamps: dict[str, Stamp] = {}
        if stamps is not None and stamps.reader == self._reader:
            self._stamps = {path: one for row in stamps.unpacked() for path, one in row.files.items()}

    def find(
        self, source: int, file: SourceFile, known: Mapping[str, Known], seen: Container[str]
    ) -> FileReading | None:
        """Return how a file was read before, if it and its stored documents are as they were then.

        Raises OSError if the file cannot be read.
        """
        key = source, file.id
        self._checked.add(key)
        stamp = _stamp(file)
        row = self._before.get(key)
        if row is None and self._stamps.get(str(file.path)) == stamp:
            old = known.get(file.id)
            if old is not None and old.source == source and old.content and file.id not in seen:
                return FileReading(*stamp, "", self._reader, (file.id,), (), (old.content,))
        if row is None or row.reader != self._reader or row.size != stamp[0]:
            self._again[key] = stamp
            return None
        for name, content in zip(row.documents, row.contents, strict=True):
            old = known.get(name)
            if old is None or old.source != source or not content or old.content != content or name in seen:
                self._again[key] = stamp
                return None
        if row.changed != stamp[1]:
            if file_digest(file.path) != row.digest:
                self._again[key] = stamp
                return None
            self.rows[key] = replace(row, changed=_settled_time(stamp[1]))
        return row

    @property
    def reader(self) -> str:
        """Versions and settings of the readers."""
        return self._reader

    def forget(self, source: int, file: SourceFile) -> None:
        """Drop the row of a file, so that the next build reads it."""
        key = source, file.id
        self.rows.pop(key, None)
        self._again[key] = 0, 0

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
        key = source, file.id
        before = self._again.get(key)
        if before is None or not documents or not is_recorded(kind):
            return
        try:
            digest = file_digest(file.path)
            if _stamp(file) != before:
                return
        except OSError:
            return
        if all(failure.code == "part" for failure in failures):
            changed, contents = _settled_time(before[1]), tuple(documents.values())
            self.rows[key] = FileReading(
                before[0], changed, digest, self._reader, tuple(documents), tuple(failures), contents
            )

    def gone(self, sources: Container[int], read: Container[int]) -> list[FileKey]:
        """Return the rows to delete: of removed sources, and of files that sources that were read lost."""
        return [
            key
            for key in self._before
            if key[0] not in sources
            or (
                key[0] in read and (key not in self._checked or (key in self._again and key not in self.rows))
            )
        ]


def is_recorded(kind: str) -> bool:
    """Return whether files of a kind are recorded when they are read."""
    return kind != UNCHANGED and not (FORMATS[kind].inside or FORMATS[kind].alike)


def _stamp(file: SourceFile) -> tuple[int, int]:
    """Return size and time of change of a file."""
    status = os.stat(file.path)  # noqa: PTH116 - a third of the time of Path.stat
    return status.st_size, status.st_mtime_ns


def _settled_time(changed: int) -> int:
    """Return the time of a change, or 0 if it is so recent that the next change may have the same time."""
    return changed if time.time_ns() - changed > _SETTLED else 0
