"""Build a text paragraph by paragraph, with headings, tables and locators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ketrag_fast.readers.protocol import SourceFile
from ketrag_fast.readers.titles import cut_name, cut_path
from ketrag_fast.records import dataclass
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

_REPEATED: Final = 300
_BLANK = re.compile(r"[^\S\n\t]+")


class TextWriter:
    """Writes paragraphs separated by blank lines, and table rows as lines with tabs between cells."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.length = 0
        self.headings: list[Heading] = []
        self.locators: list[Locator] = []
        self._marks: list[list[int]] = []

    def paragraph(self, text: str, *, level: int | None = None, item: bool = False) -> int:
        """Add a paragraph (or a list item) and return its offset. `level` makes it a heading."""
        plain = self.plain(text)
        if not plain:
            return self.length
        start = self._begin("\n" if item else "\n\n")
        self._put(plain)
        if level is not None:
            self.headings.append(Heading(start, level, plain))
        return start

    def verbatim(self, text: str) -> None:
        """Add lines as they are, without blanks at their ends and without empty lines around them."""
        lines = "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
        if lines:
            self._begin("\n\n")
            self._put(lines)

    @staticmethod
    def plain(text: str) -> str:
        """Return the text as `paragraph` writes it: lines stripped, no empty lines at both ends."""
        plain = "\n".join(_BLANK.sub(" ", line).strip() for line in text.split("\n")).strip("\n")
        return plain if plain.strip() else ""

    def table(self, rows: Sequence[Sequence[str]]) -> list[int | None]:
        """Add a table: one line per row, tabs between cells.

        Returns the offset of each row, None for an empty one.
        """
        starts: list[int | None] = []
        is_open = False
        for row in rows:
            cells = [" ".join(cell.split()) for cell in row]
            if not any(cells):
                starts.append(None)
                continue
            starts.append(self._begin("\n" if is_open else "\n\n"))
            self._put("\t".join(cells).rstrip("\t"))
            is_open = True
        return starts

    def mark(self) -> list[int]:
        """Return a mark for `located` that will hold the offset of the next text."""
        found: list[int] = []
        self._marks.append(found)
        return found

    def located(self, mark: list[int], kind: str, value: Any, *, end: int | None = None) -> None:
        """Add a locator for the text written since the mark, or for that before the offset `end`."""
        stop = self.length if end is None else end
        if mark and mark[0] < stop:
            self.locators.append(Locator(mark[0], stop, kind, value))

    def end_section(self) -> None:
        """End the section of the last heading: what follows has no heading."""
        if self.headings and self.headings[-1].name:
            self.headings.append(Heading(self.length, 0, ""))

    def _begin(self, between: str) -> int:
        if self._parts:
            self._put(between)
        for mark in self._marks:
            mark.append(self.length)
        self._marks.clear()
        return self.length

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self.length += len(text)

    def text(self) -> str:
        """Return the text."""
        whole = "".join(self._parts)
        self._parts = [whole] if whole else []
        return whole

    def document(self, file: SourceFile, title: str, metadata: dict[str, Any]) -> Document:
        """Return the document. The default title is a heading at its beginning."""
        text = self.text()
        first = self.headings[0] if self.headings else None
        if not title and first is not None and not text[: first.start].strip():
            title = first.name
        locators = [*self.locators, *sections(self.headings, len(text), title)]
        return Document(file.id, text, title, metadata, tuple(locators))


def repeated(cell: str) -> str:
    """Return the text of a merged cell for a further row: "" if it is long."""
    return cell if len(cell) <= _REPEATED else ""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that begins at offset `start`; level 1 is the highest. One without a name ends a section."""

    start: int
    level: int
    name: str


def sections(headings: Iterable[Heading], length: int, title: str = "") -> list[Locator]:
    """Return a locator for each section that has a path. Paths leave out the document title."""
    ordered = sorted(headings, key=lambda heading: heading.start)
    path: list[tuple[int, str]] = []
    own = cut_name(title)
    found: list[Locator] = []
    ends = [*(heading.start for heading in ordered[1:]), length]
    for heading, end in zip(ordered, ends, strict=False):
        while path and path[-1][0] >= heading.level:
            path.pop()
        if heading.name:
            path.append((heading.level, cut_name(heading.name)))
        names = [name for _, name in path]
        if names[:1] == [own]:
            names = names[1:]
        if names and end > heading.start:
            found.append(Locator(heading.start, end, "heading", cut_path(names)))
    return found


def without_closing(text: str) -> str:
    """Return the text of a Markdown heading without surrounding blanks and closing number signs."""
    name = text.strip(" \t")
    inner = name.rstrip("#")
    return inner.rstrip(" \t") if inner.endswith((" ", "\t")) else name
