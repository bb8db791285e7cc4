"""The files that documents were read from, and the locations of hits in them: lines, page, cell, headings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ketrag_fast.base.time_limit import in_time
from ketrag_fast.errors import KetragError
from ketrag_fast.records import dataclass
from ketrag_fast.storage.known_files import KnownFile, is_hidden_by_error, is_missing, stats_of
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_files import base_of, escaped, file_of
from ketrag_fast.types.locations import Location

_PART: Final = re.compile(r"[#:][^/#:]*$")
"""The suffix that the id of a row or line has after its file name."""
_LOOK: Final = 1.0
"""Maximum seconds to look up the files of results."""
_LINE: Final = re.compile(r":\d+")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The file of a document: its absolute path, its source, and its state since it was indexed.

    `state` is "changed", "missing", or None if unchanged. `part` locates the document in the file: `#2` for
    a row, `/notes.txt` for a member of an archive. `changed` is when the file was changed last before it was
    indexed, in ns since 1970; None if it is not known.
    """

    path: str
    source: str
    state: str | None
    part: str = ""
    changed: int | None = None


class SourcePaths:
    """Finds the files of documents. Each call opens the tables again, so that a build need not wait."""

    def __init__(self, folder: Path) -> None:
        self._layout = Layout(folder)

    def of(self, names: Iterable[str]) -> dict[str, SourceFile]:
        """Return the files of documents by document. Documents that a program passed have no file."""
        found = {}
        specs, known = self._origins(dict.fromkeys(names))
        paths, about = [file.path for file in known.values()], f"stat {self._layout.root}"
        looked = in_time(lambda: stats_of(paths), _LOOK, name=about) or [
            file.stat
            for file in known.values()  # a disk that does not answer: nothing tells of changes
        ]
        stats = dict(zip(known, looked, strict=True))
        for name, spec in specs.items():
            base, file = base_of(spec), known.get(name)
            is_here = file is not None and (not is_missing(stats[name]) or is_hidden_by_error(file.path))
            path = Path(file.path) if file is not None and is_here else file_of(spec, name)
            state = None
            if path is None:
                state = "missing"
                if base.is_dir() and not _is_file_name(name):
                    continue  # the id looks like that of a line of a data set
                plain = without_part(name)
                is_source = base.name == plain and not base.is_dir()
                path = base if is_source else base.joinpath(*plain.split("/"))
            elif file is not None and not is_missing(stats[name]) and not file.is_as(stats[name]):
                state = "changed"
            own = escaped(path.name if path == base else path.relative_to(base).as_posix())
            at = name.find(own)
            part = name[at + len(own) :] if at >= 0 else ""
            changed = None if file is None else file.changed
            found[name] = SourceFile(escaped(os.path.abspath(path)), spec, state, part, changed)  # noqa: PTH100
        return found

    def specs(self, names: Iterable[str] | None = None) -> Mapping[str, str]:
        """Return the sources of some documents, or of all documents."""
        from ketrag_fast.storage.source_table import open_sources

        if not self._layout.tables.is_file():
            return {}
        with open_sources(self._layout.tables) as opened:
            return opened.origins(names)

    def _origins(self, names: Iterable[str]) -> tuple[Mapping[str, str], Mapping[str, KnownFile]]:
        """Return the sources of some documents, and what is known of their files."""
        from ketrag_fast.storage.source_table import open_sources

        if not self._layout.tables.is_file():
            return {}, {}
        with open_sources(self._layout.tables) as opened:
            specs = opened.origins(names)
            return specs, opened.files_of(specs)


def _is_file_name(name: str) -> bool:
    """Return whether an id ends with the extension of a file type that a reader supports."""
    from ketrag_fast.readers.file_types import BY_SUFFIX

    return PurePosixPath(without_part(name)).suffix.lower() in BY_SUFFIX


def without_part(name: str) -> str:
    """Return the id of a row or line without the suffix after its file name.

    Examples:
        >>> without_part("crew.csv#2")
        'crew.csv'
    """
    return _PART.sub("", name)


def sources_of(path: Path) -> tuple[str, ...]:
    """Return the sources of an index, or an empty result if they cannot be read."""
    from ketrag_fast.storage.source_table import open_sources

    tables = Layout(path).tables
    if not tables.is_file():
        return ()
    try:
        with open_sources(tables) as opened:
            return tuple(row.spec for row in opened.sources() if row.spec)
    except KetragError:
        return ()


def place_fields(
    document: str, files: Mapping[str, SourceFile], location: Location, title: str
) -> dict[str, Any]:
    """Return the fields of a `Place`."""
    file = files.get(document)
    lines, page = location.get("lines"), location.get("page", location.get("slide"))
    cell, sheet, time = location.get("cell"), location.get("sheet"), location.get("time")
    if isinstance(cell, int):
        cell = f"cell{cell}"
    elif cell is not None:
        cell = str(cell).partition(":")[0]  # the first cell of a row
    part = "" if file is None or cell is not None else file.part
    if lines is None and _LINE.fullmatch(part):  # a line of a JSON Lines file
        lines = [int(part[1:])] * 2
    return {
        "document": document,
        "path": None if file is None else file.path,
        "source": None if file is None else file.source,
        "lines": (int(lines[0]), int(lines[1])) if isinstance(lines, list) else None,
        "page": page if isinstance(page, int) else None,
        "cell": None if cell is None else f"{sheet}!{cell}" if sheet else str(cell),
        "time": None if time is None else str(time),
        "headings": heading_path(title, location),
        "state": None if file is None else file.state,
        "part": "" if _LINE.fullmatch(part) else part,
    }


def heading_path(title: str, location: Location) -> tuple[str, ...]:
    """Return the title of a document and the headings above a passage, the outermost first.

    Examples:
        >>> heading_path("Purge (Change documents)", {"heading": ["Purge"]})
        ('Change documents', 'Purge')
        >>> heading_path("find (tags.py › Node)", {"symbol": ["Node", "__repr__"]})
        ('tags.py', 'Node', '__repr__')
    """
    found = location.get("heading", location.get("symbol"))
    headings = [str(one) for one in found] if isinstance(found, (list, tuple)) else []
    outer = title
    if headings and title.endswith(")"):
        leaf, _, rest = title.partition(" (")
        if leaf in headings or "symbol" in location:  # titles of code are file names
            outer = rest[:-1].split(" › ")[0]
    path = [outer, *headings] if outer and (not headings or headings[0] != outer) else headings
    return tuple(path)
