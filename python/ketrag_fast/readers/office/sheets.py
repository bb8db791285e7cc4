"""XLSX: each row of a sheet becomes a document. Sheets are streamed, so memory use does not grow."""

from __future__ import annotations

import datetime as dt
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ketrag_fast.base.safe_xml import Handler, steps
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.table import Row, header_of, row_document, split_head
from ketrag_fast.readers.zip_xml import Package, open_package, relations
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import HIDDEN
from ketrag_fast.types.locations import Locator

MOST_STRINGS: Final = 150_000_000
"""Maximum size of the shared strings in bytes, which are kept in memory."""
_MOST_CELL: Final = 1_000_000
_LAST_COLUMN: Final = 16_384
_DATES: Final = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_IS_DATE = re.compile(r"(?<!\\)[dmyhs]", re.I)
_IS_DURATION = re.compile(r"\[(?:h+|m+|s+)\]", re.I)
_BUILT_IN_DURATION: Final = 46
_QUOTED = re.compile(r"\"[^\"]*\"|\[[^\[\]]*\]|\\.")
_TRUE: Final = ("1", "true")
_EPOCH: Final = dt.datetime(1899, 12, 30)


def read_xlsx(file: SourceFile) -> Iterator[Item]:
    """Yield the rows of all sheets. The header is the first row with text, or the one below a title."""
    found = False
    hidden: list[str] = []
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
        for name, relation, is_hidden in book.sheets:
            kind, path = parts.get(relation, ("", ""))
            if kind != "worksheet" or path not in package:
                continue
            if is_hidden and not file.hidden:
                hidden.append(name)
                continue
            sheet = replace(file, id=f"{file.id}/{name}")
            try:
                handler = _SheetRows(strings, styles, book.since_1904, hidden=file.hidden)
                for item in _sheet(sheet, name, handler, package, path):
                    found = True
                    yield item
            except DocumentError as error:
                yield sheet.failure(str(error))
                found = True
    for name in hidden:
        yield Failure(f"{file.id}/{name}", HIDDEN, "the sheet")
    if not found and not hidden:
        yield file.failure("no sheet has a cell with text")


def _sheet(file: SourceFile, name: str, handler: _SheetRows, package: Package, path: str) -> Iterator[Item]:
    above, names, rows = split_head(_used_rows(handler, package, path))
    for number, cells in above:
        yield _located(
            row_document(file, number, ["text"], [" ".join(filter(None, cells))]), name, number, cells
        )
    header = header_of([" ".join(cell.split()) for cell in names])
    for number, cells in rows:
        if len(cells) > len(header):
            header += header_of([""] * len(cells))[len(header) :]
        yield _located(row_document(file, number, header, cells), name, number, cells)
    if handler.left_out():
        yield Failure(file.id, HIDDEN, handler.left_out())


def _used_rows(handler: _SheetRows, package: Package, path: str) -> Iterator[Row]:
    for _ in steps(package.pieces(path), handler, path):
        rows, handler.rows = handler.rows, []
        for number, cells in rows:
            if any(cells.values()):
                yield number, [cells.get(place, "") for place in range(max(cells) + 1)]


def _located(item: Item, name: str, number: int, cells: Sequence[str]) -> Item:
    if not isinstance(item, Document):
        return item
    used = [place for place, cell in enumerate(cells) if cell]
    cell = f"{_letters(min(used))}{number}:{_letters(max(used))}{number}"
    end = len(item.text)
    return replace(item, locators=(Locator(0, end, "sheet", name), Locator(0, end, "cell", cell)))


class _Book(Handler):
    def __init__(self) -> None:
        self.sheets: list[tuple[str, str, bool]] = []
        self.since_1904 = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheet":
            is_hidden = attributes.get("state") in ("hidden", "veryHidden")
            self.sheets.append((attributes.get("name", ""), attributes.get("id", ""), is_hidden))
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
    """Collects the rows of one sheet: (number, text by column). Unless `hidden`, hidden ones are left out."""

    def __init__(self, strings: _Strings, styles: Sequence[str], since_1904: bool, *, hidden: bool) -> None:
        self.rows: list[tuple[int, dict[int, str]]] = []
        self._hidden_columns: set[int] = set()
        self._declared = 0  # columns before it
        self._columns_left_out: set[int] = set()
        self._rows_left_out = 0
        self._reads_hidden = hidden
        self._is_hidden = False
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
            self._is_hidden = not self._reads_hidden and attributes.get("hidden") in _TRUE
        elif name == "col" and not self._reads_hidden and attributes.get("hidden") in _TRUE:
            first, last = attributes.get("min", ""), attributes.get("max", "")
            if first.isdigit() and last.isdigit() and len(first + last) < 12:
                start, end = max(int(first) - 1, self._declared), min(int(last), _LAST_COLUMN)
                self._hidden_columns.update(range(start, end))
                self._declared = max(self._declared, end)

    def text(self, text: str) -> None:
        if self._taking:
            self._parts.append(text)

    def end(self, name: str) -> None:
        if name in ("v", "t"):
            self._taking = False
        elif name == "c":
            if not self._parts or self._column >= _LAST_COLUMN:
                return
            if self._column in self._hidden_columns:
                self._columns_left_out.add(self._column)
            else:
                self._cells[self._column] = self._value("".join(self._parts))[:_MOST_CELL]
        elif name == "row" and self._cells:
            if self._is_hidden:
                self._rows_left_out += 1
            else:
                self.rows.append((self._number, self._cells))

    def left_out(self) -> str:
        """Return how many hidden rows and columns with text were left out; "" for none."""
        counts = ("row", self._rows_left_out), ("column", len(self._columns_left_out))
        return " and ".join(f"{count:,} {what}{'s' * (count > 1)}" for what, count in counts if count)

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
