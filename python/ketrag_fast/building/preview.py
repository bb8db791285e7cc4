"""A dry run: what a change of the documents would do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ketrag_fast.base.config import Settings
from ketrag_fast.base.filters import Condition
from ketrag_fast.base.progress import Callback, Limited, Meter
from ketrag_fast.building.ingest import Change, Ingested, change_documents
from ketrag_fast.building.model_settings import settings_for
from ketrag_fast.building.sources import Others, Sources, list_given
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


class _Back(Exception):
    """Rolls a transaction back and carries its result out."""

    def __init__(self, read: Ingested) -> None:
        super().__init__()
        self.read = read


def preview(
    path: Path,
    sources: Sources,
    remove: Sequence[str],
    settings: Settings,
    *,
    where: Condition | None = None,
    others: Others = "keep",
    progress: Callback | None = None,
) -> Preview:
    """Read the sources as `Index.update` would, and return the counts without changing the index.

    `others` is done with the sources that are not given; a build reads them. Raises what a build raises.
    """
    listed = list_given(sources)
    layout = Layout(path)
    layout.require()
    with builder_lock(layout):
        base = newest_whole(layout)
        begun = begun_settings(layout) if base is None else None
        resolved = settings_for(base, settings, rebuild=False, begun=begun)
        meter = Meter(
            "read", Limited(progress, resolved.settings.limit_seconds, time.monotonic()), "documents"
        )
        with Tables(layout.tables) as tables:
            before = tables.known()
            try:
                with tables.transaction():
                    change = Change(listed, others, remove, where)
                    read = change_documents(tables, change, resolved.settings, meter)
                    characters = tables.characters_of(
                        one.key
                        for name, one in tables.known().items()
                        if name not in before or before[name].content != one.content
                    )
                    raise _Back(read)
            except _Back as back:
                read = back.read
    return Preview(read.documents, read.added, read.updated, read.removed, characters, tuple(read.failures))
