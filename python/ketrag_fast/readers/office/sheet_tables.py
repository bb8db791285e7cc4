"""Divide a sheet into tables and forms: at empty rows and columns, and at rows in the style of a head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Final

from ketrag_fast.readers.table import Header, header_of, kind_of, split_head
from ketrag_fast.records import dataclass, field

_LOOK: Final = 60
"""Rows by which the parts of a sheet are recognised."""
_LONGEST_LABEL: Final = 60
_MOST_FIELDS: Final = 1_000
"""Rows of a form after which the rest is a further document."""
_LEAST_FORM: Final = 4
"""Rows of a form whose labels have no colon."""
_LONGEST_FORM: Final = 40
_MOST_TITLES: Final = 2
"""Rows with one cell that are titles if an empty row follows; more of them are a list with a head."""
_FAR: Final = 1 << 20


@dataclass(slots=True)
class SheetRow:
    """A row with text. Its cells have the text that the program shows, "" for an empty one.

    `values` has the numbers of cells whose text is not a plain number, `merged` the last column of each cell
    that covers several columns, `is_strong` is whether all of its cells have the style of a head (bold, or
    filled), and `gap` the number of empty rows before it.
    """

    number: int
    cells: list[str]
    values: Mapping[int, int | float | None] = field(default_factory=dict)
    merged: Mapping[int, int] = field(default_factory=dict)
    is_strong: bool = False
    gap: int = 0


@dataclass(slots=True)
class TableRow:
    """A row of a table whose first column is `column`, with the names of its columns."""

    number: int
    column: int
    header: Header
    cells: list[str]
    values: Mapping[int, int | float | None]


@dataclass(slots=True)
class Remark:
    """A row above a table, such as a title."""

    number: int
    column: int
    cells: list[str]


@dataclass(slots=True)
class Form:
    """Rows of labels and their values; a value without a label has the label ""."""

    first: int
    last: int
    column: int
    width: int
    fields: list[tuple[str, str]]


Part = TableRow | Remark | Form


def parts_of(rows: Iterable[SheetRow]) -> Iterator[Part]:
    """Yield the rows of the tables, the forms and the remarks of a sheet."""
    tables: dict[int, _Table] = {}
    for _, own in groupby(rows, _Counter()):
        block = _Block(own, tables)
        yield from block.parts()
    for table in tables.values():
        yield from table.alone


class _Counter:
    """Numbers the blocks: a row after an empty one begins the next."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, row: SheetRow) -> int:
        self._number += row.gap > 0
        return self._number


class _Block:
    """Rows without an empty one between them."""

    def __init__(self, rows: Iterator[SheetRow], tables: dict[int, _Table]) -> None:
        self._first = list(islice(rows, _LOOK))
        self._rows = rows
        self._tables = tables

    def parts(self) -> Iterator[Part]:
        yield from self._forms()
        if not self._first:
            return
        ranges = _ranges(self._first)
        tables: list[_Table] = []
        for begin, end in ranges:
            first = [own for row in self._first if (own := _cut(row, begin, end)) is not None]
            if first:
                before = self._tables.get(begin)
                table = _Table(begin, end, first, before)
                if before is not None and before.header is not table.header:
                    yield from before.alone
                self._tables[begin] = table
                tables.append(table)
                yield from table.first_parts()
        for row in self._rows:
            for table in tables:
                own = _cut(row, table.begin, table.end)
                if own is not None:
                    yield table.row(own)

    def _forms(self) -> Iterator[Form]:
        """Yield the form that the block begins with, and remove its rows."""
        count = _form_rows(self._first)
        if not count:
            return
        rows = self._first[:count]
        self._first = self._first[count:]
        if not self._first:  # the form may be longer
            has_colons = _label(rows[0]) is not None
            for row in self._rows:
                if not has_colons or _label(row) is None:
                    self._first = [row, *islice(self._rows, _LOOK - 1)]
                    break
                rows.append(row)
        for at in range(0, len(rows), _MOST_FIELDS):
            yield _form(rows[at : at + _MOST_FIELDS])


class _Table:
    """The rows of a block in a range of columns."""

    def __init__(self, begin: int, end: int, first: list[SheetRow], before: _Table | None) -> None:
        self.begin, self.end = begin, end
        self._rows = {row.number: row for row in first}
        pairs = [(row.number, row.cells) for row in first]
        self.header = Header(())
        self.head: Sequence[str] = ()
        self.above: list[tuple[int, Sequence[str]]] = []
        self.is_strong = False
        self.alone: list[Remark] = []
        """The only row of a block, which is the head of the next one unless that has its own."""
        if before is not None and before.head and not _begins_table(first, before):
            self.header, self.head, self.is_strong = before.header, before.head, before.is_strong
            self.body: Iterable[tuple[int, Sequence[str]]] = pairs
            return
        if len(pairs) <= _MOST_TITLES and all(_count(cells) == 1 for _, cells in pairs):
            self.above, self.body = list(pairs), ()
            return
        above, names, rows = split_head(iter(pairs))
        self.body = list(rows)
        if not names and len(above) == 1 and not _has_amounts(above[0][1]):
            self.head = above[0][1]
            self.alone = [Remark(above[0][0], begin, list(above[0][1]))]
        else:
            self.head, self.above = names, above
        self.header = header_of([" ".join(cell.split()) for cell in self.head])
        in_body = {number for number, _ in self.body}
        self.is_strong = any(
            row.is_strong for row in first if row.number not in in_body and _count(row.cells) > 1
        )

    def first_parts(self) -> Iterator[Part]:
        """Yield the parts of the rows that the table was made from."""
        for number, cells in self.above:
            yield Remark(number, self.begin, list(cells))
        for number, _ in self.body:
            yield self.row(self._rows[number])
        self._rows, self.body = {}, ()

    def row(self, row: SheetRow) -> Part:
        """Return a row of the body. A row in the style of the head that has no numbers is the next head."""
        if self.is_strong and row.is_strong and _count(row.cells) > 1 and not _has_amounts(row.cells):
            self.head = row.cells
            self.header = header_of([" ".join(cell.split()) for cell in row.cells])
            return Remark(row.number, self.begin, row.cells)
        if len(row.cells) > len(self.header):
            self.header = self.header.widened(len(row.cells))
        cells = list(row.cells)
        for column, last in row.merged.items():
            for place in range(column + 1, min(last + 1, len(self.header))):
                if place < len(cells) and not cells[place]:
                    cells[place] = cells[column]
                elif place == len(cells):
                    cells.append(cells[column])
        return TableRow(row.number, self.begin, self.header, cells, row.values)


def _begins_table(rows: Sequence[SheetRow], before: _Table) -> bool:
    """Return whether the first rows of a block are the head of a table, not further rows of the one above."""
    at = 0
    while at < len(rows) - 1 and _count(rows[at].cells) == 1:
        at += 1
    head, below = rows[at], rows[at + 1 :]
    if list(head.cells) == list(before.head):
        return True
    if not below or _count(head.cells) < 2 or _has_amounts(head.cells):
        return False
    if head.is_strong and not below[0].is_strong:
        return True
    for place, cell in enumerate(head.cells):
        kinds = {kind_of(row.cells[place]) for row in below if place < len(row.cells) and row.cells[place]}
        if cell and kinds and "" not in kinds:
            return True
    return rows[0].gap > 1 or len(head.cells) != len(before.head)


def _ranges(rows: Sequence[SheetRow]) -> list[tuple[int, int]]:
    """Return the ranges of columns that have a table each."""
    used = {
        place
        for row in rows
        if _count(row.cells) > 1 or len(rows) == 1
        for column, cell in enumerate(row.cells)
        if cell
        for place in range(column, row.merged.get(column, column) + 1)
    }
    runs: list[list[int]] = []
    for place in sorted(used):
        if runs and place == runs[-1][1]:
            runs[-1][1] = place + 1
        else:
            runs.append([place, place + 1])
    found: list[list[int]] = []
    for run in runs:
        if found and _is_table(rows, found[-1]) and _is_table(rows, run):
            found.append(run)
        elif found:
            found[-1][1] = run[1]
        else:
            found.append(run)
    if not found:
        return [(0, _FAR)]
    begins = [0, *(begin for begin, _ in found[1:])]
    return list(zip(begins, [*begins[1:], _FAR], strict=True))


def _is_table(rows: Sequence[SheetRow], columns: Sequence[int]) -> bool:
    """Return whether columns have names in their first row, and texts in the first of them."""
    begin, end = columns
    cut = [row.cells[begin:end] for row in rows]
    cut = [cells for cells in cut if any(cells) and (_count(cells) > 1 or end - begin == 1)]
    if end - begin < 2 or len(cut) < 2 or _count(cut[0]) < end - begin or _has_amounts(cut[0]):
        return False
    keys = [cells[0] for cells in cut[1:] if cells[0]]
    return bool(keys) and 2 * sum(not kind_of(key) for key in keys) > len(keys)


def _cut(row: SheetRow, begin: int, end: int) -> SheetRow | None:
    """Return a row in a range of columns, or None if it has no text there."""
    if begin == 0 and end >= len(row.cells):
        return row
    cells = row.cells[begin:end]
    while cells and not cells[-1]:
        cells.pop()
    if not cells:
        return None
    values = {place - begin: value for place, value in row.values.items() if begin <= place < end}
    merged = {place - begin: last - begin for place, last in row.merged.items() if begin <= place < end}
    return SheetRow(row.number, cells, values, merged, row.is_strong, row.gap)


def _form_rows(rows: Sequence[SheetRow]) -> int:
    """Return how many of the first rows are those of a form, 0 for none."""
    count = labels = 0
    for row in rows:
        if _label(row) is not None:
            labels += 1
            count += 1
        elif count and not row.cells[0] and _count(row.cells) == 1:
            count += 1  # the value goes on below
        else:
            break
    if labels >= 2 or (labels and count == len(rows)):
        return count
    return len(rows) if _is_plain_form(rows) else 0


def _label(row: SheetRow) -> str | None:
    """Return the label that a row begins with; its value is in the row too, unless it is left empty."""
    first = next((cell for cell in row.cells if cell), "").strip()
    is_label = first.endswith((":", "\uff1a")) and len(first) <= _LONGEST_LABEL
    return first if is_label and not kind_of(first.rstrip(":\uff1a")) else None


def _is_plain_form(rows: Sequence[SheetRow]) -> bool:
    """Return whether rows of two cells are labels and values of several kinds, without a head."""
    if not _LEAST_FORM <= len(rows) <= _LONGEST_FORM or rows[0].is_strong:
        return False
    pairs = [[cell for cell in row.cells if cell] for row in rows]
    if any(len(pair) != 2 for pair in pairs) or len({len(row.cells) for row in rows}) > 1:
        return False
    labels = [pair[0] for pair in pairs]
    if len(set(labels)) < len(labels) or any(
        kind_of(label) or len(label) > _LONGEST_LABEL for label in labels
    ):
        return False
    kinds = [kind_of(pair[1]) for pair in pairs]
    return len(set(kinds[1:])) > 1 and sum(kind == "" for kind in kinds[1:]) > 1


def _form(rows: Sequence[SheetRow]) -> Form:
    fields: list[tuple[str, str]] = []
    for row in rows:
        cells = [cell.strip() for cell in row.cells if cell.strip()]
        label = ""
        values: list[str] = []
        has_colon = _label(row) is not None
        for at, cell in enumerate(cells):
            is_label = cell.endswith((":", "\uff1a")) if has_colon else at == 0 and len(cells) == 2
            if is_label and len(cell) <= _LONGEST_LABEL:
                if label or values:
                    fields.append((label, " ".join(values)))
                label, values = cell.rstrip(":\uff1a").strip(), []
            else:
                values.append(cell)
        if not label and values and fields and not row.cells[0]:
            before = fields.pop()
            fields.append((before[0], " ".join(filter(None, (before[1], *values)))))
        else:
            fields.append((label, " ".join(values)))
    used = [place for row in rows for place, cell in enumerate(row.cells) if cell]
    return Form(rows[0].number, rows[-1].number, min(used), max(used) - min(used) + 1, fields)


def _count(cells: Sequence[str]) -> int:
    return sum(map(bool, cells))


def _has_amounts(cells: Sequence[str]) -> bool:
    return any(kind_of(cell.strip()) and not _is_year(cell.strip()) for cell in cells if cell)


def _is_year(cell: str) -> bool:
    return len(cell) == 4 and cell.isdecimal() and cell.startswith(("19", "20"))
