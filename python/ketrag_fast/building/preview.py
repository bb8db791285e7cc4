"""A dry run: what a change of the documents would do."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Callback, Limited, Meter
from ketrag_fast.building.ingest import Change, change_documents
from ketrag_fast.building.model_settings import settings_for
from ketrag_fast.building.sources import list_given
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage.generation import newest_whole
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.index_settings import begun_settings
from ketrag_fast.types import Failure


@dataclass(frozen=True, slots=True)
class Preview:
    """The documents after a change, and how many are added, updated and removed.

    `characters` counts the text of new and changed documents.
    """

    documents: int
    added: int
    updated: int
    removed: int
    characters: int
    failures: tuple[Failure, ...]

    @property
    def changes(self) -> bool:
        """Whether the documents would change."""
        return bool(self.added or self.updated or self.removed)

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "schema": "ketrag/changes/1",
            "documents": {
                "total": self.documents,
                "added": self.added,
                "removed": self.removed,
                "updated": self.updated,
            },
            "characters": self.characters,
            "failures": [failure.to_json() for failure in self.failures],
        }


class _Rollback(Exception):
    """Rolls a transaction back."""


def preview(path: Path, change: Change, settings: Settings, progress: Callback | None = None) -> Preview:
    """Return the counts of a change without changing the index. Raises what a build raises."""
    change = replace(change, sources=list_given(change.sources))
    layout = Layout(path)
    layout.require()
    with builder_lock(layout):
        base = newest_whole(layout)
        begun = begun_settings(layout) if base is None else None
        chosen = settings_for(base, settings, rebuild=False, begun=begun).settings
        meter = Meter("read", Limited(progress, chosen.limit_seconds, time.monotonic()), "documents")
        with Tables(layout.tables) as tables:
            before = tables.known()
            with suppress(_Rollback), tables.transaction():
                read = change_documents(tables, change, chosen, meter)
                characters = tables.characters_of(
                    one.key
                    for name, one in tables.known().items()
                    if name not in before or before[name].content != one.content
                )
                raise _Rollback
    return Preview(read.documents, read.added, read.updated, read.removed, characters, tuple(read.failures))
