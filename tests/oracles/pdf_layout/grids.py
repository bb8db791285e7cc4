"""Grids that are drawn on a page: the rules between the cells of a table.

Thin paths are joined to horizontal and vertical rules. Rules that touch each other make a grid; cells of
a grid without a rule between them are one cell, whose text is in the first of them.
"""

from __future__ import annotations

import ctypes
from bisect import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

Rule = tuple[float, float, float]
"""The place of a rule across its direction, its begin and its end."""
_THIN: Final = 2.5
_SHORTEST: Final = 5.0
_SLACK: Final = 4.0
"""Rules at most this many points apart touch each other."""
_MOST: Final = 5000
"""A page with more objects than this is not searched for rules."""
_MOST_RULES: Final = 400
_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
_KIND = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_BOUNDS = ctypes.PYFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)


@dataclass(slots=True)
class Grid:
    """The places of the rules of a table, and the row and column of the first cell joined to each cell."""

    xs: list[float]
    ys: list[float]
    first: dict[tuple[int, int], tuple[int, int]]

    def cell(self, x: float, y: float) -> tuple[int, int] | None:
        """Return the row and column of a point, or None outside of the grid."""
        row, column = bisect(self.ys, y) - 1, bisect(self.xs, x) - 1
        if 0 <= row < len(self.ys) - 1 and 0 <= column < len(self.xs) - 1:
            return self.first[row, column]
        return None


def path_boxes(raw: Any, page: Any) -> list[tuple[float, float, float, float]]:
    """Return left, top, right, bottom of the paths on a page, with y upwards."""
    own = ctypes.cast(page.raw, ctypes.c_void_p).value or 0
    count = raw.FPDFPage_CountObjects(page)
    if not 4 < count <= _MOST:
        return []
    every = list(map(_OBJECT(_address(raw.FPDFPage_GetObject)), repeat(own), range(count)))
    kinds = map(_KIND(_address(raw.FPDFPageObj_GetType)), every)
    paths = [one for one, kind in zip(every, kinds, strict=True) if kind == raw.FPDF_PAGEOBJ_PATH]
    values = (ctypes.c_float * 4)()
    base = ctypes.addressof(values)
    bounds = _BOUNDS(_address(raw.FPDFPageObj_GetBounds))
    found = []
    for path in paths:
        if bounds(path, base, base + 4, base + 8, base + 12):
            left, bottom, right, top = values
            found.append((left, top, right, bottom))
    return found


def grids_of(boxes: Iterable[tuple[float, float, float, float]]) -> list[Grid]:
    """Return the grids that thin boxes draw. Coordinates have y downwards."""
    across: list[Rule] = []
    down: list[Rule] = []
    for left, top, right, bottom in boxes:
        if bottom - top <= _THIN and right - left > _SHORTEST:
            across.append(((top + bottom) / 2, left, right))
        elif right - left <= _THIN and bottom - top > _SHORTEST:
            down.append(((left + right) / 2, top, bottom))
    across, down = _joined(across), _joined(down)
    if len(across) < 3 or len(down) < 3 or len(across) + len(down) > _MOST_RULES:
        return []
    found = []
    for rows, columns in _connected(across, down):
        if len(rows) > 2 and len(columns) > 2:
            found.append(_grid(rows, columns))
    return [one for one in found if len(one.xs) > 2 and len(one.ys) > 2]


def _joined(rules: list[Rule]) -> list[Rule]:
    """Join rules at one place that touch each other."""
    found: list[Rule] = []
    group: list[Rule] = []
    for rule in [*sorted(rules), None]:
        if group and (rule is None or rule[0] - group[0][0] > 1.5):
            place = group[0][0]
            begin, end = -1e9, -1e9
            for _, start, stop in sorted(group, key=lambda own: own[1]):
                if start - end > _SLACK:
                    if end > begin:
                        found.append((place, begin, end))
                    begin = start
                end = max(end, stop)
            found.append((place, begin, end))
            group = []
        if rule is not None:
            group.append(rule)
    return found


def _connected(across: list[Rule], down: list[Rule]) -> list[tuple[list[Rule], list[Rule]]]:
    """Return the horizontal and vertical rules of each set of rules that touch each other."""
    owner = list(range(len(across) + len(down)))

    def root(at: int) -> int:
        while owner[at] != at:
            owner[at] = owner[owner[at]]
            at = owner[at]
        return at

    for i, (y, left, right) in enumerate(across):
        for j, (x, top, bottom) in enumerate(down, len(across)):
            if left - _SLACK <= x <= right + _SLACK and top - _SLACK <= y <= bottom + _SLACK:
                owner[root(j)] = root(i)
    sets: dict[int, tuple[list[Rule], list[Rule]]] = {}
    for at in range(len(owner)):
        rows, columns = sets.setdefault(root(at), ([], []))
        if at < len(across):
            rows.append(across[at])
        else:
            columns.append(down[at - len(across)])
    return list(sets.values())


def _grid(across: list[Rule], down: list[Rule]) -> Grid:
    xs, ys = _places(down, across), _places(across, down)
    first: dict[tuple[int, int], tuple[int, int]] = {}
    for row in range(len(ys) - 1):
        y = (ys[row] + ys[row + 1]) / 2
        for column in range(len(xs) - 1):
            x = (xs[column] + xs[column + 1]) / 2
            if column and not _has_rule(down, xs[column], y):
                first[row, column] = first[row, column - 1]
            elif row and not _has_rule(across, ys[row], x):
                first[row, column] = first[row - 1, column]
            else:
                first[row, column] = row, column
    return Grid(xs, ys, first)


def _places(rules: list[Rule], others: list[Rule]) -> list[float]:
    """Return the places of rules, and the ends of the others: the sides of a table may be open."""
    found: list[float] = []
    for place in sorted(
        [*(rule[0] for rule in rules), min(one[1] for one in others), max(one[2] for one in others)]
    ):
        if not found or place - found[-1] > _SLACK:
            found.append(place)
    return found


def _has_rule(rules: list[Rule], place: float, at: float) -> bool:
    return any(abs(rule[0] - place) <= _SLACK and rule[1] <= at <= rule[2] for rule in rules)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
