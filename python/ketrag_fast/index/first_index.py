"""The first index of a folder is empty, and the files are indexed behind the first answers."""

from __future__ import annotations

import os
from pathlib import Path

from ketrag_fast.base.config import Settings


def begin_index(path: Path, folder: Path, settings: Settings) -> None:
    """Create an empty index at `path` whose source is `folder`.

    All files of the source are then changes that are not indexed yet. Raises IndexLocked if another process
    is building the index.
    """
    from ketrag_fast.index.building import build_index
    from ketrag_fast.storage.layout import Layout
    from ketrag_fast.storage.source_trust import note_sources
    from ketrag_fast.storage.tables import Tables

    layout, source = Layout(path), os.path.abspath(folder)  # noqa: PTH100 - links stay
    build_index([], path, settings)
    with Tables(layout.tables) as tables, tables.transaction():
        tables.add_sources([("path", os.path.relpath(folder), source)])
    note_sources(layout, [source], only=False)
