"""Deleting everything that an index still stores of removed documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ketrag_fast.errors import StorageFailed
from ketrag_fast.storage.durable import discard_folder, sync_folder
from ketrag_fast.storage.generation import current_number, discard
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.tables import Tables

_HINT = "close all readers of the index and run `ketrag remove --purge` again"

if TYPE_CHECKING:
    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.extraction.run import Reading


@dataclass(slots=True)
class Used:
    """The stored vectors (model, role, text) and replies (chunk) that a build used."""

    vectors: set[tuple[int, str, bytes]] = field(default_factory=set)
    replies: set[bytes] = field(default_factory=set)

    def watch(self, source: VectorSource | None, reading: Reading | None) -> None:
        """Record every lookup from now on."""
        if source is not None:
            source.cache.used = self.vectors
        if reading is not None:
            reading.journal.used = self.replies


def purge(layout: Layout, used: Used) -> None:
    """Delete what the current documents do not use, and compact the tables.

    Deleted are vectors and replies (also of previous models), reports of earlier builds, sources that name a
    purged document, older generations, and allowed indexes. The caller must hold the builder's lock.
    Processes that have an older generation open keep its files until they close it.

    Raises:
        StorageFailed: a file still holds purged data, because it could not be removed or is being read. The
            purge stays pending, and another one completes it.
    """
    discard_folder(layout.allowed)
    with Tables(layout.tables) as tables:
        is_erased = tables.purge(used.vectors, used.replies)
    current = current_number(layout)
    for number in layout.generations():
        if number != current:
            discard(layout, number)
    left = [layout.generation(number) for number in layout.generations() if number != current]
    left += layout.work.iterdir()
    if layout.allowed.is_dir():
        left += [one for one in layout.allowed.iterdir() if not one.name.startswith(f"{current or 0:06}-")]
    if left:
        raise StorageFailed(
            f"{left[0]} could not be removed and still holds purged data",
            hint=_HINT,
        )
    if not is_erased:
        raise StorageFailed(f"{layout.tables} is being read and still holds purged data", hint=_HINT)
    with writing(layout.root):
        for folder in (layout.work, layout.root):
            sync_folder(folder)  # so that no deleted file reappears after a power cut
    with Tables(layout.tables) as tables, tables.transaction():
        tables.set_pending_purge(None)


def pending_purge_warnings(tables: Tables) -> list[str]:
    """Return a warning if a purge was not completed."""
    if tables.pending_purge() is None:
        return []
    return ["an earlier purge was not completed: run `ketrag remove --purge`"]
