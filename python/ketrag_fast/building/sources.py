"""First pass of a change: list the registered sources, and what is done with the documents of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ketrag_fast.errors import DocumentError, InputError
from ketrag_fast.readers import find, is_glob
from ketrag_fast.readers.files import missing
from ketrag_fast.readers.ignored import leaves_out as leaves_out
from ketrag_fast.storage.source_table import SourceRow
from ketrag_fast.storage.tables import Tables
from ketrag_fast.types import Document

PathLike = str | os.PathLike[str]
Source = PathLike | Document
Sources = Source | Iterable[Source]
Others = Literal["read", "keep", "drop"]
"""The treatment of sources that a change does not name."""


@dataclass(frozen=True, slots=True)
class SourceTask:
    """A registered source and what is done with it.

    `read` reads its files; `replace` and `extend` store `documents` in place of its documents or in addition
    to them; `keep` leaves its documents as they are; `drop` removes them and the source.
    """

    row: SourceRow
    action: Literal["read", "replace", "extend", "keep", "drop"]
    documents: tuple[Document, ...] = ()
    restored: tuple[str, ...] | None = None
    """The paths below which removed documents are restored; empty for all of the source, None for no path."""

    def restores(self, path: Path | None = None) -> bool:
        """Return whether a document that was removed is restored, given its file if it has one."""
        return self.restored is not None and (path is None or self.names(path))

    def names(self, path: Path) -> bool:
        """Return whether a file of the source was named; all are if the source itself was."""
        if not self.restored:
            return True
        own = Path(absolute(str(path)))
        return any(own.is_relative_to(folder) for folder in self.restored)


def split_sources(sources: Sources) -> tuple[list[str], list[Document] | None]:
    """Split sources into paths and documents. Accepts one path, one document, or an iterable of either.

    Raises DocumentError if a path is missing.
    """
    items: Iterable[Source] = [sources] if isinstance(sources, (str, os.PathLike, Document)) else sources
    paths: list[str] = []
    documents: list[Document] | None = None
    for item in items:
        if isinstance(item, Document):
            documents = documents or []
            documents.append(item)
        else:
            paths.append(os.fspath(item))
    for path in paths:
        if _is_missing(path):
            raise missing(path)
    return paths, documents


def are_paths(sources: Sources) -> bool:
    """Return whether all sources are paths or globs, and there is one."""
    items = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    if isinstance(items, Document) or not isinstance(items, Sequence):
        return False
    return bool(items) and not any(isinstance(item, Document) for item in items)


def list_sources(
    tables: Tables, paths: Sequence[str], documents: Sequence[Document] | None, others: Others
) -> list[SourceTask]:
    """Register the given sources, and return a task for every registered source, in order."""
    if others == "drop":
        tables.drop_altered_sources()
    given = []
    below: dict[str, list[str]] = {}
    registered = _registered_paths(tables) if others == "keep" and paths else {}
    for path in paths:
        home = _home(registered, absolute(path))
        given.append(("path", path, home or absolute(path)))
        if home is not None:
            below.setdefault(home, []).append(absolute(path))
    if documents is not None:
        given.append(("documents", "documents", ""))
    tables.add_sources(given)
    named = {(kind, spec) for kind, _, spec in given}
    tasks = []
    for row in tables.sources():
        if (row.kind, row.spec) not in named:
            # Documents of a program cannot be read again, nor can those of a source on another machine.
            left = "keep" if row.kind == "documents" and others == "read" else others
            tasks.append(SourceTask(row, left))
        elif row.kind == "documents":
            action: Literal["replace", "extend"] = "replace" if others == "drop" else "extend"
            tasks.append(SourceTask(row, action, tuple(documents or ()), ()))
        else:
            restored = None if others == "read" else tuple(below.get(row.spec, ()))
            tasks.append(SourceTask(row, "read", (), restored))
    return tasks


def _registered_paths(tables: Tables) -> dict[str, int]:
    """Return the paths of the registered sources, with their numbers."""
    return {source.spec: source.number for source in tables.sources() if source.kind == "path"}


def _home(registered: Mapping[str, int], path: str) -> str | None:
    """Return the first registered folder that contains a path: ids of its documents are relative to it."""
    above = [spec for spec in map(str, Path(path).parents) if spec in registered]
    return next((spec for spec in sorted(above, key=registered.__getitem__) if Path(spec).is_dir()), None)


def _is_missing(spec: str) -> bool:
    """Return whether a given source is missing. A glob without a match counts as missing."""
    try:
        return not spec or (not Path(spec).exists() and not (is_glob(spec) and find(spec).files))
    except (OSError, ValueError) as error:
        raise DocumentError(f"cannot read {spec!r}: {error}") from None


def absolute(spec: str) -> str:
    """Return a path or glob from the root; links stay."""
    return os.path.abspath(spec)  # noqa: PTH100 - keeps links, and a glob is not a path


def list_given(sources: Sources) -> list[Source]:
    """Return sources as a list, because an iterator can be read only once.

    Raises:
        InputError: One of them is neither a path nor a document.
    """
    if isinstance(sources, (str, os.PathLike, Document)):
        return [sources]
    if isinstance(sources, (bytes, dict)) or not isinstance(sources, Iterable):
        raise _wrong(sources)
    listed = list(sources)
    for source in listed:
        if not isinstance(source, (str, os.PathLike, Document)):
            raise _wrong(source)
    return listed


def _wrong(source: object) -> InputError:
    return InputError(
        f"{source!r:.80} is neither a path nor a Document",
        hint="pass paths as str or pathlib.Path, and texts as Document(id, text)",
    )
