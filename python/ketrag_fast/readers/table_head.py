"""The head of a table: rows above it, such as a title, and the names of its columns in one or two rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

_MOST_ABOVE: Final = 20
"""Maximum number of rows above a table."""
_WIDE: Final = 4
"""Columns of a table above which a row may have two cells: `Created` and a date."""
_LONGEST_UNIT: Final = 15
"""Characters of a cell in a second row with units."""
_IS_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_NUMBER: Final = re.compile(r"[-+(]?\W?\d")

Row = tuple[int, Sequence[str]]
"""The number of a row, and its cells."""
Head = tuple[list[Row], list[str], Iterator[Row]]
"""The rows above a table, the names of its columns, and its other rows."""


def split_head(rows: Iterator[Row]) -> Head:
    """Return the rows above a table, the names of its columns, "" for a column without one, and its rows.

    Rows with few cells, and comments, are above the table if two rows with several cells follow, the first
    of them without numbers but years. Else the first row is the head. A single row is above an empty table.
    """
    first = list(islice(rows, _MOST_ABOVE + 3))
    if len(first) < 2:
        return first, [], iter(())
    width = _width(first)
    above = 0
    while above < min(len(first) - 2, _MOST_ABOVE) and _is_above(first[above][1], width):
        above += 1
    head, below = first[above][1], first[above + 1][1]
    if above and (_count(head) < 2 or _count(below) < 2 or any(map(_is_amount, head))):
        above, (head, below) = 0, (first[0][1], first[1][1])
    rest = first[above + 1 :]
    if len(rest) > 1:
        names = _grouped(head, below, rest[1][1]) or _with_units(head, below, rest[1][1])
        if names is not None:
            return first[:above], names, chain(rest[1:], rows)
    return first[:above], list(head), chain(rest, rows)


def _width(rows: Sequence[Row]) -> int:
    """Return the number of cells that most rows have, the larger of two that are as common."""
    counts = Counter(_count(cells) for _, cells in rows)
    return max(counts, key=lambda count: (counts[count], count))


def _is_above(cells: Sequence[str], width: int) -> bool:
    count = _count(cells)
    if count == 1 or (cells[0].lstrip().startswith("#") and count < width):
        return True
    return count == 2 and width >= _WIDE and bool(cells[0]) and bool(cells[1])


def _grouped(head: Sequence[str], below: Sequence[str], values: Sequence[str]) -> list[str] | None:
    """Return names such as `2020 sales` if the first row has names of groups and the second those of columns.

    The columns of a group with several have numbers, and each has a name below.
    """
    groups: list[tuple[str, list[int]]] = []
    for place in range(len(below)):
        name = head[place] if place < len(head) else ""
        if name or not groups or not groups[-1][0]:
            groups.append((name, []))
        groups[-1][1].append(place)
    wide = [place for _, own in groups if len(own) > 1 for place in own]
    if not wide or any(map(_is_amount, head)):
        return None
    for place in wide:
        value = values[place] if place < len(values) else ""
        if not below[place] or _is_amount(below[place]) or not _NUMBER.match(value):
            return None
    return [f"{name} {below[place]}".strip() for name, own in groups for place in own]


def _with_units(head: Sequence[str], below: Sequence[str], values: Sequence[str]) -> list[str] | None:
    """Return names such as `weight (kg)` if the second row has the units of some columns."""
    units = [place for place, cell in enumerate(below) if cell]
    if not units or len(units) >= _count(head) or _count(values) <= len(units) or _count(head) < len(head):
        return None
    for place in units:
        value = values[place] if place < len(values) else ""
        is_unit = len(below[place]) <= _LONGEST_UNIT and not _NUMBER.match(below[place])
        if place >= len(head) or not is_unit or not _NUMBER.match(value):
            return None
    return [
        f"{name} ({below[place].strip('()[]')})" if place in units else name
        for place, name in enumerate(head)
    ]


def _count(cells: Sequence[str]) -> int:
    return sum(map(bool, cells))


def _is_amount(cell: str) -> bool:
    """Return whether a cell begins like a number and is not a year."""
    return bool(_NUMBER.match(cell)) and not _IS_YEAR.fullmatch(cell)
