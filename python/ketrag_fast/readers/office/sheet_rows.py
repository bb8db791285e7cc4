"""Rows of a sheet while it is read: merged cells repeat, hidden rows are left out, far columns move near."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ketrag_fast.readers.office.merged_cells import MergedCells, Range, letters_of
from ketrag_fast.readers.office.sheet_tables import SheetRow

LAST_COLUMN: Final = 16_384
_NEAR: Final = 128
"""Columns whose cells stay at their place; further ones follow in the order in which they appear. A row has a
text for each empty column before its last cell, so one in column 16,384 would cost as much as a full row."""
_LISTED: Final = 5


class RowCollector:
    """Collects the rows of one sheet that have text.

    Args:
        merged: The merged ranges by their first row. Ranges may be added while the rows are read.
        hidden: Whether hidden rows and columns are read; otherwise they are counted.
    """

    def __init__(self, merged: Mapping[int, list[Range]], *, hidden: bool) -> None:
        self.rows: list[SheetRow] = []
        self.hidden_columns: set[int] = set()
        self._uncomputed: list[str] = []
        self._merged = MergedCells(merged)
        self._reads_hidden = hidden
        self._far: dict[int, int] = {}
        self._far_columns: list[int] = []
        self._columns_left_out: set[int] = set()
        self._rows_left_out = 0
        self._number = self._last = 0
        self._is_hidden = False
        self._cells: dict[int, str] = {}
        self._values: dict[int, int | float | None] = {}
        self._is_strong = True

    def begin_row(self, number: int, *, is_hidden: bool) -> None:
        """Begin the row with a number, counted from 1."""
        self._number, self._is_hidden = number, is_hidden and not self._reads_hidden
        self._cells, self._values, self._is_strong = {}, {}, True

    def add(self, column: int, text: str, *, is_strong: bool) -> bool:
        """Add a cell with text. Returns False if its column is hidden.

        `is_strong` is whether the cell has the style of a head: bold, or filled.
        """
        if column in self.hidden_columns and not self._reads_hidden:
            self._columns_left_out.add(column)
            return False
        self._cells[column] = text
        self._is_strong &= is_strong
        return True

    def add_value(self, column: int, value: float | None) -> None:
        """Add the number of a cell whose text is not a plain number."""
        self._values[column] = value

    def add_uncomputed(self, column: int) -> None:
        """Note a cell whose formula has no stored value."""
        self._uncomputed.append(f"{letters_of(column)}{self._number}")

    def end_row(self) -> None:
        """End the row, and keep it if it has text."""
        if not self._cells and not self._merged.reaches(self._number):
            return
        has_text = any(self._cells.values())
        across = self._merged.fill(self._number, self._cells)
        if not has_text:
            return
        gap = self._number - self._last - 1 if self._last else 0
        self._last = self._number
        if self._is_hidden:
            self._rows_left_out += 1
            return
        if max(self._cells) >= _NEAR:
            across = self._move_far_cells(across)
        cells = [""] * (max(self._cells) + 1)
        for place, cell in self._cells.items():
            cells[place] = cell
        self.rows.append(SheetRow(self._number, cells, self._values, across, self._is_strong, max(gap, 0)))

    def _move_far_cells(self, across: Mapping[int, int]) -> dict[int, int]:
        """Move the cells of far columns next to each other; return the near cells that are merged."""
        for column in sorted(self._cells):
            if column >= _NEAR and column not in self._far:
                self._far[column] = _NEAR + len(self._far)
                self._far_columns.append(column)
        self._cells = {self._far.get(column, column): text for column, text in self._cells.items()}
        self._values = {self._far.get(column, column): value for column, value in self._values.items()}
        return {column: last for column, last in across.items() if last < _NEAR}

    def letters(self, place: int) -> str:
        """Return the letters of the column whose cells are at a place of the rows."""
        at = place - _NEAR
        return letters_of(self._far_columns[at] if 0 <= at < len(self._far_columns) else place)

    def left_out(self) -> str:
        """Return how many hidden rows and columns with text were left out; "" for none."""
        counts = ("row", self._rows_left_out), ("column", len(self._columns_left_out))
        return " and ".join(f"{count:,} {what}{'s' * (count > 1)}" for what, count in counts if count)

    def uncomputed(self) -> str:
        """Return which formulas have no stored value; "" if all have one."""
        cells: Sequence[str] = self._uncomputed
        if not cells:
            return ""
        listed = ", ".join(cells[:_LISTED]) + (", ..." if len(cells) > _LISTED else "")
        what = f"{len(cells):,} formulas have" if len(cells) > 1 else "a formula has"
        return f"{what} no stored value ({listed}): open the file in a spreadsheet program and save it"
