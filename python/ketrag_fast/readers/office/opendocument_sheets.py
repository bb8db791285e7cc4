"""ODS: the tables and forms of an OpenDocument spreadsheet, with the values that its cells show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

from ketrag_fast.base.safe_xml import Handler, steps
from ketrag_fast.readers.office.cell_formats import general
from ketrag_fast.readers.office.embedded import unread_parts
from ketrag_fast.readers.office.merged_cells import Range, letters_of
from ketrag_fast.readers.office.opendocument import OpenDocumentObjects, refuse_encrypted, whole_number
from ketrag_fast.readers.office.sheet_rows import LAST_COLUMN, RowCollector
from ketrag_fast.readers.office.sheet_tables import SheetRow
from ketrag_fast.readers.office.sheets import CellComments, number_of, problems_of, sheet_items
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import TextWriter
from ketrag_fast.readers.zip_xml import Package, open_package
from ketrag_fast.records import replace
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import HIDDEN
from ketrag_fast.types.locations import Locator

_MOST_REPEATED: Final = 1_000
"""Maximum number of times that a cell or row with text repeats."""
_MOST_COPIES: Final = 1_000_000
"""Cells with text in a file that repeat another one."""
_MOST_ROWS: Final = 1_048_576
_DURATION: Final = re.compile(
    r"(-?)P(?:(\d{1,7})D)?(?:T(?:(\d{1,7})H)?(?:(\d{1,7})M)?(?:(\d{1,7})[.,]?\d*S)?)?"
)
_CLOCK: Final = re.compile(r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[AaPp]\.?[Mm]\.?)?")


def read_ods(file: SourceFile) -> Iterator[Item]:
    """Yield the rows, forms, comments and charts of all sheets."""
    with open_package(file) as package:
        refuse_encrypted(package)
        yield from _read_sheets(file, package)


def _read_sheets(file: SourceFile, package: Package) -> Iterator[Item]:
    handler = _Content(hidden=file.hidden)
    some = False
    for sheet, rows in groupby(_rows(handler, package), key=lambda one: one[0]):
        own = replace(file, id=f"{file.id}/{sheet.name}")
        for item in sheet_items(own, sheet.name, (row for _, row in rows), sheet.collector, sheet.comments):
            some = True
            yield item
    for sheet in handler.sheets:
        own = replace(file, id=f"{file.id}/{sheet.name}")
        for item in sheet.comments.others(own, sheet.name):  # those of a sheet without text in its cells
            some = True
            yield item
        yield from _charts(own, sheet, package)
        yield from problems_of(own, sheet.collector)
        if sheet.unrepeated:
            yield own.partial(f"{sheet.unrepeated:,} copies of equal rows are left out")
    pictures = [("picture", path) for path in package.names if path.startswith("Pictures/")]
    yield from unread_parts(file, pictures)
    for name in handler.hidden_sheets:
        yield Failure(f"{file.id}/{name}", HIDDEN, "the sheet")
    if not some and not handler.hidden_sheets:
        yield file.failure("no sheet has a cell with text")


def _rows(handler: _Content, package: Package) -> Iterator[tuple[_Sheet, SheetRow]]:
    for _ in steps(package.pieces("content.xml"), handler, "content.xml"):
        for sheet in handler.sheets[handler.finished :]:
            rows, sheet.collector.rows = sheet.collector.rows, []
            for row in rows:
                yield sheet, row
        handler.finished = max(len(handler.sheets) - 1, 0)


def _charts(file: SourceFile, sheet: _Sheet, package: Package) -> Iterator[Item]:
    """Yield a document for the charts and drawn texts of a sheet."""
    writer = TextWriter()
    objects = OpenDocumentObjects(package)
    for path in sheet.objects:
        objects.write(path, writer)
    for why in objects.problems:
        yield file.partial(why)
    if writer.text():
        charts = writer.document(replace(file, id=f"{file.id}#charts"), "", {})
        where = Locator(0, len(charts.text), "sheet", sheet.name)
        yield replace(charts, locators=(where, *charts.locators))


class _Sheet:
    """A sheet while it is read."""

    def __init__(self, name: str, *, hidden: bool) -> None:
        self.name = name
        self.merged: dict[int, list[Range]] = {}
        self.collector = RowCollector(self.merged, hidden=hidden)
        self.comments = CellComments()
        self.objects: list[str] = []
        self.unrepeated = 0
        self.row = self.column = 0
        """Numbers of the next row and column, counted from 0."""


class _Cell:
    """A cell while it is read."""

    __slots__ = ("attributes", "lines", "strong")

    def __init__(self, attributes: Mapping[str, str], *, strong: bool) -> None:
        self.attributes, self.strong = attributes, strong
        self.lines: list[str] = []


class _Content(Handler):
    def __init__(self, *, hidden: bool) -> None:
        self.sheets: list[_Sheet] = []
        self.hidden_sheets: list[str] = []
        self.finished = 0
        """Sheets whose rows were all taken."""
        self._hidden = hidden
        self._style = ""
        self._strong: set[str] = set()
        self._invisible: set[str] = set()
        self._sheet: _Sheet | None = None
        self._tables = 0  # nested ones: a table in a chart or a drawing
        self._copies = 0
        self._row: list[tuple[_Cell, int, str]] = []
        self._row_repeats = 1
        self._is_hidden_row = False
        self._cell: _Cell | None = None
        self._parts: list[str] = []
        self._paragraphs = 0
        self._comment: tuple[list[str], list[str]] | None = None  # author and text
        self._is_author = False
        self._skipped = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipped or name == "tracked-changes":
            self._skipped += 1
        elif name == "style":
            self._style = attributes.get("name", "")
        elif name == "text-properties":
            weight = attributes.get("font-weight", "")
            if weight == "bold" or (weight.isdigit() and int(weight[:4]) >= 600):
                self._strong.add(self._style)
        elif name == "table-cell-properties":
            if attributes.get("background-color", "transparent") != "transparent":
                self._strong.add(self._style)
        elif name == "table-properties":
            if attributes.get("display") == "false":
                self._invisible.add(self._style)
        elif name == "table":
            self._start_sheet(attributes)
        elif self._sheet is not None:
            self._start_in_sheet(self._sheet, name, attributes)

    def _start_sheet(self, attributes: Mapping[str, str]) -> None:
        self._tables += 1
        if self._tables > 1:
            return
        name = attributes.get("name", "")
        if attributes.get("style-name") in self._invisible and not self._hidden:
            self.hidden_sheets.append(name)
            self._tables -= 1
            self._skipped = 1
            return
        self._sheet = _Sheet(name, hidden=self._hidden)
        self.sheets.append(self._sheet)

    def _start_in_sheet(self, sheet: _Sheet, name: str, attributes: Mapping[str, str]) -> None:
        if name in ("table-cell", "covered-table-cell") and self._tables == 1:
            self._cell = _Cell(attributes, strong=attributes.get("style-name") in self._strong)
        elif name == "table-row" and self._tables == 1:
            self._row, sheet.column = [], 0
            self._row_repeats = whole_number(attributes.get("number-rows-repeated"), 1)
            self._is_hidden_row = attributes.get("visibility") in ("collapse", "filter")
        elif name == "table-column":
            count = min(whole_number(attributes.get("number-columns-repeated"), 1), LAST_COLUMN)
            if attributes.get("visibility") in ("collapse", "filter"):
                sheet.collector.hidden_columns.update(range(sheet.column, sheet.column + count))
            sheet.column += count
        elif name == "annotation":
            self._comment = [], []
        elif name == "creator" and self._comment is not None:
            self._is_author = True
        elif name == "object":
            sheet.objects.append(attributes.get("href", ""))
        elif name == "p":
            self._paragraphs += 1
            self._parts = []
        elif name == "s":
            self._parts.append(" " * min(whole_number(attributes.get("c"), 1), _MOST_REPEATED))
        elif name in ("tab", "line-break"):
            self._parts.append("\t" if name == "tab" else "\n")

    def text(self, text: str) -> None:
        if self._skipped:
            return
        if self._is_author and self._comment is not None:
            self._comment[0].append(text)
        elif self._paragraphs:
            self._parts.append(text)

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif self._sheet is not None:
            self._end_in_sheet(self._sheet, name)

    def _end_in_sheet(self, sheet: _Sheet, name: str) -> None:
        if name == "p":
            self._paragraphs -= 1
            line = "".join(self._parts)
            self._parts = []
            if self._comment is not None:
                self._comment[1].append(line)
            elif self._cell is not None:
                self._cell.lines.append(line)
        elif name == "creator":
            self._is_author = False
        elif name == "annotation" and self._comment is not None:
            author, lines = self._comment
            where = f"{letters_of(sheet.column)}{sheet.row + 1}"
            if text := "\n".join(lines).strip():
                sheet.comments.add(where, " ".join("".join(author).split()), text)
            self._comment = None
        elif name in ("table-cell", "covered-table-cell") and self._tables == 1 and self._cell is not None:
            self._end_cell(sheet, self._cell)
        elif name == "table-row" and self._tables == 1:
            self._end_row(sheet)
        elif name == "table":
            self._tables -= 1
            if not self._tables:
                self._sheet = None

    def _end_cell(self, sheet: _Sheet, cell: _Cell) -> None:
        self._cell = None
        own = cell.attributes
        count = min(whole_number(own.get("number-columns-repeated"), 1), LAST_COLUMN)
        text = shown_value(own, "\n".join(cell.lines).strip())
        is_uncomputed = "formula" in own and not text and "value-type" not in own
        wide = whole_number(own.get("number-columns-spanned"), 1)
        high = whole_number(own.get("number-rows-spanned"), 1)
        if wide > 1 or high > 1:
            first = sheet.row + 1
            last = min(first + high - 1, _MOST_ROWS), min(sheet.column + wide - 1, LAST_COLUMN)
            sheet.merged.setdefault(first, []).append((first, sheet.column, *last))
        if text or is_uncomputed:
            copies = min(count, _MOST_REPEATED) if self._copies < _MOST_COPIES else 1
            self._copies += copies - 1
            for place in range(sheet.column, min(sheet.column + copies, LAST_COLUMN)):
                self._row.append((cell, place, text))
        sheet.column += count

    def _end_row(self, sheet: _Sheet) -> None:
        repeats, width = self._row_repeats, len(self._row)
        rows = 1 + min(repeats - 1, _MOST_REPEATED - 1, max(_MOST_COPIES - self._copies, 0) // max(width, 1))
        if width and repeats > rows:
            sheet.unrepeated += repeats - rows
        self._copies += (rows - 1) * width
        for number in range(sheet.row, sheet.row + (rows if width else 1)):
            sheet.collector.begin_row(number + 1, is_hidden=self._is_hidden_row)
            for cell, column, text in self._row:
                _add(sheet.collector, cell, column, text)
            sheet.collector.end_row()
        sheet.row += repeats
        self._row = []


def _add(collector: RowCollector, cell: _Cell, column: int, text: str) -> None:
    if not text:
        collector.add_uncomputed(column)
        return
    stored = cell.attributes.get("value", "")
    if collector.add(column, text, is_strong=cell.strong) and stored:
        number = number_of(stored, text)
        if number is None or text != general(float(number), stored):
            collector.add_value(column, number)


def shown_value(attributes: Mapping[str, str], text: str) -> str:
    """Return the text of a cell; dates and times in ISO 8601, to the second that the cell shows.

    >>> shown_value({"value-type": "date", "date-value": "2024-03-05T14:30:00"}, "05.03.24 14:30")
    '2024-03-05 14:30'
    >>> shown_value({"value-type": "time", "time-value": "PT36H05M00S"}, "36:05")
    '36:05'
    """
    kind = attributes.get("value-type", "")
    if kind == "date" and (stored := attributes.get("date-value", "")):
        return _date(stored, text)
    if kind == "time" and (parts := _DURATION.fullmatch(attributes.get("time-value", ""))):
        hours = int(parts[2] or 0) * 24 + int(parts[3] or 0)
        seconds = f":{int(parts[5] or 0):02}" if int(parts[5] or 0) or text.count(":") > 1 else ""
        return f"{parts[1]}{hours:02}:{int(parts[4] or 0):02}{seconds}"
    if kind == "boolean":
        return text or attributes.get("boolean-value", "").upper()
    return text or attributes.get("string-value", "")


def _date(stored: str, text: str) -> str:
    day, _, clock = stored.partition("T")
    minutes, seconds = clock[:5], clock[5:8]
    if seconds in ("", ":00") and text.count(":") < 2:
        seconds = ""
    if _CLOCK.fullmatch(text) and minutes:
        return f"{minutes}{seconds}"
    has_clock = bool(minutes) and (":" in text or not text)
    return f"{day} {minutes}{seconds}" if has_clock else day
