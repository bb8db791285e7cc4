"""Text that grows paragraph by paragraph, with its headings, locators and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from ketrag_fast.readers.headings import Heading, sections
from ketrag_fast.readers.protocol import SourceFile
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

BLOCK: Final = 700
"""Characters of a table after which its header comes again, so that a passage of its middle has it too."""
_BLANK = re.compile(r"[^\S\n\t]+")


class TextWriter:
    """Paragraphs with blank lines between them; rows of a table are lines with tabs between the cells."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.length = 0
        self.headings: list[Heading] = []
        self.locators: list[Locator] = []
        self._marks: list[list[int]] = []

    def paragraph(self, text: str, *, level: int | None = None, item: bool = False) -> int:
        """Adds a paragraph (an item of a list is a line); where it begins. `level` makes it a heading."""
        plain = "\n".join(_BLANK.sub(" ", line).strip() for line in text.split("\n")).strip("\n")
        if not plain.strip():
            return self.length
        start = self._begin("\n" if item else "\n\n")
        self._put(plain)
        if level is not None:
            self.headings.append(Heading(start, level, plain))
        return start

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """One row a line, cells by tabs; the header comes again where a table is long."""
        lines = []
        for row in rows:
            cells = [" ".join(cell.split()) for cell in row]
            if any(cells):
                lines.append("\t".join(cells).rstrip("\t"))
        if not lines:
            return
        header = lines[0] if "\t" in lines[0] and not any(map(str.isdigit, lines[0])) else ""
        self._begin("\n\n")
        begun = self.length
        self._put(lines[0])
        for line in lines[1:]:
            if header and len(header) < BLOCK // 3 and self.length - begun > BLOCK:
                self._put("\n\n")
                begun = self.length
                self._put(header)
            self._put(f"\n{line}")

    def mark(self) -> list[int]:
        """For `located`: gets the place where the next text begins."""
        found: list[int] = []
        self._marks.append(found)
        return found

    def located(self, mark: list[int], kind: str, value: Any) -> None:
        """What was written since the mark stands there."""
        if mark:
            self.locators.append(Locator(mark[0], self.length, kind, value))

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
        """All of it."""
        whole = "".join(self._parts)
        self._parts = [whole] if whole else []
        return whole

    def document(self, file: SourceFile, title: str, metadata: dict[str, Any]) -> Document:
        """What was written, as a document. Without a title the first heading at its beginning is one."""
        text = self.text()
        first = self.headings[0] if self.headings else None
        if not title and first is not None and not text[: first.start].strip():
            title = first.name
        locators = [*self.locators, *sections(self.headings, len(text), title)]
        return Document(file.id, text, title, metadata, tuple(locators))
