"""Workbooks of Excel 97 to 2003 (`.xls`) with the package xlrd; rows and forms are those of XLSX."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.office.cell_formats import GENERAL, CellFormat, format_of, shown, shown_text
from ketrag_fast.readers.office.merged_cells import Range, letters_of
from ketrag_fast.readers.office.sheet_rows import RowCollector
from ketrag_fast.readers.office.sheet_tables import SheetRow
from ketrag_fast.readers.office.sheets import CellComments, number_of, problems_of, sheet_items
from ketrag_fast.readers.office.word import refuse_encrypted
from ketrag_fast.readers.protocol import Item, SourceFile, import_optional
from ketrag_fast.records import replace
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import HIDDEN

LARGEST: Final = 50_000_000
"""Maximum size of a workbook in bytes. The format has 65,536 rows in a sheet."""
_TEXT, _NUMBER, _DATE, _TRUTH, _ERROR = 1, 2, 3, 4, 5
"""Types of cells in xlrd."""


def read_xls(file: SourceFile) -> Iterator[Item]:
    """Yield the rows and forms of all sheets."""
    if file.size() > LARGEST:
        raise DocumentError(f"the workbook is larger than {LARGEST:,} bytes")
    refuse_encrypted(file)
    book = _open(file)
    found = False
    hidden: list[str] = []
    for sheet in book.sheets():
        if sheet.visibility and not file.hidden:
            hidden.append(sheet.name)
            continue
        own = replace(file, id=f"{file.id}/{sheet.name}")
        for item in _sheet(own, book, sheet):
            found = True
            yield item
    for name in hidden:
        yield Failure(f"{file.id}/{name}", HIDDEN, "the sheet")
    if not found and not hidden:
        yield file.failure("no sheet has a cell with text")


def _open(file: SourceFile) -> Any:
    xlrd = import_optional("xlrd", "an Excel workbook (.xls)")
    try:
        return xlrd.open_workbook(
            file_contents=file.read_bytes(), formatting_info=True, ragged_rows=True, logfile=io.StringIO()
        )
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the parser raises what it meets in a damaged file
        if "encrypted" in str(error):
            raise DocumentError("encrypted: it needs a password") from None
        raise DocumentError(f"not a workbook that can be read: {error or type(error).__name__}") from None


def _sheet(file: SourceFile, book: Any, sheet: Any) -> Iterator[Item]:
    collector = RowCollector(_merged(sheet), hidden=file.hidden)
    collector.hidden_columns.update(at for at, one in sheet.colinfo_map.items() if one.hidden)
    comments = CellComments()
    for (row, column), note in sorted(sheet.cell_note_map.items()):
        comments.add(f"{letters_of(column)}{row + 1}", note.author, note.text)
    yield from sheet_items(file, sheet.name, _rows(book, sheet, collector), collector, comments)
    yield from problems_of(file, collector)


def _merged(sheet: Any) -> Mapping[int, list[Range]]:
    """Return the merged ranges by their first row; rows are counted from 1, columns from 0."""
    found: dict[int, list[Range]] = {}
    for top, bottom, left, right in sheet.merged_cells:
        found.setdefault(top + 1, []).append((top + 1, left, bottom, right - 1))
    return found


def _rows(book: Any, sheet: Any, collector: RowCollector) -> Iterator[SheetRow]:
    styles = [_style(book, one) for one in book.xf_list]
    for number in range(sheet.nrows):
        about = sheet.rowinfo_map.get(number)
        collector.begin_row(number + 1, is_hidden=bool(about is not None and about.hidden))
        values, types = sheet.row_values(number), sheet.row_types(number)
        for column, (value, kind) in enumerate(zip(values, types, strict=True)):
            if not _TEXT <= kind <= _ERROR:
                continue
            style = sheet.cell_xf_index(number, column)
            own, is_strong = styles[style] if style < len(styles) else (GENERAL, False)
            stored = _stored(value) if kind in (_NUMBER, _DATE) else ""
            text = shown(stored, own, since_1904=bool(book.datemode)) if stored else _text(value, kind, own)
            if text and collector.add(column, text, is_strong=is_strong) and stored and own.kind == "number":
                collector.add_value(column, number_of(stored, text))
        collector.end_row()
        rows, collector.rows = collector.rows, []
        yield from rows


def _style(book: Any, about: Any) -> tuple[CellFormat, bool]:
    """Return the number format of a style of cells, and whether it is that of a head: bold, or filled."""
    code = book.format_map.get(about.format_key)
    font = book.font_list[about.font_index] if about.font_index < len(book.font_list) else None
    is_strong = bool(font is not None and font.bold) or about.background.fill_pattern != 0
    return format_of(about.format_key, None if code is None else code.format_str), is_strong


def _stored(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _text(value: Any, kind: int, own: CellFormat) -> str:
    if kind == _TRUTH:
        return "TRUE" if value else "FALSE"
    if kind == _ERROR:
        xlrd = import_optional("xlrd", "an Excel workbook (.xls)")
        return str(xlrd.error_text_from_code.get(value, "#VALUE!"))
    text = str(value).strip()
    return shown_text(text, own) if text and kind == _TEXT else text
