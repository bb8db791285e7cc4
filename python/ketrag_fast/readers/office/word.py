"""DOCX: paragraphs, headings, lists and tables of a Word document. Macros are ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ketrag_fast.base.safe_xml import Handler
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import TextWriter
from ketrag_fast.readers.zip_xml import Package, core_properties, open_package, relations

_MAIN: Final = "word/document.xml"
_BODY: Final = 9
"""The outline level of body text in Word."""


def read_docx(file: SourceFile) -> Iterator[Item]:
    """Yield one document. Its pages are those of Word's last layout."""
    with open_package(file) as package:
        main = next(
            (path for kind, path in relations(package, "").values() if kind == "officeDocument"), _MAIN
        )
        metadata, title = core_properties(package, "docProps/core.xml")
        writer = TextWriter()
        body = _Body(writer, _levels(package))
        package.xml(main, body)
        body.finish()
        for name, part in (("word/footnotes.xml", "footnotes"), ("word/endnotes.xml", "endnotes")):
            if name in package:
                mark = writer.mark()
                notes = _Body(writer, {})
                try:
                    package.xml(name, notes)
                except DocumentError as error:
                    yield file.failure(str(error))
                writer.located(mark, "part", part)
    if not writer.text():
        yield file.failure("the document has no text")
        return
    yield writer.document(file, title, metadata)


class _WordStyles(Handler):
    """Collects the outline level of each style: 0 for the title, 1 for the highest heading."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self.based: dict[str, str] = {}
        self._style = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        value = attributes.get("val", "")
        if name == "style":
            self._style = attributes.get("styleId", "")
        elif name == "name" and self._style:
            plain = value.lower()
            if plain == "title":
                self.levels[self._style] = 0
            elif plain.startswith("heading ") and plain[8:].isdigit():
                self.levels[self._style] = int(plain[8:])
        elif name == "outlineLvl" and self._style and value.isdigit() and int(value) < _BODY:
            self.levels.setdefault(self._style, int(value) + 1)
        elif name == "basedOn":
            self.based[self._style] = value

    def end(self, name: str) -> None:
        if name == "style":
            self._style = ""


def _levels(package: Package) -> dict[str, int]:
    if "word/styles.xml" not in package:
        return {}
    styles = _WordStyles()
    try:
        package.xml("word/styles.xml", styles)
    except DocumentError:
        return {}
    for style in list(styles.based):
        seen = {style}
        above = style
        while above not in styles.levels and (above := styles.based.get(above, "")) and above not in seen:
            seen.add(above)
        if above in styles.levels:
            styles.levels.setdefault(style, styles.levels[above])
    return styles.levels


class _Body(Handler):
    """Collects the paragraphs of the body. A table inside a cell becomes text of the cell."""

    def __init__(self, writer: TextWriter, levels: Mapping[str, int]) -> None:
        self._writer, self._levels = writer, levels
        self._text: list[str] = []
        self._depth = 0  # nesting of tables
        self._rows: list[list[str]] = []
        self._cell: list[str] = []
        self._in_text = False
        self._skipped = 0
        self._style = ""
        self._level: int | None = None
        self._item = False
        self._page = 1
        self._mark = writer.mark()
        self._paged = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipped or name in ("Fallback", "del", "moveFrom"):
            self._skipped += 1
            return
        value = attributes.get("val", "")
        if name == "t":
            self._in_text = True
        elif name == "p":
            if self._text and not self._depth:  # a text box inside a paragraph
                self._paragraph()
            self._style, self._level, self._item = "", None, False
        elif name == "pStyle":
            self._style = value
        elif name == "outlineLvl" and value.isdigit() and int(value) < _BODY:
            self._level = int(value) + 1
        elif name == "numPr":
            self._item = True
        elif name == "tab" and self._style != "tabs":
            self._text.append("\t" if self._text else "")
        elif name == "br" and attributes.get("type") == "page":
            self._turn()
        elif name in ("br", "cr"):
            self._text.append("\n")
        elif name == "lastRenderedPageBreak":
            self._turn()
        elif name == "noBreakHyphen":
            self._text.append("-")
        elif name == "tbl":
            self._depth += 1
            if self._depth == 1:
                self._rows = []
        elif name == "tr" and self._depth == 1:
            self._rows.append([])
        elif name == "tc" and self._depth == 1:
            self._cell = []

    def text(self, text: str) -> None:
        if self._in_text and not self._skipped:
            self._text.append(text)

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif name == "t":
            self._in_text = False
        elif name == "p":
            self._paragraph()
        elif name == "tc" and self._depth == 1 and self._rows:
            self._rows[-1].append(" ".join(self._cell))
        elif name == "tbl":
            self._depth -= 1
            if self._depth == 0:
                self._writer.table(self._rows)

    def _paragraph(self) -> None:
        text = "".join(self._text)
        self._text = []
        if self._depth:
            self._cell.append(text)
            return
        level = self._levels.get(self._style, self._level)
        short = level is not None and len(text) <= 300
        self._writer.paragraph(text, level=level if short else None, item=self._item)

    def _turn(self) -> None:
        """Begin a new page. A paragraph with a page break counts to both pages."""
        self._writer.located(self._mark, "page", self._page)
        self._mark = self._writer.mark()
        self._page += 1
        self._paged = True

    def finish(self) -> None:
        """Close the last page. A document without a stored layout has no pages."""
        if self._paged:
            self._writer.located(self._mark, "page", self._page)
