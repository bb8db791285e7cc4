"""Refuse a build for which the disk is certainly too small, before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ketrag_fast.base.config import Settings
from ketrag_fast.building.file_reading import find_files
from ketrag_fast.building.sources import SourceTask
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers import FORMATS
from ketrag_fast.readers.file_types import BY_SUFFIX
from ketrag_fast.storage.array_spool import require_space
from ketrag_fast.storage.tables import Tables

_TIMES: Final = 5
"""Space that a build needs at its peak, times the text, at least."""
_MARKUP: Final = 2
"""A plain file has at least a text of half its size, on average; the rest may be markup."""


def require_disk_space(tables: Tables, tasks: Sequence[SourceTask], settings: Settings) -> None:
    """Raise StorageFull if a first build needs more space than is free. Only plain files count."""
    if tables.count():
        return  # how much of the sources is new is not known before they are read
    size = 0
    for task in tasks:
        texts = (document.text for document in task.documents)
        size += sum(len(text) for text in texts if isinstance(text, str))  # others are refused later
        if task.action == "read":
            with suppress(DocumentError):  # reading reports it
                found = find_files(task.row.spec, settings)
                size += sum(_plain_bytes(path) for _, path in found.files) // _MARKUP
    require_space(tables.path.parent, _TIMES * size)


def _plain_bytes(path: Path) -> int:
    kind = BY_SUFFIX.get(path.suffix.lower())
    if kind is None or kind not in FORMATS or not FORMATS[kind].inside:
        return 0
    try:
        return path.stat().st_size
    except OSError:
        return 0
