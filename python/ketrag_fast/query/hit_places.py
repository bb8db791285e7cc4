"""Locations of hits: file, lines, page or cell, and the headings above."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.types.locations import Location

if TYPE_CHECKING:
    from ketrag_fast.query.source_paths import SourceFile

_LINE: Final = re.compile(r":\d+")


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
        "title": heading_path(title, location),
        "state": None if file is None else file.state,
        "part": "" if _LINE.fullmatch(part) else part,
    }


def heading_path(title: str, location: Location) -> tuple[str, ...]:
    """Return the title of a document and the headings above a passage, the outermost first.

    Examples:
        >>> heading_path("Purge (Change documents)", {"heading": ["Purge"]})
        ('Change documents', 'Purge')
    """
    found = location.get("heading", location.get("symbol"))
    headings = [str(one) for one in found] if isinstance(found, (list, tuple)) else []
    outer = title
    if headings and title.endswith(")"):
        leaf, _, rest = title.partition(" (")
        if leaf in headings:
            outer = rest[:-1].split(" › ")[0]
    path = [outer, *headings] if outer and (not headings or headings[0] != outer) else headings
    return tuple(path)
