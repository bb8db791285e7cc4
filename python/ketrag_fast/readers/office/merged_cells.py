"""Merged cells of a sheet, and the names of columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ketrag_fast.readers.zip_xml import Package

_MOST_MERGED: Final = 100_000
"""Merged ranges of a sheet that are followed."""
_MOST_OPEN: Final = 1_000
"""Merged ranges that reach into a row."""
_WIDEST: Final = 100
"""Columns of a merged range that are filled with its text."""
REPEATED: Final = 300
"""A longer text of a merged range is not repeated."""
_MERGED: Final = re.compile(
    rb"<(?:\w+:)?mergeCell\s[^<>]*?\bref=[\"']([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})[\"']"
)
_LONGEST_MERGED: Final = 200
"""Bytes of the element of a merged range."""

Range = tuple[int, int, int, int]
"""First row and column, and last row and column, of merged cells."""


def merged_ranges(package: Package, path: str) -> Mapping[int, list[Range]]:
    """Return the merged ranges of a sheet by their first row. They follow the cells, which are streamed."""
    found: dict[int, list[Range]] = {}
    rest, count = b"", 0
    for piece in package.pieces(path, is_counted=False):
        data = rest + piece
        for one in _MERGED.finditer(data):
            left, right = column_of(one[1].decode(), 0), column_of(one[3].decode(), 0)
            count += 1
            if count <= _MOST_MERGED and int(one[4]) >= int(one[2]) and right >= left:
                found.setdefault(int(one[2]), []).append((int(one[2]), left, int(one[4]), right))
        rest = data[max(data.rfind(b"<"), len(data) - _LONGEST_MERGED) :]
    return found


class MergedCells:
    """Repeats the text of merged cells in the rows below that have text."""

    def __init__(self, ranges: Mapping[int, list[Range]]) -> None:
        self._ranges = ranges
        self._open: list[tuple[Range, str]] = []

    def reaches(self, row: int) -> bool:
        """Return whether merged cells begin in a row or reach into it."""
        return bool(self._open) or row in self._ranges

    def fill(self, row: int, cells: dict[int, str]) -> dict[int, int]:
        """Fill the cells of a row, and return the last column of each one that is merged to the right."""
        across: dict[int, int] = {}
        self._open = [one for one in self._open if one[0][2] >= row]
        has_text = bool(cells)
        for (_, left, _, right), text in self._open:
            if has_text and left not in cells:
                cells[left] = text
                if right > left:
                    across[left] = min(right, left + _WIDEST)
        for one in self._ranges.get(row, ()):
            _, left, bottom, right = one
            text = cells.get(left, "")
            if text and len(text) <= REPEATED:
                if right > left:
                    across[left] = min(right, left + _WIDEST)
                if bottom > row and len(self._open) < _MOST_OPEN:
                    self._open.append((one, text))
        return across


def column_of(reference: str, default: int) -> int:
    """Return the column of a cell reference, counted from 0: 2 for `C7`."""
    found = 0
    for char in reference[:4]:
        if not "A" <= char <= "Z":
            break
        found = found * 26 + ord(char) - 64
    return found - 1 if found else default


def letters_of(column: int) -> str:
    """Return the letters of a column counted from 0: `C` for 2."""
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name
