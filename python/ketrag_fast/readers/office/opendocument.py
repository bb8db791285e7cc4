"""ODT, ODP and ODS: texts, presentations and spreadsheets in the OpenDocument format."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from ketrag_fast._core import lowered_text, raised_text
from ketrag_fast.base.safe_xml import Handler
from ketrag_fast.errors import BackendMissing, DocumentError
from ketrag_fast.readers.office.charts import PAGE_NUMBER, comment_line
from ketrag_fast.readers.office.descriptions import described
from ketrag_fast.readers.office.embedded import unread_parts
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import TextWriter, repeated
from ketrag_fast.readers.zip_xml import Package, core_properties, open_package
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import HIDDEN

_PASSED = ("tracked-changes", "note-citation", "sequence-decls", "table-of-content")
_FIELDS = ("text", "textarea", "formatted-text", "number", "date", "time", "combobox", "listbox")
_MOST = 10_000
_MOST_COLUMNS = 1_000
_LISTED = 10
_HEADS = ("header", "header-left", "header-first", "footer", "footer-left", "footer-first")


def read_odt(file: SourceFile) -> Iterator[Item]:
    """Yield the text document as one document."""
    yield from _read(file, "the document has no text")


def read_odp(file: SourceFile) -> Iterator[Item]:
    """Yield the presentation as one document with a locator per slide."""
    yield from _read(file, "no slide has text")


def refuse_encrypted(package: Package) -> None:
    """Raise DocumentError if the package is encrypted."""
    manifest = "META-INF/manifest.xml"
    if manifest in package and b"encryption-data" in package.bytes(manifest):
        raise DocumentError("encrypted: it needs a password")


def _read(file: SourceFile, nothing: str) -> Iterator[Item]:
    with open_package(file) as package:
        refuse_encrypted(package)
        metadata, title = core_properties(package, "meta.xml")
        writer = TextWriter()
        objects = OpenDocumentObjects(package)
        body = _Content(writer, objects, hidden=file.hidden)
        package.xml("content.xml", body)
        writer.end_section()
        for path in objects.charts:
            objects.write(path, writer)
        mark = writer.mark()
        for author, text in body.comments:
            writer.paragraph(comment_line(author, text))
        writer.located(mark, "part", "comments")
        _write_heads(package, writer, objects)
        pictures = [
            ("picture", path) for path in body.pictures if path in package and path.startswith("Pictures/")
        ]
        unread = list(unread_parts(file, pictures))
    if body.slides:
        metadata["slides"] = body.slides
    if writer.text():
        yield writer.document(file, title, metadata)
    elif not body.hidden_slides:
        yield file.failure(nothing)
    if body.hidden_slides:
        numbers = body.hidden_slides
        listed = ", ".join(map(str, numbers[:_LISTED])) + (", ..." if len(numbers) > _LISTED else "")
        yield Failure(file.id, HIDDEN, f"slide{'s' * (len(numbers) > 1)} {listed}")
    for why in objects.problems:
        yield file.failure(why)
    yield from unread


class OpenDocumentObjects:
    """The formulas and charts inside an OpenDocument file, each of which is stored as a small document."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self.charts: list[str] = []
        """Paths of objects that are not formulas, in order."""
        self.problems: list[str] = []

    def formula(self, path: str) -> str:
        """Return the formula of an object; "" if it is a chart, which is noted, or cannot be read."""
        name = self._member(path)
        if name is None:
            return ""
        try:
            data = self._package.bytes(name)
            if b"math" not in data[:2_000].lower() or b"office:document-content" in data[:2_000]:
                self.charts.append(path)
                return ""
            return _formula_text(data)
        except (DocumentError, BackendMissing) as error:
            self.problems.append(f"formula {name}: {error}")
            return ""

    def write(self, path: str, writer: TextWriter) -> None:
        """Write the titles and the data of a chart."""
        name = self._member(path)
        if name is None:
            return
        mark = writer.mark()
        try:
            inner = OpenDocumentObjects(self._package)  # the charts of charts are not read
            self._package.xml(name, _Content(writer, inner, hidden=True))
        except DocumentError as error:
            self.problems.append(f"chart {name}: {error}")
        writer.located(mark, "part", "chart")

    def _member(self, path: str) -> str | None:
        name = posixpath.normpath(posixpath.join(path, "content.xml"))
        return name if path and name in self._package else None


def _formula_text(data: bytes) -> str:
    from ketrag_fast.readers.html import page_of  # formulas of web pages are MathML, too

    start = data.find(b"?>") + 2 if data.startswith(b"<?xml") else 0
    return page_of(b"<html><body><p>" + data[start:] + b"</p></body></html>", whole=True).text


def _write_heads(package: Package, writer: TextWriter, objects: OpenDocumentObjects) -> None:
    """Write each text of headers and footers once, unless the document has it."""
    if "styles.xml" not in package:
        return
    heads = _Heads()
    try:
        package.xml("styles.xml", heads)
    except DocumentError as error:
        objects.problems.append(str(error))
        return
    known = {line.strip() for line in writer.text().split("\n")}
    for kind in ("header", "footer"):
        mark = writer.mark()
        for text in heads.texts[kind]:
            if text not in known and not PAGE_NUMBER.fullmatch(text):
                known.add(text)
                writer.paragraph(text)
        writer.located(mark, "part", kind)


class _Heads(Handler):
    """Collects the paragraphs of headers and footers."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {"header": [], "footer": []}
        self._kind = ""
        self._parts: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in _HEADS and attributes.get("display") != "false":
            self._kind = name.partition("-")[0]
        elif name in ("p", "h"):
            self._parts = []

    def text(self, text: str) -> None:
        if self._kind:
            self._parts.append(text)

    def end(self, name: str) -> None:
        if name in _HEADS:
            self._kind = ""
        elif name in ("p", "h") and self._kind:
            self.texts[self._kind] += filter(None, [" ".join("".join(self._parts).split())])


class _Content(Handler):
    """Writes paragraphs, headings, lists, tables and slides. Comments are collected."""

    def __init__(self, writer: TextWriter, objects: OpenDocumentObjects, *, hidden: bool) -> None:
        self._writer, self._objects, self._reads_hidden = writer, objects, hidden
        self.comments: list[tuple[str, str]] = []
        self.slides = 0
        self.hidden_slides: list[int] = []
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
        self._style = ""
        self._scripts: dict[str, int] = {}  # by style: raised (positive) or lowered
        self._hidden_styles: set[str] = set()
        self._spans: list[tuple[int, int]] = []  # script and beginning of the enclosing spans
        self._boxes: list[tuple[list[str], int, int | None, list[tuple[int, int]]]] = []
        self._is_title = False
        self._comment: tuple[list[str], list[str]] | None = None  # author and text
        self._is_author = False
        self._marks: list[list[int]] = []  # of the slide and its notes
        self.pictures: dict[str, None] = {}
        """Paths of the pictures, in order."""
        self._in_frame = 0
        self._description: list[str] | None = None  # of a picture
        self._descriptions: list[str] = []
        self._in_forms = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipped or name in _PASSED:
            self._skipped += 1
        elif self._in_forms:
            self._write_field(name, attributes)
        elif name == "forms":
            self._in_forms = True
        elif self._comment is not None:
            self._is_author = name == "creator"
            if name == "p" and self._comment[1]:
                self._comment[1].append("\n")
        elif name == "annotation":
            self._comment = [], []
        elif name == "text" and not self._in_body:
            self._in_body = True  # office:text
        elif name in ("p", "h"):
            self._open += 1
            if self._open == 1:
                self._text = []
                self._level = whole_number(attributes.get("outline-level"), 1) if name == "h" else None
        elif name in ("s", "tab", "line-break", "note"):
            count = min(whole_number(attributes.get("c"), 1), _MOST)
            self._text.append({"s": " " * count, "tab": "\t", "line-break": "\n", "note": " ("}[name])
        elif name == "list-item":
            self._items += 1
        elif name == "span":
            script = self._scripts.get(attributes.get("style-name", ""), 0)
            self._spans.append((script, len(self._text)))
        elif name == "object":
            self._text += filter(None, [self._objects.formula(attributes.get("href", ""))])
        elif name == "image":
            self.pictures[attributes.get("href", "").removeprefix("./")] = None
        elif name in ("title", "desc") and self._in_frame:
            self._description = []
        elif name == "frame":
            self._in_frame += 1
            self._is_title = attributes.get("class") in ("title", "subtitle")
        elif name == "text-box":
            self._boxes.append((self._text, self._open, self._level, self._spans))
            self._text, self._open, self._level, self._spans = [], 0, None, []
        else:
            self._start_of_part(name, attributes)

    def _start_of_part(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "style":
            self._style = attributes.get("name", "")
        elif name == "text-properties" and self._style:
            position = attributes.get("text-position", "").split(" ")[0]
            lowers = position == "sub" or position.startswith("-")
            raises = position == "super" or position.rstrip("%").strip("0").isdigit()
            self._scripts[self._style] = -1 if lowers else int(raises)
        elif name == "drawing-page-properties" and attributes.get("visibility") == "hidden":
            self._hidden_styles.add(self._style)
        elif name == "page":
            self.slides += 1
            if attributes.get("style-name") in self._hidden_styles and not self._reads_hidden:
                self.hidden_slides.append(self.slides)
                self._skipped = 1
                return
            self._writer.end_section()
            self._marks.append(self._writer.mark())
        elif name == "notes":
            self._marks.append(self._writer.mark())
        elif name == "table":
            self._tables += 1
            if self._tables == 1:
                self._rows, self._merged = [], {}
        elif name == "table-row" and self._tables == 1:
            self._rows.append([])
        elif name in ("table-cell", "covered-table-cell") and self._tables == 1:
            self._cell = []
            self._repeats = min(whole_number(attributes.get("number-columns-repeated"), 1), _MOST_COLUMNS)
            self._covers = min(whole_number(attributes.get("number-rows-spanned"), 1), _MOST)

    def text(self, text: str) -> None:
        if self._skipped:
            return
        if self._comment is not None:
            self._comment[0 if self._is_author else 1].append(text)
        elif self._description is not None:
            self._description.append(text)
        elif self._open:
            self._text.append(text)

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif self._comment is not None:
            self._end_in_comment(name, *self._comment)
        elif name in ("p", "h"):
            self._open -= 1
            if self._open == 0:
                self._paragraph()
        elif name == "span" and self._spans:
            self._end_span(*self._spans.pop())
        elif name == "note":
            self._text.append(")")
        elif name == "list-item":
            self._items -= 1
        elif name == "text-box" and self._boxes:
            self._text, self._open, self._level, self._spans = self._boxes.pop()
        elif name in ("title", "desc") and self._description is not None:
            self._descriptions += filter(None, [described("".join(self._description))])
            self._description = None
        elif name == "forms":
            self._in_forms = False
        elif name == "frame":
            self._is_title = False
            self._in_frame -= 1
            if not self._open and not self._tables:
                self._write_descriptions()
        elif name == "notes" and self._marks:
            self._writer.located(self._marks.pop(), "part", "notes")
        elif name == "page" and self._marks:
            self._writer.located(self._marks.pop(), "slide", self.slides)
        elif name in ("table-cell", "covered-table-cell") and self._tables == 1 and self._rows:
            self._add_cell(self._rows[-1])
        elif name == "table":
            self._tables -= 1
            if self._tables == 0:
                self._writer.table(self._rows)

    def _end_in_comment(self, name: str, author: list[str], parts: list[str]) -> None:
        if name in ("creator", "date", "date-string", "creator-initials"):
            self._is_author = False
            if name != "creator":
                parts.clear()  # these come before the text
        elif name == "annotation":
            self._comment = None
            lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
            if text := "\n".join(filter(None, lines)):
                self.comments.append((" ".join("".join(author).split()), text))

    def _end_span(self, script: int, begin: int) -> None:
        text = "".join(self._text[begin:])
        if script and text.strip():
            before = "".join(self._text[max(begin - 8, 0) : begin])[-60:]
            written = raised_text(before, text) if script > 0 else lowered_text(before, text)
            self._text[begin:] = [written]

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
        self._text, self._spans = [], []
        if self._tables:
            self._cell.append(text)
            return
        self._write_paragraph(text)
        self._write_descriptions()

    def _write_descriptions(self) -> None:
        for line in self._descriptions:
            self._writer.paragraph(line)
        self._descriptions = []

    def _write_field(self, name: str, attributes: Mapping[str, str]) -> None:
        """Write a field of a form with its label or name. Its value and state have defaults."""
        label = " ".join((attributes.get("label") or attributes.get("name", "")).split())
        if name in ("checkbox", "radio"):
            state = attributes.get("current-state") or attributes.get("state", "unchecked")
            chosen = attributes.get("current-selected", attributes.get("selected"))
            box = "[x]" if state == "checked" or chosen == "true" else "[ ]"
            self._writer.paragraph(f"{box} {label}")
        elif name in _FIELDS:
            value = " ".join((attributes.get("current-value") or attributes.get("value", "")).split())
            self._writer.paragraph(f"{label}: {value}" if label else value)

    def _write_paragraph(self, text: str) -> None:
        level = 2 if self._is_title and text.strip() else self._level
        self._writer.paragraph(text, level=level, item=self._items > 0)


def whole_number(text: str | None, default: int) -> int:
    """Return the number in an attribute, or a default if it is missing or not a number."""
    return int(text) if text is not None and text.isdigit() and len(text) < 9 else default
