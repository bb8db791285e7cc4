"""XLSX: each row of a table and each form becomes a document. Sheets are streamed in bounded memory."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Final

from ketrag_fast.base.safe_xml import Handler, steps
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.office.cell_formats import GENERAL, CellFormat, format_of, general, shown, shown_text
from ketrag_fast.readers.office.charts import PAGE_NUMBER, Shapes, comment_line, comments_of, write_charts
from ketrag_fast.readers.office.embedded import embedded_items
from ketrag_fast.readers.office.merged_cells import REPEATED, Range, column_of, merged_ranges
from ketrag_fast.readers.office.sheet_rows import LAST_COLUMN, RowCollector
from ketrag_fast.readers.office.sheet_tables import Form, Part, Remark, SheetRow, parts_of
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.table import ONLY_TEXT, row_document
from ketrag_fast.readers.text_builder import TextWriter
from ketrag_fast.readers.zip_xml import Package, main_part, open_package, relations
from ketrag_fast.records import replace
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import HIDDEN
from ketrag_fast.types.locations import Locator

MOST_STRINGS: Final = 150_000_000
"""Maximum size of the shared strings in bytes, which are kept in memory."""
_MOST_CELL: Final = 1_000_000
_LONG_STRING: Final = 1_000
"""Characters from which a shared text is kept decoded; shorter ones take less time than memory."""
_TRUE: Final = ("1", "true")
_HEADS: Final = ("oddHeader", "oddFooter", "evenHeader", "evenFooter", "firstHeader", "firstFooter")
_LONGEST_HEAD: Final = 2_000
_HEAD_PART: Final = re.compile(r"(?<!&)&[LCR]")
_NUMBERS: Final = ("&P", "&N")
_HEAD_CODE: Final = re.compile(r'&(?:(&)|"[^"]*"|K[0-9A-Fa-f]{2}[0-9A-Fa-f+-]{4}|\d{1,3}|[A-Z])')
_ESCAPED: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")


def read_xlsx(file: SourceFile) -> Iterator[Item]:
    """Yield the rows and forms of all sheets."""
    heads: set[str] = set()
    has_items = False
    with open_package(file) as package:
        book = _Book()
        main = main_part(package, "xl/workbook.xml")
        package.xml(main, book)
        parts = relations(package, main)
        strings = _strings(package, parts)
        styles = _styles(package, parts)

        def read(sheet: SourceFile, name: str, path: str) -> Iterator[Item]:
            nonlocal has_items
            merged = merged_ranges(package, path)
            handler = _SheetRows(strings, styles, merged, book.since_1904, hidden=file.hidden)
            for item in _sheet(sheet, name, handler, package, path):
                has_items = True
                yield item
            text = "\n".join(line for line in handler.heads if line not in heads)
            if text and has_items:
                heads.update(handler.heads)
                yield replace(Document(f"{sheet.id}#header", text), locators=_sheet_marks(name, text))

        yield from workbook_items(file, package, parts, book.sheets, read)


def workbook_items(
    file: SourceFile,
    package: Package,
    parts: Mapping[str, tuple[str, str]],
    sheets: Sequence[tuple[str, str, bool]],
    read: Callable[[SourceFile, str, str], Iterator[Item]],
) -> Iterator[Item]:
    """Yield what `read` yields for each sheet that is shown, then embedded files and the hidden sheets.

    `parts` are the relations of the workbook, and `sheets` have a name, the id of a relation, and whether the
    sheet is hidden. `read` takes the file with the id of the sheet, the name of the sheet, and its path.
    """
    found = False
    hidden: list[str] = []
    for name, relation, is_hidden in sheets:
        kind, path = parts.get(relation, ("", ""))
        if kind != "worksheet" or path not in package:
            continue
        if is_hidden and not file.hidden:
            hidden.append(name)
            continue
        sheet = replace(file, id=f"{file.id}/{name}")
        try:
            for item in read(sheet, name, path):
                found = True
                yield item
        except DocumentError as error:
            yield sheet.failure(str(error))
            found = True
    yield from embedded_items(file, package)
    for name in hidden:
        yield Failure(f"{file.id}/{name}", HIDDEN, "the sheet")
    if not found and not hidden:
        yield file.failure("no sheet has a cell with text")


def _sheet(file: SourceFile, name: str, handler: _SheetRows, package: Package, path: str) -> Iterator[Item]:
    comments = CellComments()
    for where, author, text in comments_of(package, path):
        comments.add(where, author, text)
    yield from sheet_items(file, name, _used_rows(handler, package, path), handler.collector, comments)
    yield from drawings_of(file, name, package, path)
    yield from problems_of(file, handler.collector)


def sheet_items(
    file: SourceFile,
    name: str,
    rows: Iterable[SheetRow],
    collector: RowCollector,
    comments: CellComments,
) -> Iterator[Item]:
    """Yield the rows and forms of a sheet with the comments on their cells, and then the other comments."""
    for part in parts_of(rows):
        lines = (part.first, part.last) if isinstance(part, Form) else (part.number, part.number)
        yield comments.add_to(_item(file, name, part, collector.letters), *lines)
    yield from comments.others(file, name)


def problems_of(file: SourceFile, collector: RowCollector) -> Iterator[Item]:
    """Yield what was left out of a sheet, and which of its formulas have no stored value."""
    if collector.left_out():
        yield Failure(file.id, HIDDEN, collector.left_out())
    if collector.uncomputed():
        yield file.partial(collector.uncomputed())


class CellComments:
    """The comments of a sheet by their rows: lines that are added to what is in the row."""

    def __init__(self) -> None:
        self._lines: dict[int, list[tuple[str, str]]] = {}

    def add(self, where: str, author: str, text: str) -> None:
        """Add a comment on a cell such as `A2`."""
        digits = where.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ$").replace("$", "")
        row = int(digits) if digits.isdigit() and len(digits) < 9 else 0
        self._lines.setdefault(row, []).append((where, comment_line(author, text, where)))

    def add_to(self, item: Item, first: int, last: int) -> Item:
        """Return an item with the comments on its rows, unless they were added to another one."""
        if not self._lines or not isinstance(item, Document):
            return item
        lines = [line for row in range(first, last + 1) for _, line in self._lines.pop(row, ())]
        if not lines:
            return item
        text = "\n".join([item.text, *lines])
        ends = tuple(replace(one, end=len(text)) for one in item.locators)
        return replace(item, text=text, locators=ends)

    def others(self, file: SourceFile, name: str) -> Iterator[Item]:
        """Yield the comments on rows without text."""
        for row in sorted(self._lines):
            for where, line in self._lines[row]:
                yield _located(Document(f"{file.id}#{where}", line), name, where)


def drawings_of(file: SourceFile, name: str, package: Package, path: str) -> Iterator[Item]:
    """Yield documents for the texts and the charts of each drawing of a sheet."""
    for kind, drawing in relations(package, path).values():
        if kind != "drawing" or drawing not in package:
            continue
        shapes = Shapes()
        package.xml(drawing, shapes)
        if text := "\n".join(shapes.texts):
            yield replace(Document(f"{file.id}#shapes", text), locators=_sheet_marks(name, text))
        writer = TextWriter()
        for problem in write_charts(package, drawing, writer):
            yield file.failure(problem)
        if writer.text():
            charts = writer.document(replace(file, id=f"{file.id}#charts"), "", {})
            where = Locator(0, len(charts.text), "sheet", name)
            yield replace(charts, locators=(where, *charts.locators))


def _used_rows(handler: _SheetRows, package: Package, path: str) -> Iterator[SheetRow]:
    for _ in steps(package.pieces(path), handler, path):
        rows, handler.collector.rows = handler.collector.rows, []
        yield from rows


def _item(file: SourceFile, name: str, part: Part, letters: Callable[[int], str]) -> Item:
    if isinstance(part, Form):
        lines = [f"{label}: {value}" if label and value else label or value for label, value in part.fields]
        named = {label: value for label, value in part.fields if label and value and len(value) <= REPEATED}
        place = f"{letters(part.column)}{part.first}:{letters(part.column + part.width - 1)}{part.last}"
        form = Document(f"{file.id}#{part.first}", "\n".join(lines), "", named)
        return _located(form, name, place)
    # The tables next to the first one have their column in the id: they share its rows.
    number = part.number
    own = file if not part.column else replace(file, id=f"{file.id}#{letters(part.column)}")
    header = ONLY_TEXT if isinstance(part, Remark) else part.header
    cells = [" ".join(filter(None, part.cells))] if isinstance(part, Remark) else part.cells
    values: Mapping[int, Any] = {} if isinstance(part, Remark) else part.values
    item = row_document(own, number, header, cells, values=values)
    if part.column and isinstance(item, Document) and item.id == f"{own.id}#{number}":
        item = replace(item, id=f"{own.id}{number}")
    if not isinstance(item, Document):
        return item
    used = list(compress(range(len(part.cells)), part.cells))
    first, last = letters(part.column + used[0]), letters(part.column + used[-1])
    return _located(item, name, f"{first}{number}:{last}{number}")


def _located(item: Document, name: str, cells: str) -> Document:
    end = len(item.text)
    return replace(item, locators=(Locator(0, end, "sheet", name), Locator(0, end, "cell", cells)))


def _sheet_marks(name: str, text: str) -> tuple[Locator, ...]:
    return (Locator(0, len(text), "sheet", name),)


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
        self._long: dict[int, str] = {}

    def __getitem__(self, number: int) -> str:
        """Return a text. Many cells may have the same long one: it is decoded once, and is one object."""
        found = self._long.get(number)
        if found is None:
            start, end = self.offsets[number], self.offsets[number + 1]
            found = unescaped(self.blob[start:end].decode("utf-8", "replace"))
            if len(found) > _LONG_STRING:
                self._long[number] = found
        return found

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


def unescaped(text: str) -> str:
    """Return text with the characters that XML cannot have (`_x000D_`); line ends are one character."""
    if "_x" not in text:
        return text
    plain = _ESCAPED.sub(lambda found: _character(int(found[1], 16)), text)
    return plain.replace("\r\n", "\n").replace("\r", "\n")


def _character(code: int) -> str:
    is_text = code in (9, 10, 13) or (code >= 32 and not 0x7F <= code < 0xA0 and not 0xD800 <= code < 0xE000)
    return chr(code) if is_text else ""


class _CellStyles(Handler):
    """The number format of each style of cells, and whether it is that of a head: bold, or filled."""

    def __init__(self) -> None:
        self.formats: list[CellFormat] = []
        self.strong: list[bool] = []
        self._own: dict[str, str] = {}
        self._bold: list[bool] = []
        self._filled: list[bool] = []
        self._inside = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "numFmt":
            self._own[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
        elif name in ("fonts", "fills", "cellXfs"):
            self._inside = name
        elif name == "font" and self._inside == "fonts":
            self._bold.append(False)
        elif name == "b" and self._inside == "fonts" and self._bold:
            self._bold[-1] = attributes.get("val", "1") not in ("0", "false")
        elif name == "patternFill" and self._inside == "fills":
            self._filled.append(attributes.get("patternType", "none") not in ("none", "gray125"))
        elif name == "gradientFill" and self._inside == "fills":
            self._filled.append(True)
        elif name == "xf" and self._inside == "cellXfs":
            number = attributes.get("numFmtId", "0")
            known = int(number) if number.isdigit() and len(number) < 6 else 0
            self.formats.append(format_of(known, self._own.get(number)))
            self.strong.append(
                _chosen(self._bold, attributes.get("fontId"))
                or _chosen(self._filled, attributes.get("fillId"))
            )

    def end(self, name: str) -> None:
        if name == self._inside:
            self._inside = ""


def _chosen(marks: Sequence[bool], number: str | None) -> bool:
    place = int(number) if number is not None and number.isdigit() and len(number) < 6 else 0
    return place < len(marks) and marks[place]


def _styles(package: Package, parts: Mapping[str, tuple[str, str]]) -> _CellStyles:
    found = _CellStyles()
    for kind, path in parts.values():
        if kind == "styles" and path in package:
            try:
                package.xml(path, found)
            except DocumentError:
                return _CellStyles()
    return found


class _SheetRows(Handler):
    """Gives the cells of one sheet to a collector of rows. Unless `hidden`, hidden ones are left out."""

    def __init__(
        self,
        strings: _Strings,
        styles: _CellStyles,
        merged: Mapping[int, list[Range]],
        since_1904: bool,
        *,
        hidden: bool,
    ) -> None:
        self.collector = RowCollector(merged, hidden=hidden)
        self._declared = 0  # columns before it
        self._strings, self._styles, self._since_1904 = strings, styles, since_1904
        self._number = 0
        self._column = -1
        self._type = ""
        self._style = -1
        self._parts: list[str] = []
        self._taking = self._has_formula = self._in_phonetic = False
        self.heads: list[str] = []
        """Headers and footers of printed pages."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "c":
            self._column = column_of(attributes.get("r", ""), self._column + 1)
            style = attributes.get("s", "")
            self._type = attributes.get("t", "n")
            self._style = int(style) if style.isdigit() and len(style) < 7 else 0
            self._parts, self._has_formula = [], False
        elif name == "f":
            self._has_formula = True
        elif name == "rPh":
            self._in_phonetic = True
        elif name in ("v", "t"):
            self._taking = not self._in_phonetic
        elif name in _HEADS:
            self._taking, self._parts = True, []
        elif name == "row":
            number = attributes.get("r", "")
            self._number = int(number) if number.isdigit() and len(number) < 9 else self._number + 1
            self._column = -1
            self.collector.begin_row(self._number, is_hidden=attributes.get("hidden") in _TRUE)
        elif name == "col" and attributes.get("hidden") in _TRUE:
            first, last = attributes.get("min", ""), attributes.get("max", "")
            if first.isdigit() and last.isdigit() and len(first + last) < 12:
                start, end = max(int(first) - 1, self._declared), min(int(last), LAST_COLUMN)
                self.collector.hidden_columns.update(range(start, end))
                self._declared = max(self._declared, end)

    def text(self, text: str) -> None:
        if self._taking:
            self._parts.append(text)

    def end(self, name: str) -> None:
        if name in ("v", "t"):
            self._taking = False
        elif name == "rPh":
            self._in_phonetic = False
        elif name in _HEADS:
            self._taking = False
            self.heads += (one for one in _head_lines("".join(self._parts)) if one not in self.heads)
        elif name == "c":
            self._end_cell()
        elif name == "row":
            self.collector.end_row()

    def _end_cell(self) -> None:
        if not self._parts and self._has_formula:
            self.collector.add_uncomputed(self._column)
        if not self._parts or self._column >= LAST_COLUMN:
            return
        stored = "".join(self._parts)
        formats, strong = self._styles.formats, self._styles.strong
        own = formats[self._style] if self._style < len(formats) else GENERAL
        text = self._shown(stored, own)[:_MOST_CELL]
        is_strong = self._style < len(strong) and strong[self._style]
        is_read = bool(text) and self.collector.add(self._column, text, is_strong=is_strong)
        if is_read and self._type == "n" and own.kind == "number":
            self.collector.add_value(self._column, number_of(stored, text))

    def _shown(self, text: str, own: CellFormat) -> str:
        if self._type == "s":
            number = int(text) if text.strip().isdigit() and len(text) < 12 else -1
            found = self._strings[number] if 0 <= number < len(self._strings) else ""
            return shown_text(found, own) if found and own.code else found
        if self._type == "b":
            return "TRUE" if text == "1" else "FALSE"  # as Excel shows it in English
        if self._type == "n":
            return shown(text, own, since_1904=self._since_1904)
        if self._type == "d":  # a date in ISO 8601
            return text.strip().removesuffix("T00:00:00").replace("T", " ")
        return unescaped(text).strip()


def _head_lines(text: str) -> Iterator[str]:
    """Yield the left, middle and right text of a header or footer without page numbers and dates."""
    for part in _HEAD_PART.split(text[:_LONGEST_HEAD]):
        numbered = _HEAD_CODE.sub(lambda found: found[1] or "1" * (found[0] in _NUMBERS), part)
        line = " ".join(_HEAD_CODE.sub(lambda found: found[1] or "", part).split())
        if line and not PAGE_NUMBER.fullmatch(" ".join(numbered.split())):
            yield line


def number_of(text: str, plain: str) -> int | float | None:
    """Return the value of a formatted number for filters; None if its digits are a code such as `007`."""
    digits = plain.lstrip("-+( ")
    if digits[:1] == "0" and digits[1:2].isdigit():
        return None
    try:
        value = float(general(float(text), text))
    except ValueError:
        return None
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
