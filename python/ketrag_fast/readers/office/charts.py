"""Parts around the text of Office files: charts, diagrams, comments, and page numbers in headers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ketrag_fast.base.safe_xml import Handler
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.office.descriptions import described
from ketrag_fast.readers.text_builder import TextWriter
from ketrag_fast.readers.zip_xml import Package, relations

PAGE_NUMBER: Final = re.compile(r"[\W\d_]*(?:\w{1,8}\s*\d+(?:\s*\S{1,4}\s*\d+)?)?[\W\d_]*")
"""A header or footer that has only the number of the page."""
_MOST_POINTS: Final = 1_000
"""Points of a chart that are read."""
_MOST_SERIES: Final = 50


def write_charts(package: Package, part: str, writer: TextWriter) -> list[str]:
    """Write the charts and diagrams of a part, and return what is wrong with those that cannot be read."""
    broken: list[str] = []
    for kind, path in relations(package, part).values():
        if path not in package:
            continue
        try:
            if kind == "chart":
                write_chart(package, path, writer)
            elif kind == "diagramData":
                diagram = _Texts("pt")
                package.xml(path, diagram)
                for number, text in enumerate(diagram.texts):
                    writer.paragraph(text, item=number > 0)
        except DocumentError as error:
            broken.append(str(error))
    return broken


class Shapes(Handler):
    """Collects the text boxes of a drawing and the descriptions of its pictures."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._parts: list[str] = []
        self._in_text = False
        self._skipped = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""
        if self._skipped or name == "Fallback":
            self._skipped += 1
        elif name == "cNvPr" and (text := described(attributes.get("descr", ""))):
            self.texts.append(text)
        self._in_text = name == "t" and not self._skipped

    def text(self, text: str) -> None:
        """Handle text."""
        if self._in_text:
            self._parts.append(text)

    def end(self, name: str) -> None:
        """Handle the end of an element."""
        self._in_text = False
        if self._skipped:
            self._skipped -= 1
        elif name == "p":
            text = " ".join("".join(self._parts).split())
            self._parts = []
            self.texts += [text] if text else []


def write_chart(package: Package, path: str, writer: TextWriter) -> None:
    """Write the title, the titles of the axes, and the points of a chart as a table."""
    chart = _Chart()
    package.xml(path, chart)
    mark = writer.mark()
    for number, title in enumerate(chart.titles):
        writer.paragraph(title, item=number > 0)
    writer.table(list(chart.rows()))
    writer.located(mark, "part", "chart")


class _Chart(Handler):
    """Collects titles, and names, categories and values of the series."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self._path: list[str] = []
        self._parts: list[str] = []
        self._title: list[str] | None = None
        self._series: list[dict[str, dict[int, str]]] = []
        self._point = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._path.append(name)
        self._parts = []
        if name == "title":
            self._title = []
        elif name == "ser" and len(self._series) < _MOST_SERIES:
            self._series.append({"tx": {}, "cat": {}, "val": {}})
        elif name == "pt":
            number = attributes.get("idx", "")
            self._point = int(number) if number.isdigit() and len(number) < 7 else 0

    def text(self, text: str) -> None:
        self._parts.append(text)

    def end(self, name: str) -> None:
        self._path.pop()
        text = "".join(self._parts)
        self._parts = []
        if name == "t" and self._title is not None:
            self._title.append(text)
        elif name == "p" and self._title:
            self._title.append(" ")
        elif name == "title" and self._title is not None:
            self.titles += filter(None, [" ".join("".join(self._title).split())])
            self._title = None
        elif name == "v" and self._title is not None:
            self._title.append(text)
        elif name == "v" and "ser" in self._path and self._series:
            self._add(text.strip())

    def _add(self, text: str) -> None:
        for role, names in (("tx", ("tx",)), ("cat", ("cat", "xVal")), ("val", ("val", "yVal"))):
            if any(name in self._path for name in names) and self._point < _MOST_POINTS:
                self._series[-1][role].setdefault(self._point if role != "tx" else 0, text)
                return

    def rows(self) -> Iterator[Sequence[str]]:
        """Yield the names of the series, and a row for each category."""
        if not self._series:
            return
        names = [series["tx"].get(0, "") for series in self._series]
        if any(names):
            yield ["", *names]
        columns = (series[role] for series in self._series for role in ("cat", "val"))
        points = sorted({point for column in columns for point in column})
        for point in points:
            label = next((one["cat"][point] for one in self._series if point in one["cat"]), "")
            yield [label, *(series["val"].get(point, "") for series in self._series)]


class _Texts(Handler):
    """Collects the text of each element with a name."""

    def __init__(self, name: str) -> None:
        self.texts: list[str] = []
        self._name = name
        self._parts: list[str] = []
        self._in_text = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._in_text = name == "t"

    def text(self, text: str) -> None:
        if self._in_text:
            self._parts.append(text)

    def end(self, name: str) -> None:
        self._in_text = False
        if name == "p":
            self._parts.append(" ")
        elif name == self._name:
            self.texts += filter(None, [" ".join("".join(self._parts).split())])
            self._parts = []


class _Comments(Handler):
    """Collects the comments on cells or slides: where each of them is, its author, and its text."""

    def __init__(self) -> None:
        self.comments: list[tuple[str, str, str]] = []
        self._authors: list[str] = []
        self._where = self._author = ""
        self._parts: list[str] = []
        self._is_author = self._in_text = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in ("comment", "threadedComment", "cm"):
            self._where = attributes.get("ref", "")
            number = attributes.get("authorId", "")
            known = number.isdigit() and len(number) < 6 and int(number) < len(self._authors)
            self._author = self._authors[int(number)] if known else ""
            self._parts = []
        elif name == "author":
            self._is_author, self._parts = True, []
        elif name in ("t", "text"):
            self._in_text = True

    def text(self, text: str) -> None:
        if self._in_text or self._is_author:
            self._parts.append(text)

    def end(self, name: str) -> None:
        if name in ("t", "text"):
            self._in_text = False
        elif name == "author":
            self._authors.append(" ".join("".join(self._parts).split()))
            self._is_author, self._parts = False, []
        elif name == "p":
            self._parts.append("\n")
        elif name in ("comment", "threadedComment", "cm"):
            text = "\n".join(" ".join(line.split()) for line in "".join(self._parts).split("\n")).strip()
            if self._author and text.startswith(f"{self._author}:"):
                text = text[len(self._author) + 1 :].strip()
            if text:
                self.comments.append((self._where, self._author, text))
            self._parts = []


def comments_of(package: Package, part: str) -> list[tuple[str, str, str]]:
    """Return the comments of a sheet or slide: cell, author and text. Threads replace their copies."""
    found: dict[str, _Comments] = {}
    for kind, path in relations(package, part).values():
        if kind in ("comments", "threadedComment") and path in package:
            package.xml(path, found.setdefault(kind, _Comments()))
    own = found.get("threadedComment") or found.get("comments")
    return own.comments if own is not None else []


def comment_line(author: str, text: str, where: str = "") -> str:
    """Return a comment with its author, and its cell if there is one."""
    about = f"{f' on {where}' if where else ''}{f' by {author}' if author else ''}"
    return f"Comment{about}: {text}"
