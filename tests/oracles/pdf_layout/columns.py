"""Find the reading order of a page: column by column, with lines that span columns in between.

A gutter is a vertical stripe that few lines cross, with columns of text on both sides. Short pieces of text
next to each other (forms, tables) form no columns and are read row by row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from tests.oracles.pdf_layout.lines import Line, PageLines
from tests.oracles.pdf_layout.ruled import ruled_tables
from tests.oracles.pdf_layout.tables import TableRow, tables_of

_LEAST: Final = 4
"""Minimum number of lines in a column."""
_STEP: Final = 2.0
_CROSSING: Final = 0.5
"""Maximum number of lines across a gutter, relative to the lines of the smaller side."""
_WORDY: Final = 14
"""Minimum median length of a column's lines in characters; shorter ones are table cells."""
_FILLED: Final = 0.55
_PROSE: Final = 0.75
"""Minimum median width of the lines of running text next to a table, relative to its column."""
_NARROW: Final = 5.0
_LEADERS = re.compile(r"\s?(?:\.\s?){4,}")
_CELLS: Final = 2.0
"""A gap of this many letter heights separates cells."""
_STRETCHED: Final = 3
_LONG: Final = 20
"""Minimum median length of the lines of short columns of running text, in characters."""
_EDGE: Final = 1.5
_JUSTIFIED: Final = 0.6
_NEXT: Final = 1.3


@dataclass(slots=True)
class TextRow:
    """The text on one line of a column, with tabs between cells. `table` is 0 outside of tables."""

    left: float
    top: float
    right: float
    bottom: float
    size: float
    text: str
    soft: bool = False
    cells: int = 1
    column: int = 0
    table: int = 0


def rows_of(page: PageLines) -> list[TextRow]:
    """Return the rows of a page in reading order; text that is not upright comes last."""
    found: list[TextRow] = []
    lines = page.lines
    column = _Counter()
    if page.grids:
        tables, lines = ruled_tables(page)
        lines = [place for place, _ in tables] + lines
        column.tables = {id(place): rows for place, rows in tables}
    _read_column([line for line in lines if line.upright], found, column, 0)
    for row in found:
        if ". . . ." in row.text or "....." in row.text:  # a table of contents
            row.text = _LEADERS.sub("\t", row.text).strip("\t")
            row.cells = row.text.count("\t") + 1
    turned = [line for line in lines if not line.upright]
    number = found[-1].column + 1 if found else 0
    for line in turned:
        found.append(
            TextRow(line.left, line.top, line.right, line.bottom, line.size, line.text, line.soft, 1, number)
        )
        number += 1
    return found


class _Counter:
    def __init__(self) -> None:
        self.value = 0
        self.tables: dict[int, list[list[str]]] = {}


def _read_column(lines: list[Line], out: list[TextRow], column: _Counter, depth: int) -> None:
    gutter = _gutter(lines) if len(lines) >= 2 * _LEAST and depth < 4 else None
    if gutter is None:
        if lines:
            out.extend(_rows(lines, column, column.tables))
            column.value += 1
        return
    across = sorted((one for one in lines if one.left < gutter < one.right), key=lambda one: one.top)
    sides = [one for one in lines if not one.left < gutter < one.right]
    edges = [(one.top + one.bottom) / 2 for one in across]
    bands: list[list[Line]] = [[] for _ in range(len(across) + 1)]
    for one in sides:
        middle = (one.top + one.bottom) / 2
        bands[_place(edges, middle)].append(one)
    pending: list[Line] = []
    for number, band in enumerate(bands):
        if band:
            if pending:
                _read_column(pending, out, column, 4)
                pending = []
            for side in (True, False):
                part = [one for one in band if (one.right <= gutter) == side]
                _read_column(part, out, column, depth + 1)
        if number < len(across):
            pending.append(across[number])
    if pending:
        _read_column(pending, out, column, 4)


def _place(edges: list[float], value: float) -> int:
    low, high = 0, len(edges)
    while low < high:
        middle = (low + high) // 2
        if edges[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def _gutter(lines: list[Line]) -> float | None:
    """Return the middle of the stripe between two columns, or None if there is one column."""
    first = min(line.left for line in lines)
    last = max(line.right for line in lines)
    width = last - first
    if width < 60:
        return None
    half = 0.55 * width
    wide_lines = sum(1 for line in lines if line.right - line.left > half)
    if wide_lines > 0.6 * len(lines):
        return None  # one column: most lines cross the middle
    steps = int(width / _STEP) + 2
    covered, ended = [0] * (steps + 1), [0] * (steps + 1)
    for line in lines:
        begin, end = int((line.left - first) / _STEP), int((line.right - first) / _STEP) + 1
        covered[begin] += 1
        covered[end] -= 1
        ended[end] += 1
    best: tuple[float, int, int] | None = None
    crossing = left = start = 0
    before = (-1, -1)
    for step in range(steps + 1):
        crossing += covered[step]
        left += ended[step]
        if (crossing, left) == before:
            continue
        smaller = min(before[1], len(lines) - sum(before))
        wide = (step - start) * _STEP
        if smaller >= _LEAST and before[0] <= _CROSSING * smaller and wide >= _NARROW:
            value = smaller - 2 * before[0] + min(wide, 30) / 30
            if best is None or value > best[0]:
                best = value, start, step
        before, start = (crossing, left), step
    if best is None:
        return None
    gutter = first + (best[1] + best[2]) / 2 * _STEP
    return gutter if _columns(lines, gutter, first, last) else None


def _columns(lines: list[Line], gutter: float, first: float, last: float) -> bool:
    """Return whether both sides are running text at the same height."""
    left = [line for line in lines if line.right <= gutter]
    right = [line for line in lines if line.left >= gutter]
    if len(left) < _LEAST or len(right) < _LEAST:
        return False
    low = max(min(line.top for line in left), min(line.top for line in right))
    high = min(max(line.bottom for line in left), max(line.bottom for line in right))
    if high - low < 2 * median(line.bottom - line.top for line in lines):
        return False
    if _is_beside(left, first, gutter, right) or _is_beside(right, gutter, last, left):
        return True
    for side, start, end in ((left, first, gutter), (right, gutter, last)):
        if median(len(line.text) for line in side) < _WORDY:
            return False
        wide = _FILLED * (end - start)
        if median(line.right - line.left for line in side) >= wide:
            continue
        # A side may itself have columns: then the lines at one height fill it together.
        heights = {int((line.top + line.bottom) / (2 * max(line.size, 4.0))) for line in side}
        if sum(line.right - line.left for line in side) < wide * len(heights):
            return False
    return True


def _is_beside(side: list[Line], start: float, end: float, other: list[Line]) -> bool:
    """Return whether a side is running text next to something else, whose lines are at other heights."""
    if len(side) < 2 * _LEAST or median(len(line.text) for line in side) < 2 * _WORDY:
        return False
    if median(line.right - line.left for line in side) < _PROSE * (end - start):
        return False
    middles = sorted((line.top + line.bottom) / 2 for line in side)
    level = 0
    for line in other:
        middle = (line.top + line.bottom) / 2
        at = _place(middles, middle)
        near = min(abs(middle - one) for one in middles[max(at - 1, 0) : at + 1])
        level += near < 0.2 * max(line.size, 1.0)
    return 2 * level < len(other)


def _rows(lines: list[Line], column: _Counter, tables: dict[int, list[list[str]]]) -> list[TextRow]:
    """Return rows from top to bottom. `tables` has the rows of the lines that stand for tables with rules."""
    places = sorted((line for line in lines if id(line) in tables), key=lambda line: line.top)
    if not places:
        return _plain_rows(lines, column, 1)
    lines = [line for line in lines if id(line) not in tables]
    found: list[TextRow] = []
    number = 1
    for place in [*places, None]:
        above = lines if place is None else [line for line in lines if line.top < place.top]
        own = _plain_rows(above, column, number)
        number = max((row.table for row in own), default=number) + 1
        found += own
        if place is not None:
            lines = [line for line in lines if line.top >= place.top]
            found += _ruled_rows(place, tables[id(place)], column.value, number)
            number += 1
    return found


def _ruled_rows(place: Line, rows: list[list[str]], column: int, number: int) -> list[TextRow]:
    """Return the rows of a table with rules."""
    step = (place.bottom - place.top) / len(rows)
    found = []
    for at, row in enumerate(rows):
        text = "\t".join(row).rstrip("\t")
        top = place.top + at * step
        cells = text.count("\t") + 1
        found.append(
            TextRow(place.left, top, place.right, top + step, place.size, text, False, cells, column, number)
        )
    return found


def _plain_rows(lines: list[Line], column: _Counter, first_number: int) -> list[TextRow]:
    """Return rows from top to bottom; lines at one height are joined from left to right."""
    ordered = sorted([(line.top + line.bottom, line.left, at) for at, line in enumerate(lines)])
    groups: list[list[Line]] = []
    last = 0.0  # twice the lowest middle of a line that belongs to the group
    for twice, _, at in ordered:
        line = lines[at]
        if groups and twice < last:
            groups[-1].append(line)
            continue
        groups.append([line])
        size, height = line.size, line.bottom - line.top
        # The ink of letters is lower than their size, and a value of a form may be higher than its label.
        last = twice + (0.9 * size if 1.0 < size < height else 1.1 * max(height, 1.0))
    for group in groups:
        group.sort(key=lambda line: line.left)
    found: list[TextRow] = []
    at, number = 0, first_number
    for first, end, rows in tables_of(groups):
        if end - first <= _STRETCHED and any(group[-1].soft for group in groups[first : end - 1]):
            continue  # lines of running text, whose blanks were stretched
        found += _text_rows(groups[at:first], column.value)
        if prose := _prose_columns(groups, first, end):
            sides, at = prose
            for side in sides:
                column.value += 1
                found += [_text_row(group, column.value, True) for group in side]
            column.value += 1
            continue
        for row in rows:
            members = [line for member in row.members for line in groups[member]]
            found.append(_table_row(members, row, column.value, number))
        at = end
        number += 1
    found += _text_rows(groups[at:], column.value)
    return found


def _prose_columns(
    groups: list[list[Line]], first: int, end: int
) -> tuple[list[list[list[Line]]], int] | None:
    """Return two columns of running text that look like a table, and the end of their groups."""
    own = groups[first:end]
    if len(own) < _LEAST:
        return None
    columns: list[tuple[float, float]] = []
    for left, right in sorted((line.left, line.right) for group in own for line in group):
        if columns and left <= columns[-1][1]:
            columns[-1] = columns[-1][0], max(columns[-1][1], right)
        else:
            columns.append((left, right))
    if len(columns) != 2:
        return None
    middle = (columns[0][1] + columns[1][0]) / 2
    sides = _sides(own, middle)
    for side in sides:
        lengths = [sum(len(line.text) + 1 for line in group) for group in side]
        if len(side) < _LEAST or median(lengths) < _LONG:
            return None
    if not any(group[-1].soft for side in sides for group in side[:-1]) and not all(map(_justified, sides)):
        return None
    middles = [(group[0].top + group[0].bottom) / 2 for group in own]
    step = median(b - a for a, b in pairwise(middles))
    for group in groups[end:]:
        before = groups[end - 1][0]
        distance = (group[0].top + group[0].bottom - before.top - before.bottom) / 2
        beside = all(line.left >= middle and line.right <= columns[1][1] + _EDGE for line in group)
        if not beside or distance > _NEXT * step:
            break
        end += 1
    return _sides(groups[first:end], middle), end


def _sides(groups: list[list[Line]], middle: float) -> list[list[list[Line]]]:
    parts = [
        [[line for line in group if (line.left < middle) == left] for group in groups]
        for left in (True, False)
    ]
    return [[group for group in side if group] for side in parts]


def _justified(side: list[list[Line]]) -> bool:
    ends = [max(line.right for line in group) for group in side]
    return sum(end >= max(ends) - _EDGE for end in ends) >= _JUSTIFIED * len(ends)


def _text_rows(groups: list[list[Line]], column: int) -> list[TextRow]:
    cut = [False, *(group[-1].soft for group in groups)]  # whether the row before ends inside a word
    return [_text_row(group, column, any(cut[at : at + 2])) for at, group in enumerate(groups)]


def _text_row(group: list[Line], column: int, is_running: bool) -> TextRow:
    """Return lines at one height as a row, with tabs at wide gaps except in running text."""
    if len(group) == 1:
        one = group[0]
        return TextRow(one.left, one.top, one.right, one.bottom, one.size, one.text, one.soft, 1, column)
    text, cells = group[0].text, 1
    for before, line in pairwise(group):
        gap = max(line.left - before.right, before.left - line.right)
        wide = not is_running and gap > _CELLS * max(before.size, 1.0)
        cells += wide
        text += ("\t" if wide else " ") + line.text
    return _bounded(group, text, group[-1].soft, cells, column)


def _table_row(members: list[Line], row: TableRow, column: int, table: int) -> TextRow:
    """Return a row of a table, with a tab between columns."""
    text = "\t".join(row.cells).rstrip("\t")
    found = _bounded(members, text, False, text.count("\t") + 1, column)
    found.table = table
    return found


def _bounded(group: list[Line], text: str, soft: bool, cells: int, column: int) -> TextRow:
    return TextRow(
        min(line.left for line in group),
        min(line.top for line in group),
        max(line.right for line in group),
        max(line.bottom for line in group),
        max(group, key=lambda line: len(line.text)).size,
        text,
        soft,
        cells,
        column,
    )
