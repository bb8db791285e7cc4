"""Recognise the files of converted formats that have not changed since they were read.

Size and time of change are compared first, then the hash of the content. Plain texts are not recorded,
because reading them is as fast as hashing them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ketrag_fast.base.config import Settings
from ketrag_fast.readers import FORMATS, SourceFile
from ketrag_fast.readers.ocr import check_ocr
from ketrag_fast.readers.sandbox import UNCHANGED
from ketrag_fast.readers.version import readers_version
from ketrag_fast.storage.checksum import file_digest
from ketrag_fast.storage.source_files import FileKey, FileReading
from ketrag_fast.storage.tables import Known
from ketrag_fast.types import Failure

_SETTLED: Final = 2_000_000_000
"""Nanoseconds after a change from which a second change has another time on every file system."""


class UnchangedFiles:
    """The files that were read before, and those that the current build has read."""

    def __init__(self, before: Mapping[FileKey, FileReading], settings: Settings) -> None:
        self._before = before
        self._again: dict[FileKey, tuple[int, int]] = {}
        self._checked: set[FileKey] = set()
        self.rows: dict[FileKey, FileReading] = {}
        """New and changed rows."""
        limits = (settings.read_text, settings.read_seconds, settings.read_memory)
        ocr = f" {settings.ocr} {check_ocr(settings.ocr)}" if settings.ocr else ""
        self._reader = f"{readers_version()} {settings.fallback_encoding} {limits}{ocr}"

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
        if row is None or row.reader != self._reader or row.size != stamp[0]:
            self._again[key] = stamp
            return None
        for name in row.documents:
            old = known.get(name)
            if old is None or old.source != source or not old.content or name in seen:
                self._again[key] = stamp
                return None
        if row.changed != stamp[1]:
            if file_digest(file.path) != row.digest:
                self._again[key] = stamp
                return None
            self.rows[key] = replace(row, changed=_settled(stamp[1]))
        return row

    def add(
        self, source: int, file: SourceFile, kind: str, documents: Sequence[str], failures: Sequence[Failure]
    ) -> None:
        """Record a file that was read, unless it changed meanwhile or nothing of it could be read."""
        key = source, file.id
        before = self._again.get(key)
        if kind == UNCHANGED or before is None or not documents:
            return
        if FORMATS[kind].inside or FORMATS[kind].alike:
            return
        try:
            digest = file_digest(file.path)
            if _stamp(file) != before:
                return
        except OSError:
            return
        if all(failure.code == "part" for failure in failures):
            row = (*before[:1], _settled(before[1]), digest, self._reader, tuple(documents), tuple(failures))
            self.rows[key] = FileReading(*row)

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


def _stamp(file: SourceFile) -> tuple[int, int]:
    """Return size and time of change of a file."""
    status = os.stat(file.path)  # noqa: PTH116 - a third of the time of Path.stat
    return status.st_size, status.st_mtime_ns


def _settled(changed: int) -> int:
    """Return the time of a change, or 0 if it is so recent that the next change may have the same time."""
    return changed if time.time_ns() - changed > _SETTLED else 0
