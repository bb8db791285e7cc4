"""Binary workbooks of Excel (`.xlsb`, MS-XLSB); rows and forms are those of XLSX.

The package is that of XLSX, but its sheets, strings and styles are records: a type, a length, and data. They
are parsed here because packages that read the format return numbers without their formats: 0.125 for 12.5%.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.office.cell_formats import GENERAL, CellFormat, format_of, shown, shown_text
from ketrag_fast.readers.office.charts import comments_of
from ketrag_fast.readers.office.merged_cells import Range, letters_of
from ketrag_fast.readers.office.sheet_rows import LAST_COLUMN, RowCollector
from ketrag_fast.readers.office.sheet_tables import SheetRow
from ketrag_fast.readers.office.sheets import (
    MOST_STRINGS,
    CellComments,
    drawings_of,
    number_of,
    problems_of,
    sheet_items,
    unescaped,
    workbook_items,
)
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.zip_xml import Package, main_part, open_package, relations

_ROW, _COLUMN, _MERGED = 0, 60, 176
_BLANK, _SHORT_NUMBER, _ERROR, _TRUTH, _NUMBER, _TEXT, _SHARED = range(1, 8)
_FORMULA_TEXT, _FORMULA_NUMBER, _FORMULA_TRUTH, _FORMULA_ERROR = range(8, 12)
_RICH_TEXT = 62
_STRING, _FONT, _FORMAT, _FILL, _STYLE = 19, 43, 44, 45, 47
_BEGIN_STYLES, _END_STYLES = 617, 618
_PROPERTIES, _SHEET = 153, 156
_AUTHOR, _BEGIN_COMMENT, _COMMENT_TEXT = 632, 635, 637
_BOLD: Final = 700
_GRAY: Final = 17
"""The pattern of fills that Excel writes for none."""
_ROW_HIDDEN: Final = 0x10
_ERRORS: Final = {
    0x00: "#NULL!",
    0x07: "#DIV/0!",
    0x0F: "#VALUE!",
    0x17: "#REF!",
    0x1D: "#NAME?",
    0x24: "#NUM!",
    0x2A: "#N/A",
    0x2B: "#GETTING_DATA",
}
_MOST_MERGED: Final = 100_000
_MOST_ROW: Final = 1_048_576


def read_xlsb(file: SourceFile) -> Iterator[Item]:
    """Yield the rows and forms of all sheets."""
    with open_package(file) as package:
        main = main_part(package, "xl/workbook.bin")
        book = _Book(package, main)

        def read(sheet: SourceFile, name: str, path: str) -> Iterator[Item]:
            return _sheet(sheet, name, book, package, path)

        yield from workbook_items(file, package, relations(package, main), book.sheets, read)


def _sheet(file: SourceFile, name: str, book: _Book, package: Package, path: str) -> Iterator[Item]:
    merged: dict[int, list[Range]] = {}
    count = 0
    for kind, data in _records(package, path, is_counted=False):
        if kind == _MERGED and len(data) >= 16 and count < _MOST_MERGED:
            count += 1
            top, bottom, left, right = struct.unpack_from("<4I", data)
            if top <= bottom < _MOST_ROW and left <= right < LAST_COLUMN:
                merged.setdefault(top + 1, []).append((top + 1, left, bottom + 1, right))
    collector = RowCollector(merged, hidden=file.hidden)
    comments = CellComments()
    for where, author, text in _comments(package, path):
        comments.add(where, author, text)
    yield from sheet_items(file, name, _rows(book, package, path, collector), collector, comments)
    yield from drawings_of(file, name, package, path)
    yield from problems_of(file, collector)


def _comments(package: Package, sheet: str) -> Iterator[tuple[str, str, str]]:
    """Yield cell, author and text of each comment. Threads, which are XML, replace their copies."""
    found = {kind: path for kind, path in relations(package, sheet).values() if path in package}
    if "threadedComment" in found or not found.get("comments", "").endswith(".bin"):
        yield from comments_of(package, sheet)
        return
    authors: list[str] = []
    where = author = ""
    for kind, data in _records(package, found["comments"]):
        if kind == _AUTHOR:
            authors.append(_wide_text(data, 0)[0])
        elif kind == _BEGIN_COMMENT and len(data) >= 16:
            number, row, _, column = struct.unpack_from("<4I", data)
            author = authors[number] if number < len(authors) else ""
            where = f"{letters_of(min(column, LAST_COLUMN))}{min(row, _MOST_ROW) + 1}"
        elif kind == _COMMENT_TEXT and (text := unescaped(_wide_text(data, 1)[0]).strip()):
            yield where, author, text.removeprefix(f"{author}:").strip() if author else text


def _rows(book: _Book, package: Package, path: str, collector: RowCollector) -> Iterator[SheetRow]:
    is_open = False
    for kind, data in _records(package, path):
        if kind == _ROW and len(data) >= 12:
            if is_open:
                collector.end_row()
            rows, collector.rows = collector.rows, []
            yield from rows
            is_open = True
            number = int.from_bytes(data[:4], "little")
            collector.begin_row(number + 1, is_hidden=bool(data[11] & _ROW_HIDDEN))
        elif kind == _COLUMN and len(data) >= 18 and data[16] & 1:
            first, last = struct.unpack_from("<2I", data)
            collector.hidden_columns.update(range(first, min(last + 1, LAST_COLUMN)))
        elif (kind <= _FORMULA_ERROR or kind == _RICH_TEXT) and is_open and len(data) >= 8:
            _add_cell(book, collector, kind, data)
    if is_open:
        collector.end_row()
    yield from collector.rows
    collector.rows = []


def _add_cell(book: _Book, collector: RowCollector, kind: int, data: bytes) -> None:
    column = int.from_bytes(data[:4], "little")
    style = int.from_bytes(data[4:7], "little")
    if kind == _BLANK or column >= LAST_COLUMN:
        return
    own = book.formats[style] if style < len(book.formats) else GENERAL
    is_strong = style < len(book.strong) and book.strong[style]
    stored = ""
    value = data[8:]
    if kind in (_SHORT_NUMBER, _NUMBER, _FORMULA_NUMBER):
        stored = _number(kind, value)
        text = shown(stored, own, since_1904=book.since_1904) if stored else ""
    elif kind in (_TRUTH, _FORMULA_TRUTH):
        text = ("TRUE" if value[0] else "FALSE") if value else ""
    elif kind in (_ERROR, _FORMULA_ERROR):
        text = _ERRORS.get(value[0], "#VALUE!") if value else ""
    elif kind == _SHARED:
        text = book.string(int.from_bytes(value[:4], "little"))
    else:
        text = unescaped(_wide_text(value, 1 if kind == _RICH_TEXT else 0)[0]).strip()
    if text and not stored:
        text = shown_text(text, own)
    is_read = bool(text) and collector.add(column, text, is_strong=is_strong)
    if is_read and stored and own.kind == "number":
        collector.add_value(column, number_of(stored, text))


def _number(kind: int, value: bytes) -> str:
    """Return a number as the file of an XLSX workbook stores it; "" if it is cut off."""
    if kind == _SHORT_NUMBER:
        if len(value) < 4:
            return ""
        (packed,) = struct.unpack_from("<i", value)
        # The lowest bits say whether it is a whole number and whether it is in hundredths.
        number: float = packed >> 2
        if not packed & 2:
            (number,) = struct.unpack("<d", struct.pack("<q", (packed & ~3) << 32))
        number = number / 100 if packed & 1 else number
    elif len(value) >= 8:
        (number,) = struct.unpack_from("<d", value)
    else:
        return ""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


class _Book:
    """Data of a workbook for all its sheets: their names, the shared strings, and the styles of cells."""

    def __init__(self, package: Package, main: str) -> None:
        self.sheets: list[tuple[str, str, bool]] = []
        self.since_1904 = False
        self.formats: list[CellFormat] = []
        self.strong: list[bool] = []
        self._strings: list[str] = []
        for kind, data in _records(package, main):
            if kind == _SHEET and len(data) >= 8:
                relation, end = _wide_text(data, 8)
                name, _ = _wide_text(data, end)
                self.sheets.append((name, relation, data[0] in (1, 2)))
            elif kind == _PROPERTIES and data:
                self.since_1904 = bool(data[0] & 1)
        for kind_of_part, path in relations(package, main).values():
            if kind_of_part == "sharedStrings" and path in package:
                self._read_strings(package, path)
            elif kind_of_part == "styles" and path in package:
                self._read_styles(package, path)

    def string(self, number: int) -> str:
        """Return a shared text, "" for a number that no text has."""
        return self._strings[number] if number < len(self._strings) else ""

    def _read_strings(self, package: Package, path: str) -> None:
        size = 0
        for kind, data in _records(package, path):
            if kind == _STRING:
                size += len(data)
                if size > MOST_STRINGS:
                    raise DocumentError(f"the texts of its cells have more than {MOST_STRINGS:,} bytes")
                self._strings.append(unescaped(_wide_text(data, 1)[0]).strip())

    def _read_styles(self, package: Package, path: str) -> None:
        codes: dict[int, str] = {}
        bold: list[bool] = []
        filled: list[bool] = []
        in_styles = False
        for kind, data in _records(package, path):
            if kind == _FORMAT and len(data) >= 2:
                codes[int.from_bytes(data[:2], "little")] = _wide_text(data, 2)[0]
            elif kind == _FONT and len(data) >= 6:
                bold.append(int.from_bytes(data[4:6], "little") >= _BOLD)
            elif kind == _FILL and len(data) >= 4:
                filled.append(int.from_bytes(data[:4], "little") not in (0, _GRAY))
            elif kind in (_BEGIN_STYLES, _END_STYLES):
                in_styles = kind == _BEGIN_STYLES
            elif kind == _STYLE and in_styles and len(data) >= 8:
                _, number, font, fill = struct.unpack_from("<4H", data)
                self.formats.append(format_of(number, codes.get(number)))
                self.strong.append(_at(bold, font) or _at(filled, fill))


def _at(marks: Sequence[bool], place: int) -> bool:
    return place < len(marks) and marks[place]


def _wide_text(data: bytes, at: int) -> tuple[str, int]:
    """Return a text of UTF-16 with its length before it, and the offset after it; "" if it is cut off."""
    length = int.from_bytes(data[at : at + 4], "little")
    end = at + 4 + 2 * length
    if len(data) < at + 4 or length == 0xFFFFFFFF or end > len(data):
        return "", min(at + 4, len(data))
    return data[at + 4 : end].decode("utf-16-le", "replace"), end


def _records(package: Package, path: str, *, is_counted: bool = True) -> Iterator[tuple[int, bytes]]:
    """Yield type and data of each record. Raises DocumentError if one is cut off."""
    held = b""
    for piece in package.pieces(path, is_counted=is_counted):
        held += piece
        at = 0
        while (head := _head(held, at)) is not None:
            kind, begin, size = head
            if size > _LONGEST:
                raise DocumentError(f"{path}: a record is longer than {_LONGEST:,} bytes")
            if begin + size > len(held):
                break
            yield kind, held[begin : begin + size]
            at = begin + size
        held = held[at:]
    if held:
        raise DocumentError(f"{path}: its last record is cut off")


_LONGEST: Final = 20_000_000


def _head(data: bytes, at: int) -> tuple[int, int, int] | None:
    """Return type, offset of the data and size of the record at an offset; None if it is not whole yet."""
    end = len(data)
    if at + 2 > end:
        return None
    kind = data[at] & 0x7F
    if data[at] & 0x80:
        kind |= (data[at + 1] & 0x7F) << 7
        at += 1
    at += 1
    size = shift = 0
    for _ in range(4):
        if at >= end:
            return None
        byte = data[at]
        size |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if not byte & 0x80:
            break
    return kind, at, size
