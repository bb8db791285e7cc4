"""PPTX: the slides of a presentation in order, with titles, texts, tables and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ketrag_fast._core import lowered_text, raised_text
from ketrag_fast.base.safe_xml import Handler
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.office.charts import comment_line, comments_of, write_charts
from ketrag_fast.readers.office.descriptions import described
from ketrag_fast.readers.office.embedded import embedded_items
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import TextWriter, repeated
from ketrag_fast.readers.zip_xml import Package, core_properties, main_part, open_package, relations
from ketrag_fast.types import Failure
from ketrag_fast.types.documents import HIDDEN

_LISTED = 10
_TITLES = ("title", "ctrTitle")
_UNSAID = ("sldNum", "dt", "ftr", "hdr", "sldImg")
"""Placeholders for slide numbers, dates and footers, which every slide repeats."""


def read_pptx(file: SourceFile) -> Iterator[Item]:
    """Yield one document with a locator per slide, and failures for unreadable slides."""
    with open_package(file) as package:
        metadata, title = core_properties(package, "docProps/core.xml")
        writer = TextWriter()
        slides = _slides(package)
        broken: list[str] = []
        hidden: list[int] = []
        footers: dict[str, None] = {}
        for number, slide in enumerate(slides, 1):
            writer.end_section()
            mark = writer.mark()
            try:
                handler = _Slide(writer, hidden=file.hidden)
                package.xml(slide, handler)
                if handler.is_left_out:
                    hidden.append(number)
                    continue
                broken += [f"slide {number}: {why}" for why in write_charts(package, slide, writer)]
                _notes(package, slide, writer)
                for _, author, text in comments_of(package, slide):
                    writer.paragraph(comment_line(author, text))
                footers.update(dict.fromkeys(handler.footers))
            except DocumentError as error:
                broken.append(f"slide {number}: {error}")
            writer.located(mark, "slide", number)
        writer.end_section()
        mark = writer.mark()
        for footer in footers:
            writer.paragraph(footer)
        writer.located(mark, "part", "footer")
        members = list(embedded_items(file, package))
    if writer.text():
        yield writer.document(file, title, metadata | {"slides": len(slides)})
    elif not broken and not hidden:
        yield file.failure("no slide has text")
    if hidden:
        listed = ", ".join(map(str, hidden[:_LISTED])) + (", ..." if len(hidden) > _LISTED else "")
        yield Failure(file.id, HIDDEN, f"slide {listed}" if len(hidden) == 1 else f"slides {listed}")
    for why in broken:
        yield file.failure(why)
    yield from members


def _slides(package: Package) -> list[str]:
    main = main_part(package, "ppt/presentation.xml")
    handler = _Order()
    package.xml(main, handler)
    known = relations(package, main)
    found = [known[name][1] for name in handler.ids if name in known]
    return [path for path in found if path in package]


class _Order(Handler):
    def __init__(self) -> None:
        self.ids: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        # Without prefixes, the slide number and the relation are both called `id`; the relation is last.
        if name == "sldId":
            self.ids.append(attributes.get("id", ""))


def _notes(package: Package, slide: str, writer: TextWriter) -> None:
    for kind, path in relations(package, slide).values():
        if kind == "notesSlide" and path in package:
            mark = writer.mark()
            package.xml(path, _Slide(writer, notes=True))
            writer.located(mark, "part", "notes")


class _Slide(Handler):
    def __init__(self, writer: TextWriter, *, notes: bool = False, hidden: bool = True) -> None:
        self._writer, self._notes, self._hidden = writer, notes, hidden
        self.is_left_out = False
        self._place = ""
        self._in_text = False
        self._paragraph: list[str] = []
        self._shape: list[str] = []
        self._rows: list[list[str]] | None = None
        self._goes_on = False  # the cell above
        self._skipped = 0
        self.footers: list[str] = []
        """Footers and headers, which many slides repeat."""
        self._descriptions: list[str] = []  # of pictures
        self._script = 0  # of the run: raised (positive) or lowered

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "sld" and not self._hidden and attributes.get("show") in ("0", "false"):
            self.is_left_out = True
            self._skipped = 1
        elif self._skipped or name == "Fallback":
            self._skipped += 1
        elif name == "sp":
            self._place, self._shape = "", []
        elif name == "ph":
            self._place = attributes.get("type", "body")
        elif name == "cNvPr" and not self._notes and (line := described(attributes.get("descr", ""))):
            self._descriptions.append(line)
        elif name == "t":
            self._in_text = True
        elif name == "r":
            self._script = 0
        elif name == "rPr":
            baseline = attributes.get("baseline", "0").rstrip("%")
            self._script = int(baseline) if baseline.lstrip("-").isdigit() and len(baseline) < 8 else 0
        elif name == "br":
            self._paragraph.append("\n")
        elif name == "tbl":
            self._rows = []
        elif name == "tr" and self._rows is not None:
            self._rows.append([])
        elif name == "tc" and self._rows is not None:
            self._shape = []
            self._goes_on = attributes.get("vMerge") in ("1", "true")

    def text(self, text: str) -> None:
        if self._in_text and not self._skipped:
            if self._script and text.strip():
                before = "".join(self._paragraph[-8:])[-60:]
                text = raised_text(before, text) if self._script > 0 else lowered_text(before, text)
            self._paragraph.append(text)

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif name == "t":
            self._in_text = False
        elif name == "p":
            text = "".join(self._paragraph).strip()
            self._paragraph = []
            if text:
                self._shape.append(text)
        elif name == "tc" and self._rows:
            self._add_cell(self._rows)
        elif name == "tbl" and self._rows is not None:
            self._writer.table(self._rows)
            self._rows = None
        elif name in ("sp", "pic", "graphicFrame"):
            if name == "sp":
                self._write()
            for line in self._descriptions:
                self._writer.paragraph(line)
            self._descriptions = []

    def _add_cell(self, rows: list[list[str]]) -> None:
        """Add a cell to the last row. A cell merged downwards is repeated in each of its rows."""
        text, row = " ".join(self._shape), rows[-1]
        if self._goes_on and not text and len(rows) > 1 and len(row) < len(rows[-2]):
            text = repeated(rows[-2][len(row)])
        row.append(text)
        self._shape = []

    def _write(self) -> None:
        if not self._shape or self._place in _UNSAID:
            if self._place in ("ftr", "hdr") and not self._notes:
                self.footers += self._shape
            return
        if self._place in _TITLES and not self._notes:
            self._writer.paragraph(" ".join(" ".join(self._shape).split()), level=2)
            return
        for number, text in enumerate(self._shape):
            self._writer.paragraph(text, item=number > 0)
