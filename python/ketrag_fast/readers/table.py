"""Tables: every row below the head becomes a document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec, module_from_spec
from itertools import chain, compress, islice, pairwise
from types import MappingProxyType, ModuleType
from typing import Any, Final

from ketrag_fast.readers.jsonl import ID_NAMES, document_of
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.types import Document, Failure

_LONGEST_CELL = 2**31 - 1  # the largest C long on every platform; the library's default is 131,072
_DELIMITERS = ",;\t|"
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_MOST_COLUMNS = 16_384  # as in a spreadsheet, every row has all columns
_LONGEST_NAME = 200  # of a column, which each row repeats
_SHORT_NAME = 20  # of a column of a table with many rows, if longer names would be most of its text
_REPEATED = 8
"""Names of columns in all rows, as a multiple of the file's bytes, from which names are cut further."""
_FREE_NAMES = 4_000_000
"""Characters of repeated names in any table."""
_MANY_ROWS = 60_000
_SHORT_ROW = 20
_TOGETHER = 20_000
"""A table with more than `_MANY_ROWS` rows of less than `_SHORT_ROW` bytes gives `_TOGETHER` documents.

A row takes 60 to 80 microseconds, whatever its length: 99,000 rows took 9 s, a million rows with one digit
each more than 70 s. Such rows are series of measurements rather than texts. A table with a column `_id` keeps
its rows.
"""
_MANY_CELLS = 250_000
_SHORT_CELL = 4
"""A table with more than `_MANY_CELLS` cells of less than `_SHORT_CELL` bytes is read without column names.

It is a matrix of measurements. The names would be most of its text, and each cell takes 10 microseconds with
its name and its field for filters: 900,000 cells of a digit each took 8 to 15 s.
"""
_CONTENT = re.compile(r"[^\r\n]+")
_LONGEST_FIELD = 200  # of a value in metadata; longer ones are text
_NO_METADATA = ("_id", "title", "text")
_LOOK = 30  # lines by which the delimiter is recognised
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?")
_SEPARATOR = re.compile(r"\s*sep=(.)[ \t]*(?:\r\n?|\n)", re.I)  # a first line that Excel writes and reads


@cache
def _csv() -> ModuleType:
    """Return a private instance of the standard CSV parser with a larger cell limit.

    The limit is global in the module `_csv`: `csv.field_size_limit` would change it for the whole process.
    """
    spec = find_spec("_csv")
    if spec is None or spec.loader is None:
        raise ImportError("this Python has no module _csv")
    own = module_from_spec(spec)
    spec.loader.exec_module(own)
    own.field_size_limit(_LONGEST_CELL)
    return own


def read_table(file: SourceFile) -> Iterator[Item]:
    """Yield a document for each row with the id `FILE#ROW`, or that of a column `_id`.

    The columns `title` and `text` are title and text; without the latter the text is a line `name: value` for
    each column. All other columns are metadata, numbers if every value of a column is one. A column without
    a name, or beyond the head, is `column N`.
    """
    data = file.read_bytes()
    if not data:
        yield file.failure("the file is empty")
        return
    records = _Records(file, file.text(data))
    above, names, rows = split_head(iter(records))
    yield from records.failures()
    if not above and not names:
        yield file.failure("the table is empty")
        return
    if len(names) > _MOST_COLUMNS:
        yield file.failure(f"the table has {len(names):,} columns; the maximum is {_MOST_COLUMNS:,}")
        return
    if not names:  # a single row
        yield from (_row_above(file, number, cells) for number, cells in above)
        return
    count = records.lines
    header = header_of(names, longest_name(names, count, len(data)))
    yield from (_row_above(file, number, cells) for number, cells in above)
    has_ids = any(name.strip() == "_id" for name in names)
    cell_count, size = records.cells, len(data) - sum(map(len, names))
    is_matrix = cell_count > _MANY_CELLS and size < _SHORT_CELL * cell_count and not has_ids
    if count > _MANY_ROWS and len(data) < _SHORT_ROW * count and not has_ids:
        yield from _rows_together(file, header, rows, -(-count // _TOGETHER), has_names=not is_matrix)
        yield from records.failures()
        return
    if is_matrix:
        yield from _rows_of_values(file, header, rows)
        yield from records.failures()
        return
    first = next(rows, None)
    numeric = records.numeric_columns(first[0], len(header)) if first is not None else None
    for number, row in chain(() if first is None else (first,), rows):
        yield row_document(file, number, header, row, numeric)
        yield from records.failures()
    yield from records.failures()


def _row_above(file: SourceFile, number: int, cells: Sequence[str]) -> Item:
    """Return a row that is not part of a table as a document."""
    return row_document(file, number, ONLY_TEXT, [" ".join(filter(None, cells))])


def longest_name(names: Sequence[str], rows: int, size: int) -> int:
    """Return the characters to which the names of columns are cut, which each row of a table repeats."""
    most = max(_FREE_NAMES, _REPEATED * size)
    longest = _LONGEST_NAME
    while longest > _SHORT_NAME and rows * sum(min(len(name), longest) for name in names) > most:
        longest = max(longest // 2, _SHORT_NAME)
    return longest


def _rows_together(
    file: SourceFile,
    header: Header,
    rows: Iterator[tuple[int, Sequence[str]]],
    count: int,
    *,
    has_names: bool,
) -> Iterator[Item]:
    """Yield a document for each `count` rows, with the id of the first one and without metadata."""
    while block := list(islice(rows, count)):
        if has_names:
            wide = header.widened(max(len(row) for _, row in block))
            texts = (
                "\n".join(f"{name}: {cell}" for name, cell in zip(wide, row, strict=False) if cell)
                for _, row in block
            )
            yield Document(f"{file.id}#{block[0][0]}", "\n\n".join(texts))
        else:
            yield Document(
                f"{file.id}#{block[0][0]}", "\n".join(", ".join(filter(None, row)) for _, row in block)
            )
    yield file.partial(
        f"each {count} adjacent rows are read as one document, without fields for filters: the table"
        f" has more than {_MANY_ROWS:,} rows, and less than {_SHORT_ROW} bytes for each"
    )


def _rows_of_values(
    file: SourceFile, header: Header, rows: Iterator[tuple[int, Sequence[str]]]
) -> Iterator[Item]:
    """Yield a document with the values of each row, without names of columns and without metadata.

    The first document has the names, and the id `FILE#columns`.
    """
    yield Document(f"{file.id}#columns", ", ".join(header))
    for number, row in rows:
        if len(row) > _MOST_COLUMNS:
            yield file.failure(f"row {number}: {len(row):,} cells; the maximum is {_MOST_COLUMNS:,}", number)
        else:
            yield Document(f"{file.id}#{number}", ", ".join(filter(None, row)))
    yield file.partial(
        f"rows are read without names of columns and without fields for filters: the table has more than"
        f" {_MANY_CELLS:,} cells, and less than {_SHORT_CELL} bytes for each"
    )


class _Records:
    """The rows of a CSV text that are not blank, with their numbers as a spreadsheet shows them."""

    def __init__(self, file: SourceFile, text: str) -> None:
        self._file, self._text = file, text
        named = _SEPARATOR.match(text)
        self._start = named.end() if named else 0
        self._lines_before = text.count("\n", 0, self._start)
        self._delimiter = named[1] if named else _delimiter(file, text)
        self._failures: list[Failure] = []

    @property
    def lines(self) -> int:
        """The number of lines that are not blank, which is at least that of rows."""
        return sum(1 for _ in _CONTENT.finditer(self._text))

    @property
    def cells(self) -> int:
        """The number of cells that are not empty, as an estimate."""
        mark = self._delimiter
        return self._text.count(mark) + self.lines - 2 * self._text.count(2 * mark)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        csv = _csv()
        lines = (line[0] for line in _LINE.finditer(self._text, self._start))
        rows = csv.reader(lines, delimiter=self._delimiter)
        number = self._lines_before
        while True:
            number += 1
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                line = rows.line_num + self._lines_before
                self._failures.append(self._file.failure(f"line {line}: {error}", line))
                continue
            if any(cell.strip() for cell in row):
                yield number, row

    def failures(self) -> Iterator[Failure]:
        """Yield the failures since the last call."""
        found, self._failures = self._failures, []
        yield from found

    def numeric_columns(self, first: int, count: int) -> frozenset[int]:
        """Return the columns whose values are all numbers, in the rows from number `first` on."""
        left = set(range(count))
        for number, row in _Records(self._file, self._text):
            if number >= first:
                cells = ((place, cell.strip()) for place, cell in enumerate(row) if cell and place in left)
                left -= {place for place, cell in cells if cell and as_number(cell) is None}
            if not left:
                break
        return frozenset(left)


def as_number(text: str) -> int | float | None:
    """Return the value of a plain decimal number; None for other texts, and for codes such as `007`."""
    if not _NUMBER.fullmatch(text):
        return None
    return int(text) if "." not in text else float(text)


class Header(list[str]):
    """The names of the columns of a table."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self.has_text = "text" in self
        """Whether a column has the texts of the documents. Looking for it in each row would take long."""

    def widened(self, count: int) -> Header:
        """Return the names of `count` columns: further ones have no name."""
        return Header((*self, *(f"column {place}" for place in range(len(self) + 1, count + 1))))


def header_of(row: Sequence[str], longest: int = _LONGEST_NAME) -> Header:
    """Return the names of the columns; a name that appears again gets a number: `phone (2)`.

    Each row repeats them, so a name of more than `longest` characters is cut.
    """
    names: dict[str, None] = {}
    numbers: Counter[str] = Counter()
    for place, cell in enumerate(row, 1):
        own = name = _column(cell, place, longest)
        numbers[own] += 1
        while name in names:
            name = f"{own} ({numbers[own]})"
            numbers[own] += name in names
        names[name] = None
    return Header(names)


ONLY_TEXT: Final = Header(["text"])
"""The header of a row above a table."""


def row_document(
    file: SourceFile,
    number: int,
    header: Header,
    row: Sequence[str],
    numeric: Container[int] | None = None,
    *,
    values: Mapping[int, int | float | None] = MappingProxyType({}),
) -> Item:
    """Return one row as a document. Columns of `numeric` have numbers; None: each value decides.

    `values` has the numbers of cells whose text a format has changed; None: the text is not a number.
    """
    if len(row) > _MOST_COLUMNS:
        return file.failure(f"row {number}: {len(row):,} cells; the maximum is {_MOST_COLUMNS:,}", number)
    cells: dict[str, str] = {}
    metadata: dict[str, Any] = {}
    # Not the header, which a short row may have in full; empty cells are skipped, as a row may have many.
    for place in compress(range(len(row)), row):
        cell = row[place]
        if place >= len(header) and not cell.strip():
            continue
        key = header[place] if place < len(header) else f"column {place + 1}"
        cells[key] = cell
        if key not in _NO_METADATA and len(cell) <= _LONGEST_FIELD:
            if place in values:
                value = values[place]
            else:
                value = as_number(cell.strip()) if numeric is None or place in numeric else None
            metadata[key] = cell if value is None else value
    title, name = cells.pop("title", ""), cells.pop("_id", "")
    text = cells.get("text", "") if header.has_text else ""
    if not text.strip():  # also a row of which only other cells are filled
        text = "\n".join(f"{key}: {cell}" for key, cell in cells.items())
    record = {"_id": name or f"{file.id}#{number}", "title": title, "text": text, "metadata": metadata}
    return document_of(file, number, record)


def _column(cell: str, place: int, longest: int) -> str:
    name = cell.strip()
    if len(name) > longest:
        return f"{name[: longest - 1]}…"
    return name.lower() if name.lower() in ("title", "text", *ID_NAMES) else name or f"column {place}"


def _delimiter(file: SourceFile, text: str) -> str:
    """Return the mark that occurs equally often in most of the first lines, of two the more frequent one."""
    if file.suffix == ".tsv":
        return "\t"
    lines = [line[0] for line in islice(_LINE.finditer(text), _LOOK) if line[0].strip()]
    best, found = (0, 0), ","
    for mark in _DELIMITERS:
        counts = Counter(count for line in lines if (count := line.count(mark)))
        own = max(((times, count) for count, times in counts.items()), default=(0, 0))
        if own > best:
            best, found = own, mark
    return found


_MOST_ABOVE: Final = 20
"""Maximum number of rows above a table."""
_WIDE: Final = 4
"""Columns of a table above which a row may have two cells: `Created` and a date."""
_LONGEST_UNIT: Final = 15
"""Characters of a cell in a second row with units."""
_IS_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_AMOUNT: Final = re.compile(r"[-+(]?\W?\d")

Row = tuple[int, Sequence[str]]
"""The number of a row, and its cells."""
Head = tuple[list[Row], list[str], Iterator[Row]]
"""The rows above a table, the names of its columns, and its other rows."""


def split_head(rows: Iterator[Row]) -> Head:
    """Return the rows above a table, the names of its columns, "" for a column without one, and its rows.

    Rows with few cells, and comments, are above the table if two rows with several cells follow, the first
    of them without numbers but years. Else the first row is the head, unless it has values as the rows below.
    A single row is above an empty table.
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
    if not above and _is_headless([head, *(cells for _, cells in rest)]):
        return [], [""] * len(head), chain(first, rows)
    if len(rest) > 1:
        names = _grouped(head, below, rest[1][1]) or _with_units(head, below, rest[1][1])
        if names is not None:
            return first[:above], names, chain(rest[1:], rows)
    return first[:above], list(head), chain(rest, rows)


_KINDS: Final = (
    ("date", re.compile(r"\d{4}-\d\d?-\d\d?(?:[T ]\d.*)?|\d\d?[./]\d\d?[./]\d{2,4}(?: \d.*)?")),
    ("time", re.compile(r"\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[ap]m)?", re.I)),
    ("number", re.compile(r"[-+]?[$€£]? ?\d[\d ,.'\u00a0]*(?:e[-+]?\d+)? ?[%€$£]?", re.I)),
    ("address", re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+\.[\w.-]+|https?://\S+", re.I)),
)
"""Kinds of values that no column has as its name, the first that matches."""


def _is_headless(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has values as those below: dates above dates, numbers above numbers.

    A column of such values below a name shows that the first row is the head, and so do numbers in steps,
    as those of months or years are.
    """
    head, below = [cell.strip() for cell in rows[0]], rows[1:]
    alike: list[str] = []
    for place, cell in enumerate(head):
        kinds = {kind_of(row[place].strip()) for row in below if place < len(row) and row[place].strip()}
        if len(kinds) != 1:
            continue
        kind = kinds.pop()
        if kind and kind == kind_of(cell):
            alike.append(cell)
        elif kind and cell:
            return False
    return bool(alike) and not _is_series(alike)


def kind_of(cell: str) -> str:
    """Return which kind of value a cell has, "" for a text."""
    return next((name for name, pattern in _KINDS if pattern.fullmatch(cell)), "")


def _is_series(cells: Sequence[str]) -> bool:
    """Return whether cells are whole numbers in equal steps, such as 1, 2, 3, or all of them years."""
    if all(map(_IS_YEAR.fullmatch, cells)):
        return True
    if len(cells) < 2 or not all(cell.isdecimal() and len(cell) < 10 for cell in cells):
        return False
    steps = {int(after) - int(before) for before, after in pairwise(cells)}
    return len(steps) == 1 and steps.pop() > 0


def _width(rows: Sequence[Row]) -> int:
    """Return the most common number of cells per row; if two are equally common, the larger one."""
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
        if not below[place] or _is_amount(below[place]) or not _AMOUNT.match(value):
            return None
    return [
        name if name == below[place] else f"{name} {below[place]}".strip()  # one that is merged downwards
        for name, own in groups
        for place in own
    ]


def _with_units(head: Sequence[str], below: Sequence[str], values: Sequence[str]) -> list[str] | None:
    """Return names such as `weight (kg)` if the second row has the units of some columns."""
    units = [place for place, cell in enumerate(below) if cell]
    if not units or len(units) >= _count(head) or _count(values) <= len(units) or _count(head) < len(head):
        return None
    for place in units:
        value = values[place] if place < len(values) else ""
        is_unit = len(below[place]) <= _LONGEST_UNIT and not _AMOUNT.match(below[place])
        if place >= len(head) or not is_unit or not _AMOUNT.match(value):
            return None
    return [
        f"{name} ({below[place].strip('()[]')})" if place in units else name
        for place, name in enumerate(head)
    ]


def _count(cells: Sequence[str]) -> int:
    return sum(map(bool, cells))


def _is_amount(cell: str) -> bool:
    """Return whether a cell begins like a number and is not a year."""
    return bool(_AMOUNT.match(cell)) and not _IS_YEAR.fullmatch(cell)
