"""ODT: paragraphs, headings, lists and tables of an OpenDocument text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ketrag_fast.base.safe_xml import Handler
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import TextWriter, repeated
from ketrag_fast.readers.zip_xml import core_properties, open_package

_PASSED = ("tracked-changes", "annotation", "note-citation", "forms", "sequence-decls", "table-of-content")
_MOST = 10_000
_MOST_COLUMNS = 1_000


def read_odt(file: SourceFile) -> Iterator[Item]:
    """Yield the text document as one document."""
    with open_package(file) as package:
        if "META-INF/manifest.xml" in package and b"encryption-data" in package.bytes(
            "META-INF/manifest.xml"
        ):
            raise DocumentError("encrypted: it needs a password")
        metadata, title = core_properties(package, "meta.xml")
        writer = TextWriter()
        package.xml("content.xml", _Content(writer))
    if not writer.text():
        yield file.failure("the document has no text")
        return
    yield writer.document(file, title, metadata)


class _Content(Handler):
    def __init__(self, writer: TextWriter) -> None:
        self._writer = writer
        self._text: list[str] = []
        self._open = 0  # enclosing paragraphs and headings
        self._level: int | None = None
        self._items = 0
        self._tables = 0
        self._rows: list[list[str]] = []
        self._cell: list[str] = []
        self._repeats = self._covers = 1  # columns and rows of the cell
        self._merged: dict[int, tuple[int, str]] = {}  # by column: rows that a cell still covers, its text
        self._skipped = 0
        self._in_body = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipped or name in _PASSED:
            self._skipped += 1
        elif name == "text" and not self._in_body:
            self._in_body = True  # office:text
        elif name in ("p", "h"):
            self._open += 1
            if self._open == 1:
                self._text = []
                self._level = _number(attributes.get("outline-level"), 1) if name == "h" else None
        elif name == "s":
            self._text.append(" " * min(_number(attributes.get("c"), 1), _MOST))
        elif name == "tab":
            self._text.append("\t")
        elif name == "line-break":
            self._text.append("\n")
        elif name == "note":
            self._text.append(" (")
        elif name == "list-item":
            self._items += 1
        elif name == "table":
            self._tables += 1
            if self._tables == 1:
                self._rows, self._merged = [], {}
        elif name == "table-row" and self._tables == 1:
            self._rows.append([])
        elif name in ("table-cell", "covered-table-cell") and self._tables == 1:
            self._cell = []
            self._repeats = min(_number(attributes.get("number-columns-repeated"), 1), _MOST_COLUMNS)
            self._covers = min(_number(attributes.get("number-rows-spanned"), 1), _MOST)

    def text(self, text: str) -> None:
        if self._open and not self._skipped:
            self._text.append(text)

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif name in ("p", "h"):
            self._open -= 1
            if self._open == 0:
                self._paragraph()
        elif name == "note":
            self._text.append(")")
        elif name == "list-item":
            self._items -= 1
        elif name in ("table-cell", "covered-table-cell") and self._tables == 1 and self._rows:
            self._add_cell(self._rows[-1])
        elif name == "table":
            self._tables -= 1
            if self._tables == 0:
                self._writer.table(self._rows)

    def _add_cell(self, row: list[str]) -> None:
        """Add a cell to a row. A cell merged downwards is repeated in each of its rows."""
        text, column = " ".join(self._cell), len(row)
        left, above = self._merged.pop(column, (0, ""))
        if left and not text:
            text = repeated(above)
            self._covers = left
        if self._covers > 1:
            self._merged[column] = (self._covers - 1, text)
        row += [text, *[""] * (self._repeats - 1)]

    def _paragraph(self) -> None:
        text = "".join(self._text)
        self._text = []
        if self._tables:
            self._cell.append(text)
        else:
            self._writer.paragraph(text, level=self._level, item=self._items > 0)


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdigit() and len(text) < 9 else default
