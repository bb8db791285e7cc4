"""Ids of files of which several sources have one with the same relative path.

The id of a file is its path in the source. If an earlier source has a file with this path, the later one gets
the end of its source's path before it, as long as needed to tell the two apart: `b/docs/readme.md`. Files of
the first source keep their ids, whatever is added later.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ketrag_fast.readers import SourceFiles, find, is_glob
from ketrag_fast.storage.source_table import SourceRow


class UniqueIds:
    """The sources before one source. `source_of` returns the source of a stored document, or None."""

    def __init__(self, source_of: Callable[[str], int | None] = lambda _: None) -> None:
        self._source_of = source_of
        self._sources: dict[int, _Names] = {}
        self._kept: set[int] = set()

    def rename(self, source: SourceRow, files: SourceFiles) -> SourceFiles:
        """Return the files of a source with ids that no file of an earlier source has."""
        own, earlier = _Names(source.spec), dict(self._sources)
        self._sources[source.number] = own
        if not (earlier or self._kept) or not files.files:
            return files
        mine = {name for name, _ in files.files}
        renamed = tuple((self._unique(name, own, earlier, mine), path) for name, path in files.files)
        return replace(files, files=renamed)

    def keep(self, source: SourceRow) -> None:
        """Note a source whose files are not read now: its stored documents keep their ids, too."""
        self._kept.add(source.number)
        if source.kind == "path":
            self._sources[source.number] = _Names(source.spec)

    def _unique(self, name: str, own: _Names, earlier: Mapping[int, _Names], mine: Container[str]) -> str:
        if not self._is_taken(name, earlier):
            return name
        for ending in own.endings():
            longer = f"{ending}/{name}"
            apart = all(ending not in names.endings() for names in earlier.values())
            if apart and longer not in mine and not self._is_taken(longer, earlier):
                return longer
        return name

    def _is_taken(self, name: str, earlier: Mapping[int, _Names]) -> bool:
        return self._source_of(name) in self._kept or any(names.has(name) for names in earlier.values())


class _Names:
    """The relative paths of a source's files."""

    def __init__(self, spec: str) -> None:
        self._is_glob = is_glob(spec)
        path = Path(spec)
        while self._is_glob and glob.has_magic(str(path)):
            path = path.parent
        self._spec = spec
        self._name = None if self._is_glob or not path.is_file() else path.name  # a folder may be away
        self._folder = path if self._name is None else path.parent
        self._matches: frozenset[str] | None = None

    def has(self, name: str) -> bool:
        """Return whether the source has a file with a relative path."""
        if self._name is not None:
            return name == self._name
        if self._is_glob:
            if self._matches is None:
                self._matches = frozenset(found for found, _ in find(self._spec).files)
            return name in self._matches
        return os.path.lexists(self._folder / name)

    def endings(self) -> Iterator[str]:
        """Yield the ends of the folder's path, the shortest first."""
        parts = [part for part in self._folder.parts if part != self._folder.anchor]
        return ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))
