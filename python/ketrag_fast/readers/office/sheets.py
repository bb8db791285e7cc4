"""XLSX: each row of a sheet becomes a document. Sheets are streamed, so memory use does not grow."""

from __future__ import annotations

import datetime as dt
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Final

from ketrag_fast.base.safe_xml import Handler, steps
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.table import header_of, row_document
from ketrag_fast.readers.zip_xml import Package, open_package, relations
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

MOST_STRINGS: Final = 150_000_000
"""Maximum size of the shared strings in bytes, which are kept in memory."""
_MOST_CELL: Final = 1_000_000
_LAST_COLUMN: Final = 16_384
_DATES: Final = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_IS_DATE = re.compile(r"(?<!\\)[dmyhs]", re.I)
_IS_DURATION = re.compile(r"\[(?:h+|m+|s+)\]", re.I)
_IS_YEAR = re.compile(r"(?:19|20)\d\d")
_BUILT_IN_DURATION: Final = 46
_QUOTED = re.compile(r"\"[^\"]*\"|\[[^\[\]]*\]|\\.")
_MOST_ABOVE: Final = 20
"""Maximum number of rows above a table."""
_Row = tuple[int, dict[int, str]]
"""The number of a row, and its texts by column."""
_EPOCH: Final = dt.datetime(1899, 12, 30)


def read_xlsx(file: SourceFile) -> Iterator[Item]:
    """Yield the rows of all sheets. The header is the first row with text, or the one below a title."""
    found = False
    with open_package(file) as package:
        book = _Book()
        main = next(
            (path for kind, path in relations(package, "").values() if kind == "officeDocument"),
            "xl/workbook.xml",
        )
        package.xml(main, book)
        parts = relations(package, main)
        strings = _strings(package, parts)
        styles = _styles(package, parts)
        for name, relation in book.sheets:
            kind, path = parts.get(relation, ("", ""))
            if kind != "worksheet" or path not in package:
                continue
            sheet = replace(file, id=f"{file.id}/{name}")
            try:
                for item in _sheet(sheet, name, _SheetRows(strings, styles, book.since_1904), package, path):
                    found = True
                    yield item
            except DocumentError as error:
                yield sheet.failure(str(error))
                found = True
    if not found:
        yield file.failure("no sheet has a cell with text")


def _sheet(file: SourceFile, name: str, handler: _SheetRows, package: Package, path: str) -> Iterator[Item]:
    heading, rows = split_heading(_used_rows(handler, package, path))
    for number, cells in heading:
        yield _located(row_document(file, number, ["text"], [" ".join(cells.values())]), name, number, cells)
    header: list[str] = []
    for number, cells in rows:
        row = [cells.get(place, "") for place in range(max(cells) + 1)]
        if not header:
            header = header_of([" ".join(cell.split()) for cell in row])
            continue
        if len(row) > len(header):
            header += header_of([""] * len(row))[len(header) :]
        yield _located(row_document(file, number, header, row), name, number, cells)


def _used_rows(handler: _SheetRows, package: Package, path: str) -> Iterator[_Row]:
    for _ in steps(package.pieces(path), handler, path):
        rows, handler.rows = handler.rows, []
        yield from (row for row in rows if any(row[1].values()))


def split_heading(rows: Iterator[_Row]) -> tuple[list[_Row], Iterator[_Row]]:
    """Return the rows above the table, such as its title, and the others: the header and what follows.

    Rows with a single cell are above the table if two rows with several cells follow, the first of them
    without numbers but years. Else the first row is the header, unless it is the only row.
    """
    first = list(islice(rows, 2))
    if len(first) == 1:
        return first, iter(())
    while first and _cells(first[-2]) == 1 and len(first) <= _MOST_ABOVE and (row := next(rows, None)):
        first.append(row)
    above = len(first) - 2
    if above > 0 and _cells(first[-2]) > 1 and _cells(first[-1]) > 1 and not _has_number(first[-2]):
        return first[:above], chain(first[above:], rows)
    return [], chain(first, rows)


def _cells(row: _Row) -> int:
    return sum(map(bool, row[1].values()))


def _has_number(row: _Row) -> bool:
    return any(cell[:2].strip("-").isdigit() and not _IS_YEAR.fullmatch(cell) for cell in row[1].values())


def _located(item: Item, name: str, number: int, cells: Mapping[int, str]) -> Item:
    if not isinstance(item, Document):
        return item
    used = [place for place, cell in cells.items() if cell]
    cell = f"{_letters(min(used))}{number}:{_letters(max(used))}{number}"
    end = len(item.text)
    return replace(item, locators=(Locator(0, end, "sheet", name), Locator(0, end, "cell", cell)))


class _Book(Handler):
    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []
        self.since_1904 = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheet":
            self.sheets.append((attributes.get("name", ""), attributes.get("id", "")))
        elif name == "workbookPr":
            self.since_1904 = attributes.get("date1904") in ("1", "true")


class _Strings(Handler):
    """The shared strings, concatenated: a Python string for each would take three times the memory."""

    def __init__(self) -> None:
        self.blob = bytearray()
        self.offsets = array("Q", [0])
        self._in_text = False
        self._phonetic = 0

    def __getitem__(self, number: int) -> str:
        return self.blob[self.offsets[number] : self.offsets[number + 1]].decode("utf-8", "replace")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "rPh":
            self._phonetic += 1
        elif name == "t":
            self._in_text = not self._phonetic

    def text(self, text: str) -> None:
        if self._in_text:
            self.blob += text.encode("utf-8", "replace")
            if len(self.blob) > MOST_STRINGS:
                raise DocumentError(f"the texts of its cells have more than {MOST_STRINGS:,} bytes")

    def end(self, name: str) -> None:
        if name == "t":
            self._in_text = False
        elif name == "rPh":
            self._phonetic -= 1
        elif name == "si":
            self.offsets.append(len(self.blob))


def _strings(package: Package, parts: Mapping[str, tuple[str, str]]) -> _Strings:
    found = _Strings()
    for kind, path in parts.values():
        if kind == "sharedStrings" and path in package:
            package.xml(path, found)
    return found


class _CellStyles(Handler):
    """How each cell format shows a number: as "date", as "duration" or, "", as it is."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self._own: dict[str, str] = {}
        self._in_cells = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "numFmt":
            code = attributes.get("formatCode", "")
            kind = "date" if _IS_DATE.search(_QUOTED.sub("", code)) else ""
            self._own[attributes.get("numFmtId", "")] = "duration" if _IS_DURATION.search(code) else kind
        elif name == "cellXfs":
            self._in_cells = True
        elif name == "xf" and self._in_cells:
            number = attributes.get("numFmtId", "0")
            known = int(number) if number.isdigit() and len(number) < 6 else 0
            built_in = "duration" if known == _BUILT_IN_DURATION else "date" if known in _DATES else ""
            self.kinds.append(self._own.get(number, built_in))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._in_cells = False


def _styles(package: Package, parts: Mapping[str, tuple[str, str]]) -> Sequence[str]:
    found = _CellStyles()
    for kind, path in parts.values():
        if kind == "styles" and path in package:
            try:
                package.xml(path, found)
            except DocumentError:
                return []
    return found.kinds


class _SheetRows(Handler):
    """Collects the rows of one sheet: (number, text by column)."""

    def __init__(self, strings: _Strings, styles: Sequence[str], since_1904: bool) -> None:
        self.rows: list[_Row] = []
        self._strings, self._styles = strings, styles
        self._epoch = _EPOCH + dt.timedelta(days=1462) if since_1904 else _EPOCH
        self._number = 0
        self._cells: dict[int, str] = {}
        self._column = -1
        self._type = ""
        self._style = ""
        self._parts: list[str] = []
        self._taking = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "c":
            self._column = _column(attributes.get("r", ""), self._column + 1)
            self._type, self._style = attributes.get("t", "n"), attributes.get("s", "")
            self._parts = []
        elif name in ("v", "t"):
            self._taking = True
        elif name == "row":
            number = attributes.get("r", "")
            self._number = int(number) if number.isdigit() and len(number) < 9 else self._number + 1
            self._cells, self._column = {}, -1

    def text(self, text: str) -> None:
        if self._taking:
            self._parts.append(text)

    def end(self, name: str) -> None:
        if name in ("v", "t"):
            self._taking = False
        elif name == "c":
            if self._parts and self._column < _LAST_COLUMN:
                self._cells[self._column] = self._value("".join(self._parts))[:_MOST_CELL]
        elif name == "row" and self._cells:
            self.rows.append((self._number, self._cells))

    def _value(self, text: str) -> str:
        if self._type == "s":
            number = int(text) if text.strip().isdigit() and len(text) < 12 else -1
            return self._strings[number] if 0 <= number < len(self._strings) else ""
        if self._type == "b":
            return "true" if text == "1" else "false"
        if self._type == "n" and self._style.isdigit() and len(self._style) < 7:
            style = int(self._style)
            kind = self._styles[style] if style < len(self._styles) else ""
            if kind:
                return _duration(text) if kind == "duration" else self._date(text)
        return text.strip()

    def _date(self, text: str) -> str:
        try:
            days = float(text)
            when = self._epoch + dt.timedelta(days=days)
        except (ValueError, OverflowError):
            return text
        if days < 1:
            return (when + dt.timedelta(microseconds=500_000)).strftime("%H:%M:%S")
        return when.date().isoformat() if days == int(days) else when.isoformat(" ", "minutes")


def _duration(days: str) -> str:
    """Return a number of days as hours, minutes and seconds: `26:30:00`."""
    try:
        seconds = round(float(days) * 86_400)
    except (ValueError, OverflowError):
        return days
    minutes, rest = divmod(abs(seconds), 60)
    return f"{'-' if seconds < 0 else ''}{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _column(reference: str, default: int) -> int:
    """Return the column of a cell reference, counted from 0: 2 for `C7`."""
    found = 0
    for char in reference[:4]:
        if not "A" <= char <= "Z":
            break
        found = found * 26 + ord(char) - 64
    return found - 1 if found else default


def _letters(column: int) -> str:
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name
