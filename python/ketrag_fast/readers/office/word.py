"""DOCX: paragraphs, headings, lists and tables of a Word document. Macros are ignored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from ketrag_fast._core import lowered_text, raised_text
from ketrag_fast.base.safe_xml import Handler
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.office.charts import PAGE_NUMBER, comment_line, write_charts
from ketrag_fast.readers.office.descriptions import described
from ketrag_fast.readers.office.embedded import embedded_items
from ketrag_fast.readers.office.symbol_fonts import symbol
from ketrag_fast.readers.office.word_controls import Control, FormField
from ketrag_fast.readers.office.word_formula import WordFormula
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import TextWriter, repeated
from ketrag_fast.readers.zip_xml import Package, core_properties, main_part, open_package, relations

_MAIN: Final = "word/document.xml"
_BODY: Final = 9
"""The outline level of body text in Word."""
_PASSED: Final = ("Fallback", "del", "moveFrom", "rt")
"""Elements without text of the document: deleted text, and small letters above others that repeat them."""
_DEEPEST: Final = 4_000
"""Nested elements of a text; a formula has two for each of its levels."""
_MOST_COLUMNS: Final = 63
"""Maximum number of columns of a table in Word."""
_MOST_TURNS: Final = 50
"""Maximum number of places in a paragraph at which pages begin; further pages begin at the last of them."""


def read_docx(file: SourceFile) -> Iterator[Item]:
    """Yield one document. Its pages are those of Word's last layout.

    Charts, notes, comments, and each different header and footer follow the text.
    """
    with open_package(file) as package:
        main = main_part(package, _MAIN)
        metadata, title = core_properties(package, "docProps/core.xml")
        writer = TextWriter()
        body = _Body(writer, _levels(package))
        broken = ""
        try:
            package.xml(main, body, deepest=_DEEPEST)
        except DocumentError as error:
            broken = str(error)
        body.finish()
        for problem in write_charts(package, main, writer):
            yield file.failure(problem)
        writer.end_section()
        for name, part in _PARTS:
            if name in package:
                mark = writer.mark()
                try:
                    package.xml(name, _Body(writer, {}))
                except DocumentError as error:
                    yield file.failure(str(error))
                writer.located(mark, "part", part)
        yield from _headers(file, package, main, writer)
        if writer.text():
            yield writer.document(file, title, metadata)
        if broken:
            yield file.failure(broken)
        elif not writer.text():
            yield file.failure("the document has no text")
        yield from embedded_items(file, package)


_PARTS: Final = (
    ("word/footnotes.xml", "footnotes"),
    ("word/endnotes.xml", "endnotes"),
    ("word/comments.xml", "comments"),
)


def _headers(file: SourceFile, package: Package, main: str, writer: TextWriter) -> Iterator[Item]:
    """Write each text of headers and footers once, unless the document has it or it is a number."""
    known = {line.strip() for line in writer.text().split("\n")}
    for kind, path in sorted(relations(package, main).values()):
        if kind not in ("header", "footer") or path not in package:
            continue
        own = TextWriter()
        try:
            package.xml(path, _Body(own, {}))
        except DocumentError as error:
            yield file.failure(str(error))
        mark = writer.mark()
        for line in own.text().split("\n"):
            if line.strip() not in known and not PAGE_NUMBER.fullmatch(line):
                known.add(line.strip())
                writer.paragraph(line)
        writer.located(mark, "part", kind)


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
    """Collects the paragraphs of the body. A table inside a cell becomes text of the cell.

    Deleted and hidden text is left out. A cell merged downwards is repeated in each of its rows.
    """

    def __init__(self, writer: TextWriter, levels: Mapping[str, int]) -> None:
        self._writer, self._levels = writer, levels
        self._text: list[str] = []
        self._has_words = False
        self._depth = 0  # nesting of tables
        self._rows: list[list[str]] = []
        self._cell: list[str] = []
        self._columns = 1  # of the cell
        self._goes_on = False  # the cell above
        self._in_text = False
        self._in_run = False
        self._is_hidden = False
        self._skipped = 0
        self._style = ""
        self._level: int | None = None
        self._item = False
        self._page = 1
        self._mark = writer.mark()
        self._is_broken = False  # by a manual break, whose page has no text yet
        self._turns: list[int] = []  # pages that begin inside the paragraph: offsets in its text
        self._turned_rows: list[int] = []
        self._formula: WordFormula | None = None
        self._formulas = 0  # nested elements
        self._script = ""  # of the run: superscript or subscript
        self._run_begin = 0
        self._raised = (-1, "", "")  # where the last script begins and its kind and text
        self._author: str | None = None  # of a comment
        self._controls: list[Control] = []  # enclosing content controls
        self._label, self._labelled = "", 0  # of the content control at the beginning of a paragraph, its end
        self._descriptions: list[str] = []  # of pictures in the paragraph
        self._field: FormField | None = None
        self._in_control = False  # in its properties

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipped or name in _PASSED or name.endswith("PrChange"):
            self._skipped += 1
            return
        if self._formula is not None:
            self._formula.start(name, attributes)
            self._formulas += 1
            return
        value = attributes.get("val", "")
        if self._field is not None:
            self._field.start(name, value)
        elif self._in_control:
            if self._controls:
                self._controls[-1].start(name, value)
        elif name == "t":
            self._in_text = not self._is_hidden and not self._is_prompt()
        elif name == "r":
            self._in_run, self._is_hidden, self._script = True, False, ""
            self._run_begin = len(self._text)
        elif name == "vertAlign" and self._in_run:
            self._script = value if value in ("superscript", "subscript") else ""
        elif name == "oMath":
            self._formula, self._formulas = WordFormula(), 0
        elif name == "comment":
            self._author = attributes.get("author", "")
        elif name == "vanish" and self._in_run:
            self._is_hidden = value not in ("0", "false", "off")
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
        elif name in ("tab", "br", "cr", "noBreakHyphen", "lastRenderedPageBreak", "sym"):
            self._mark_in_text(name, attributes)
        else:
            self._start_of_part(name, attributes)

    def _mark_in_text(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "br" and attributes.get("type") == "page":
            self._turn()
            self._is_broken = True
        elif name == "lastRenderedPageBreak":
            if not self._is_broken:  # Word also notes the page that a manual break begins
                self._turn()
            self._is_broken = False
        elif self._is_hidden:
            return
        elif name == "sym":
            self._symbol(attributes)
        elif name == "tab":
            self._text.append("\t" if self._text and self._in_run else "")
        else:
            self._text.append("-" if name == "noBreakHyphen" else "\n")

    def _symbol(self, attributes: Mapping[str, str]) -> None:
        """Write a character of the font Symbol or Wingdings."""
        code = attributes.get("char", "")
        with suppress(ValueError):
            self._text.append(symbol(attributes.get("font", ""), int(code[:8], 16)) or "")
            self._has_words = True

    def _is_prompt(self) -> bool:
        """Return whether the text is that of an empty content control: "Click here to enter text"."""
        return bool(self._controls) and self._controls[-1].is_empty

    def _start_of_part(self, name: str, attributes: Mapping[str, str]) -> None:
        value = attributes.get("val", "")
        if name == "sdt":
            self._controls.append(Control(len(self._text)))
        elif name == "sdtPr":
            self._in_control = True
        elif name == "ffData":
            self._field = FormField()
        elif name == "docPr" and (text := described(attributes.get("descr", ""))):
            self._descriptions.append(text)
        elif name == "tbl":
            self._depth += 1
            if self._depth == 1:
                self._rows, self._turned_rows = [], []
        elif self._depth != 1:
            return
        elif name == "tr":
            self._rows.append([])
        elif name == "gridBefore" and self._rows:
            self._rows[-1] += [""] * _columns(value)
        elif name == "tc":
            self._cell, self._columns, self._goes_on = [], 1, False
        elif name == "gridSpan":
            self._columns = _columns(value)
        elif name == "vMerge":
            self._goes_on = value != "restart"

    def text(self, text: str) -> None:
        if self._formula is not None and not self._skipped:
            self._formula.text(text)
        elif self._in_text and not self._skipped:
            self._text.append(text)
            if not text.isspace():
                self._has_words, self._is_broken = True, False

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif self._formula is not None:
            self._end_in_formula(self._formula)
        elif name == "ffData" and self._field is not None:
            self._text += filter(None, [self._field.written()])
            self._has_words |= bool(self._field.written())
            self._field = None
        elif name == "sdtPr":
            self._in_control = False
        elif name == "sdt" and self._controls:
            self._end_control(self._controls.pop())
        elif name == "t":
            self._in_text = False
        elif name == "r":
            if self._script:
                self._end_script()
            self._in_run = self._is_hidden = False
        elif name == "p":
            self._paragraph()
        elif name == "tc" and self._depth == 1 and self._rows:
            self._add_cell(self._rows[-1])
        elif name == "tbl":
            self._depth -= 1
            if self._depth == 0:
                self._table()

    def _end_in_formula(self, formula: WordFormula) -> None:
        if self._formulas:
            self._formulas -= 1
            formula.end()
            return
        self._formula = None
        self._text.append(formula.written())
        self._has_words, self._is_broken = True, False

    def _end_control(self, control: Control) -> None:
        """Note the label of a content control that begins its paragraph, which has no other label."""
        if control.begin == 0 and not self._depth and "".join(self._text).strip():
            self._label, self._labelled = control.label(), len(self._text)

    def _end_script(self) -> None:
        """Write a run that is raised or lowered, with the runs before it that are one with it."""
        begin, text = self._run_begin, "".join(self._text[self._run_begin :])
        before = self._raised
        if (
            before[0] >= 0
            and before[0] + 1 == begin
            and before[1] == self._script
            and len(self._text) > begin
        ):
            begin, text = before[0], before[2] + text
        if not text.strip():
            return
        base = "".join(self._text[max(begin - 8, 0) : begin])[-60:]
        written = raised_text(base, text) if self._script == "superscript" else lowered_text(base, text)
        self._text[begin:] = [written]
        self._raised = (begin, self._script, text)

    def _add_cell(self, row: list[str]) -> None:
        text = " ".join(self._cell)
        if self._goes_on and len(self._rows) > 1 and not text.strip():
            above = self._rows[-2]
            text = repeated(above[len(row)]) if len(row) < len(above) else ""
        row += [text, *[""] * (self._columns - 1)]

    def _table(self) -> None:
        """Write a table. A row with a page break counts to the page on which it begins."""
        starts = self._writer.table(self._rows)
        following: int | None = None
        after: list[int | None] = []  # for each row from the last: where the next one begins
        for start in reversed(starts):
            after.append(following)
            following = following if start is None else start
        for number in self._turned_rows:
            self._begin_page(after[len(starts) - 1 - number])

    def _paragraph(self) -> None:
        text = "".join(self._text)
        if self._label and self._labelled == len(self._text):
            text = f"{self._label}: {text}"
        self._label = ""
        self._text, self._has_words, self._raised = [], False, (-1, "", "")
        if self._author is not None and text.strip():
            text, self._author = comment_line(self._author, text), None
        if self._depth:
            self._cell.append(text)
            return
        level = self._levels.get(self._style, self._level)
        short = level is not None and len(text) <= 300
        start = self._writer.paragraph(text, level=level if short else None, item=self._item)
        for turn, pages in Counter(self._turns).items():
            before, after = self._writer.plain(text[:turn]), self._writer.plain(text[turn:])
            for _ in range(pages):
                self._begin_page(start + len(before) if before and after else None)
        self._turns = []
        for line in self._descriptions:
            self._writer.paragraph(line)
        self._descriptions = []

    def _turn(self) -> None:
        """Begin a new page: now, inside the paragraph, or after the row of a table."""
        if self._depth:
            if self._rows:
                self._turned_rows.append(len(self._rows) - 1)
        elif self._has_words:
            is_last = len(self._turns) >= _MOST_TURNS
            self._turns.append(self._turns[-1] if is_last else sum(map(len, self._text)))
        else:
            self._begin_page(None)

    def _begin_page(self, at: int | None) -> None:
        """Close the page and begin the next one at an offset of the text, or with the next text."""
        self._writer.located(self._mark, "page", self._page, end=at)
        self._mark = self._writer.mark() if at is None else [at]
        self._page += 1

    def finish(self) -> None:
        """Close the last page. A document without a stored layout has no pages."""
        if self._page > 1:
            self._writer.located(self._mark, "page", self._page)


def _columns(value: str) -> int:
    return min(int(value), _MOST_COLUMNS) if value.isdigit() and len(value) < 6 else 1


_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
_HEAD: Final = 1 << 16


def refuse_encrypted(file: SourceFile) -> None:
    """Raise DocumentError for an Office file with a password."""
    if _ENCRYPTED in file.head(_HEAD):
        raise DocumentError("encrypted: it needs a password")


def read_old(file: SourceFile) -> Iterator[Item]:
    """Yield a failure that says how to convert or decrypt the file."""
    refuse_encrypted(file)
    yield file.failure("files of Word and PowerPoint 97-2003 are not read: save it as .docx or .pptx")
