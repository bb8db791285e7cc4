"""Tables with drawn rules: the text between rules is a cell."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from typing import Final

from tests.oracles.pdf_layout.grids import Grid
from tests.oracles.pdf_layout.lines import Line, PageLines, Word, line_of_words

_FILLED: Final = 0.4
"""The minimum share of the cells of a table that have text; diagrams have less."""
_ACROSS: Final = 0.03
"""The maximum share of words that cross a rule."""
_LABELLED: Final = 0.6
"""A cell over several rows with text in more than this share of them has a label for each of them."""
_NUMBER = re.compile(r"[-+–—−()<>±~$€£¥\d.,%]+")


def ruled_tables(page: PageLines) -> tuple[list[tuple[Line, list[list[str]]]], list[Line]]:
    """Return the tables of a page's grids, and the lines outside of them.

    A table is its rows and a line without text in its place.
    """
    lines = page.lines
    found: list[tuple[Line, list[list[str]]]] = []
    for grid in page.grids:
        inside: list[tuple[Line, list[Word]]] = []
        outside: list[Line] = []
        for line in lines:
            words = [word for word in line.words if line.upright and _cell_of(grid, word) is not None]
            if not words:
                outside.append(line)
                continue
            inside.append((line, words))
            rest = [word for word in line.words if _cell_of(grid, word) is None]
            if rest:
                outside.append(line_of_words(rest, line.size, False))
        rows = _table(grid, inside)
        if rows is not None:
            size = max(line.size for line, _ in inside)
            place = Line(grid.xs[0], grid.ys[0], grid.xs[-1], grid.ys[-1], size, "")
            found.append((place, rows))
            lines = outside
    return found, lines


def _cell_of(grid: Grid, word: Word) -> tuple[int, int] | None:
    return grid.cell((word.left + word.right) / 2, (word.top + word.bottom) / 2)


Cells = dict[tuple[int, int], list[str]]
"""The lines of text of each cell, by row and column."""


def _table(grid: Grid, inside: list[tuple[Line, list[Word]]]) -> list[list[str]] | None:
    """Return the rows of a grid, or None if it is not a table with a rule between its rows."""
    cells = _cells(grid, inside)
    filled = {row for row, _ in cells}
    if len(filled) < 2 or len({column for _, column in cells}) < 2:
        return None
    every = set(grid.first.values())
    columns = [sum(1 for at, _ in every if at == row) for row in filled]
    if 3 * sum(1 for count in columns if count < 2) > len(filled):
        return None  # no rules between its columns
    if len(cells) < _FILLED * len(every) or _crossing(grid, inside) > _ACROSS:
        return None
    if any(len(texts) > 1 and all(map(_is_number, texts)) for texts in cells.values()):
        return None  # several rows between two rules
    height, width = len(grid.ys) - 1, len(grid.xs) - 1
    rows = [[" ".join(cells.get((row, column), ())) for column in range(width)] for row in range(height)]
    return [row for row in rows if any(row)]


def _cells(grid: Grid, inside: list[tuple[Line, list[Word]]]) -> Cells:
    """Return the text of the cells; labels without rules between them are in the rows next to them."""
    joined: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for _, words in sorted(inside, key=lambda own: (own[0].top + own[0].bottom, own[0].left)):
        parts: dict[tuple[int, int], list[Word]] = {}
        for word in sorted(words):
            if (cell := _cell_of(grid, word)) is not None:
                parts.setdefault(cell, []).append(word)
        for cell, own in parts.items():
            row = bisect(grid.ys, (own[0].top + own[0].bottom) / 2) - 1
            joined.setdefault(cell, []).append((row, " ".join(word.text for word in own)))
    heights = Counter(first for (_, column), first in grid.first.items() if column == first[1])
    found: Cells = {}
    for cell, texts in joined.items():
        rows = {row for row, _ in texts}
        are_rows = len(rows) == len(texts) > max(2, _LABELLED * heights[cell])
        for row, text in texts:
            found.setdefault((row, cell[1]) if are_rows else cell, []).append(text)
    return found


def _crossing(grid: Grid, inside: list[tuple[Line, list[Word]]]) -> float:
    """Return the share of words that cross a rule; a single one counts nothing."""
    total = crossing = 0
    for _, words in inside:
        for word in words:
            middle = (word.top + word.bottom) / 2
            total += 1
            ends = grid.cell(word.left + 2, middle), grid.cell(word.right - 2, middle)
            crossing += word.right - word.left > 4 and ends[0] != ends[1]
    return (crossing - 1) / total


def _is_number(text: str) -> bool:
    return all(_NUMBER.fullmatch(word) for word in text.split())
