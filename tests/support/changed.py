"""Changes of the index in a folder, which is opened for them."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast import Index, Settings
from ketrag_fast.base.progress import Callback


def bundle(path: Path, file: Path, *, replace: bool = False, with_model: bool = False) -> int:
    """Write the index in a folder to a file, and return its size in bytes."""
    with Index.open(path) as index:
        return index.bundle(file, replace=replace, with_model=with_model)


def reembed(
    path: Path,
    embedder: str | None = None,
    *,
    settings: Settings | None = None,
    progress: Callback | None = None,
) -> Index:
    """Embed the index in a folder again, and open it with the report of the change."""
    given = dict(settings.given) if settings else {}
    embedder = given.pop("embedder", embedder)
    with Index.open(path, settings=Settings(**given)) as index:
        report = index.reembed(embedder, progress=progress)
    return Index(path, settings, report)
