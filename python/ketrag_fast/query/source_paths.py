"""The files that documents were read from, as the tables of an index name them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ketrag_fast.errors import KetragError
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.origins import base_of, file_of
from ketrag_fast.storage.source_stamps import read_stamps

_PART: Final = re.compile(r"[#:][^/#:]*$")
"""What the id of a row or line has after the name of its file."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The file of a document: its absolute path, its source, and whether it is as it was indexed.

    `state` is "changed", "missing" or None. `part` is what the document is in the file: `#2` for a row,
    `/notes.txt` for a member of an archive.
    """

    path: str
    source: str
    state: str | None
    part: str = ""


class SourcePaths:
    """Files by document. The tables are opened for each call, so that a build is not held up."""

    def __init__(self, folder: Path) -> None:
        self._layout = Layout(folder)

    def of(self, names: Iterable[str]) -> dict[str, SourceFile]:
        """Return the files of documents; those that a program passed have none."""
        found = {}
        stamps = read_stamps(self._layout)
        for name, spec in self.specs(dict.fromkeys(names)).items():
            base, path = base_of(spec), file_of(spec, name)
            state = None
            if path is None:
                state = "missing"
                if base.is_dir() and not _is_file_name(name):
                    continue  # the id is one that a line of a data set has
                plain = without_part(name)
                is_source = base.name == plain and not base.is_dir()
                path = base if is_source else base.joinpath(*plain.split("/"))
            elif stamps is not None and stamps.is_changed(str(path)):
                state = "changed"
            own = path.name if path == base else path.relative_to(base).as_posix()
            at = name.find(own)
            part = name[at + len(own) :] if at >= 0 else ""
            found[name] = SourceFile(os.path.abspath(path), spec, state, part)  # noqa: PTH100 - links stay
        return found

    def specs(self, names: Iterable[str] | None = None) -> Mapping[str, str]:
        """Return the source of each document, or of all documents."""
        from ketrag_fast.storage.source_table import open_sources

        if not self._layout.tables.is_file():
            return {}
        with open_sources(self._layout.tables) as opened:
            return opened.origins(names)


def _is_file_name(name: str) -> bool:
    """Return whether an id ends like the name of a file that a reader takes."""
    from ketrag_fast.readers.file_types import BY_SUFFIX

    return PurePosixPath(without_part(name)).suffix.lower() in BY_SUFFIX


def without_part(name: str) -> str:
    """Return the id of a row or line without what it has after the name of its file.

    Examples:
        >>> without_part("crew.csv#2")
        'crew.csv'
    """
    return _PART.sub("", name)


def sources_of(path: Path) -> tuple[str, ...]:
    """Return the sources of an index; none if they cannot be read."""
    from ketrag_fast.storage.source_table import open_sources

    tables = Layout(path).tables
    if not tables.is_file():
        return ()
    try:
        with open_sources(tables) as opened:
            return tuple(row.spec for row in opened.sources() if row.spec)
    except KetragError:
        return ()
