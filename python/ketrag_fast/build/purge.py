"""What is left of removed documents in an index's files: what the build that follows does not use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ketrag_fast.errors import StorageFailed
from ketrag_fast.storage.durable import discard_folder, sync_folder
from ketrag_fast.storage.generation import current_number, discard
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.tables import Tables

if TYPE_CHECKING:
    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.extraction.run import Reading


@dataclass(slots=True)
class Used:
    """The kept vectors (model, role, text) and replies (chunk) that a build looked for."""

    vectors: set[tuple[int, str, bytes]] = field(default_factory=set)
    replies: set[bytes] = field(default_factory=set)

    def watch(self, source: VectorSource | None, reading: Reading | None) -> None:
        """Notes from now on what is looked for."""
        if source is not None:
            source.cache.used = self.vectors
        if reading is not None:
            reading.journal.used = self.replies


def purge(layout: Layout, used: Used) -> None:
    """Drops what no build over the documents that are there uses: vectors and replies (also those of models
    that the index was built with before), the reports of earlier builds, sources without documents, older
    generations, indexes of some of the documents; then the tables are written anew without the space that
    it took.

    For the holder of the builder's lock. Whoever has an older generation open keeps its files until it
    closes them.
    """
    discard_folder(layout.allowed)
    with Tables(layout.tables) as tables:
        tables.purge(used.vectors, used.replies)
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
            f"{left[0]} could not be removed: what was purged is still in it",
            hint="run `ketrag remove --purge` again with the same ids, where nobody reads the index",
        )
    with writing(layout.root):
        for folder in (layout.work, layout.root):
            sync_folder(folder)  # nothing comes back after a power cut
