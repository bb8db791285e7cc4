"""Search for people and assistants: hits with places and snippets, exact matches, and excerpts of texts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import UnknownName
from ketrag_fast.query.grep import FoundLine, matching_counts, matching_lines
from ketrag_fast.query.inspect import document_title
from ketrag_fast.query.limits import Clock
from ketrag_fast.query.narrowing import documents_of_globs, units_of_pattern
from ketrag_fast.query.open_generation import FilterMask, Opened, mask_of
from ketrag_fast.query.plan import plan_query
from ketrag_fast.query.query import Query
from ketrag_fast.query.retrieval import run_plan
from ketrag_fast.query.snippets import Snippets
from ketrag_fast.query.source_paths import SourceFile, SourcePaths, without_part
from ketrag_fast.systems.shared.row_text import span_of
from ketrag_fast.types import Context, Excerpt, Files, Hit, Hits, Match, Passage, Place
from ketrag_fast.types.locations import Location, Locator

Globs = str | Sequence[str] | None
BELOW: Final = "below_min_score"
"""Why there are no hits if the best one has a lower score than was wanted."""
_POSITION: Final = ("lines", "page", "cell", "time")
"""Fields of a place that say where in a file it is."""
_SHOWN: Final = 20
"""Lines of an excerpt from one line on."""


def relevance_of(passage: Passage) -> float:
    """Return the relevance of a passage."""
    return passage.score


@dataclass(frozen=True)
class Searcher:
    """Searches one opened generation; `folder` is that of its tables."""

    opened: Opened
    folder: Path
    paths: SourcePaths = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", SourcePaths(self.folder))

    @property
    def units(self) -> Mapping[str, NDArray[Any]]:
        """Arrays of the stage `units`."""
        return self.opened.generation.stages["units"]

    # ------------------------------------------------------------ ranked

    def search(
        self,
        path: Path,
        query: Query,
        min_score: float | None,
        globs: Globs,
        pattern: _core.Pattern | None,
    ) -> Hits:
        """Return the best passages for a query, of those that globs and pattern leave."""

        def narrow(filtered: FilterMask | None, clock: Clock) -> FilterMask | None:
            fits = self._units(None if filtered is None else filtered.fits, globs)
            if pattern is not None:
                fits = units_of_pattern(self.opened, pattern, fits, clock.left)
            return filtered if fits is None else mask_of(fits)

        narrows = globs is not None or pattern is not None
        plan = plan_query(self.opened, path, query, narrow=narrow if narrows else None)
        context = run_plan(plan, [query.text], quoted=False)[0][0]
        return self.hits(context, min_score, plan.ranked_text(query.text))

    def hits(self, context: Context, min_score: float | None, ranked: str) -> Hits:
        """Return the passages of a context as hits. `ranked` is the text that they were ranked by."""
        passages = [
            passage for passage in context.passages if min_score is None or relevance_of(passage) >= min_score
        ]
        files = self.paths.of(passage.document for passage in passages)
        snippets = Snippets(self.opened, ranked)
        reason = context.reason
        if context.passages and not passages:
            reason = BELOW
        return Hits(
            context.question,
            context.mode,
            tuple(self._hit(rank, one, snippets, files) for rank, one in enumerate(passages, 1)),
            reason,
            context.warnings,
            context.generation,
        )

    def _hit(self, rank: int, passage: Passage, snippets: Snippets, files: Mapping[str, SourceFile]) -> Hit:
        text, location, title, start = passage.text, passage.location, passage.title, passage.start
        if passage.units:  # of neighbours that were found together, the best one is shown
            span = span_of(self.units, passage.unit)
            text, title, start = span.text, span.title, span.start
            location = self.opened.places.of_unit(passage.unit, span.start, span.end)
        place = place_fields(passage.document, files, location, title)
        first = None if place["lines"] is None else place["lines"][0]
        return Hit(
            **place,
            text_lines=self._text_lines(place, passage.document, start, text),
            rank=rank,
            score=relevance_of(passage),
            text=text,
            snippet=snippets.lines(text, first),
            unit=passage.unit,
        )

    def _text_lines(
        self, place: Mapping[str, Any], document: str, start: int, text: str
    ) -> tuple[int, int] | None:
        """Return the lines of the indexed text that a passage has, if it has no other position."""
        number = self.opened.texts.numbers.get(document)
        if number is None or any(place[field] is not None for field in _POSITION):
            return None
        first = self.opened.texts.text(number).count("\n", 0, start) + 1
        return first, first + text.count("\n")

    def _units(self, fits: NDArray[np.bool_] | None, globs: Globs) -> NDArray[np.bool_] | None:
        """Return the units of a mask that are in documents which globs want."""
        documents = documents_of_globs(self.opened, globs, self.paths)
        if documents is None:
            return fits
        texts = self.opened.texts
        rows = np.repeat(documents, np.diff(texts.first_row))
        units = rows[self.units["unit_document"]]
        return units if fits is None else units & fits

    def _documents(self, filtered: FilterMask | None, globs: Globs) -> NDArray[np.bool_] | None:
        """Return the documents that a filter and globs leave; None for all."""
        wanted = documents_of_globs(self.opened, globs, self.paths)
        if filtered is None or filtered.core is None:
            return wanted
        matches = self.opened.texts.wanted(filtered.fits)
        return matches if wanted is None else wanted & matches

    # ------------------------------------------------------------ exact

    def grep(
        self,
        pattern: _core.Pattern,
        filtered: FilterMask | None,
        globs: Globs,
        limit: int | None,
        check: Callable[[], object],
    ) -> list[Match]:
        """Return the lines that match a pattern, in index order."""
        found = list(matching_lines(self.opened, pattern, self._documents(filtered, globs), limit, check))
        names = self.opened.texts.names
        files = self.paths.of(names[line.document] for line in found)
        return [self._match(line, files) for line in found]

    def counts(
        self,
        pattern: _core.Pattern,
        filtered: FilterMask | None,
        globs: Globs,
        check: Callable[[], object],
    ) -> dict[str, int]:
        """Return the number of matching lines of each file, or document without one, that has any."""
        counted = matching_counts(self.opened, pattern, self._documents(filtered, globs), check)
        names = self.opened.texts.names
        files = self.paths.of(names[document] for document, _ in counted)
        found: dict[str, int] = {}
        for document, count in counted:
            name = names[document]
            key = files[name].path if name in files else name
            found[key] = found.get(key, 0) + count
        return found

    def _match(self, found: FoundLine, files: Mapping[str, SourceFile]) -> Match:
        number = found.line.number
        rows = self._rows(found.document)
        location = self.opened.places.of_rows(rows, found.start, found.end)
        if number is not None:
            location["lines"] = [number, number]
        name = self.opened.texts.names[found.document]
        title = self._titles.get(found.document)
        if title is None:
            title = self._titles[found.document] = document_title(self.units, rows)
        place = place_fields(name, files, location, title)
        has_other = any(place[field] is not None for field in _POSITION)
        lines = None if has_other else (found.text_line, found.text_line)
        return Match(**place, text_lines=lines, line=found.line)

    @cached_property
    def _titles(self) -> dict[int, str]:
        return {}

    def _rows(self, document: int) -> range:
        first, last = self.opened.texts.first_row[document : document + 2].tolist()
        return range(first, last)

    # ------------------------------------------------------------ texts

    def excerpt(self, name: str, part: Part, filtered: FilterMask | None) -> Excerpt:
        """Return a part of the text of a file, named by its path or by the id of a document.

        Raises UnknownName if it is not in the index, or not among the documents that pass the filter.
        """
        documents = self._find(name, part, filtered)
        texts = self.opened.texts
        files = self.paths.of([texts.names[documents[0]]])
        title = document_title(self.units, self._rows(documents[0]))
        location: dict[str, Any] = {}
        if len(documents) == 1:
            text = texts.text(documents[0])
            first = texts.first_line(documents[0], text.encode())
            start, end, location = part.range_in(self, documents[0], text)
        else:
            text, first = "\n".join(texts.text(number) for number in documents), None
            start, end = 0, len(text)
        begin = first or 1
        rows = text.split("\n")
        if not rows[-1] and len(rows) > 1:
            rows.pop()
        total = begin + len(rows) - 1
        if part.lines is not None:
            low, high = part.lines[0], part.lines[0] + _SHOWN - 1 if part.lines[1] is None else part.lines[1]
        else:
            low = begin + text.count("\n", 0, start)
            high = low + text.count("\n", start, max(start, end - 1))
        if low > total:
            raise UnknownName(f"{name} has no line {low:,}", hint=f"its text ends with line {total:,}")
        low, high = max(low, begin), min(high, total)
        shown = [row.removesuffix("\r") for row in rows[low - begin : high - begin + 1]]
        if first is not None:
            location = {**location, "lines": [low, high]}
        place = place_fields(texts.names[documents[0]], files, location, title)
        return Excerpt(**place, text="\n".join(shown), first=low, total=total)

    def files(self, filtered: FilterMask | None, globs: Globs) -> Files:
        """Return the files of the documents that a filter and globs leave, in index order."""
        texts, wanted = self.opened.texts, self._documents(filtered, globs)
        specs = self.paths.specs()
        first: dict[str, int] = {}
        for at in range(len(texts)) if wanted is None else np.flatnonzero(wanted).tolist():
            name = texts.names[at]  # of the rows of a sheet only the first one
            first.setdefault(without_part(name) if name in specs else name, at)
        files = self.paths.of(texts.names[at] for at in first.values())
        found: dict[str, tuple[str, int]] = {}
        for name, at in first.items():
            file = files.get(texts.names[at])
            found.setdefault(name if file is None else file.path, (name, at))
        documents, numbers = zip(*found.values(), strict=True) if found else ((), ())

        def place(index: int) -> Place:
            number = numbers[index]
            title = document_title(self.units, self._rows(number))
            fields = place_fields(texts.names[number], files, {}, title)
            return Place(**{**fields, "document": documents[index], "lines": None, "part": ""})

        return Files(tuple(found), documents, place)

    def has(self, name: str) -> bool:
        """Return whether a name is that of a document or of a file in the index."""
        return bool(self._candidates(name))

    def _find(self, name: str, part: Part, filtered: FilterMask | None) -> list[int]:
        """Return the documents of a file, in order, that pass the filter."""
        texts = self.opened.texts
        fits = None if filtered is None or filtered.core is None else texts.wanted(filtered.fits)
        found = [at for at in self._candidates(name) if fits is None or fits[at]]
        if part.cell is not None and len(found) > 1:
            found = [at for at in found if part.is_in(self.opened.places.of_rows(self._rows(at), 0, 1))]
        if not found:
            raise unknown(name)
        return found

    def _candidates(self, name: str) -> list[int]:
        texts = self.opened.texts
        absolute = Path(name).expanduser().absolute()
        path = Path(os.path.normpath(absolute))  # links stay
        parts = path.parts[1:]
        ends = {"/".join(parts[at:]) for at in range(len(parts))}
        starts = tuple(end + mark for end in ends for mark in "#:/")
        near = [at for at, known in enumerate(texts.names) if known in ends or known.startswith(starts)]
        files = self.paths.of(texts.names[at] for at in near)
        found = []
        for at in near:
            file = files.get(texts.names[at])
            if file is not None and path in (Path(file.path), Path(file.path + file.part)):
                found.append(at)
        if found:
            return found
        number = texts.numbers.get(name)
        if number is not None:
            return [number]
        parts = tuple(name + mark for mark in "#:/")
        return [at for at in near if texts.names[at].startswith(parts)]


def unknown(name: str) -> UnknownName:
    """Return the error for a file that is not in the index, or that the caller may not see."""
    return UnknownName(f"{name} is not in the index", hint="`ketrag documents` lists what is")


def place_fields(
    document: str, files: Mapping[str, SourceFile], location: Location, title: str
) -> dict[str, Any]:
    """Return the fields of a `Place`."""
    file = files.get(document)
    lines, page = location.get("lines"), location.get("page", location.get("slide"))
    cell, sheet, time = location.get("cell"), location.get("sheet"), location.get("time")
    if isinstance(cell, int):
        cell = f"cell{cell}"
    elif cell is not None:
        cell = str(cell).partition(":")[0]  # the first of a row
    part = "" if file is None or cell is not None else file.part
    if lines is None and _LINE.fullmatch(part):  # a line of JSON lines
        lines = [int(part[1:])] * 2
    return {
        "document": document,
        "path": None if file is None else file.path,
        "source": None if file is None else file.source,
        "lines": (int(lines[0]), int(lines[1])) if isinstance(lines, list) else None,
        "page": page if isinstance(page, int) else None,
        "cell": None if cell is None else f"{sheet}!{cell}" if sheet else str(cell),
        "time": None if time is None else str(time),
        "title": heading_path(title, location),
        "state": None if file is None else file.state,
        "part": "" if _LINE.fullmatch(part) else part,
    }


def heading_path(title: str, location: Location) -> tuple[str, ...]:
    """Return the title of a document and the headings above a passage, the outermost first.

    Examples:
        >>> heading_path("Purge (Change documents)", {"heading": ["Purge"]})
        ('Change documents', 'Purge')
    """
    found = location.get("heading", location.get("symbol"))
    headings = [str(one) for one in found] if isinstance(found, (list, tuple)) else []
    outer = title
    if headings and title.endswith(")"):
        leaf, _, rest = title.partition(" (")
        if leaf in headings:
            outer = rest[:-1].split(" › ")[0]
    path = [outer, *headings] if outer and (not headings or headings[0] != outer) else headings
    return tuple(path)


_LINE: Final = re.compile(r":\d+")
_CELL: Final = re.compile(r"(cell|[A-Za-z]{0,3})(\d+)")


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a text that is wanted: lines, pages, a cell or a time; all of it if nothing is set."""

    lines: tuple[int, int | None] | None = None
    pages: tuple[int, int] | None = None
    cell: str | None = None
    time: str | None = None

    def is_in(self, location: Location) -> bool:
        """Return whether a row of a sheet with this location has the cell."""
        sheet, mark, cell = (self.cell or "").rpartition("!")
        if mark and location.get("sheet") != sheet:
            return False
        wanted, has = _CELL.fullmatch(cell), _CELL.match(str(location.get("cell", "")))
        return wanted is not None and has is not None and wanted[2] == has[2]

    def range_in(self, searcher: Searcher, document: int, text: str) -> tuple[int, int, dict[str, Any]]:
        """Return the range of a document's text in code points, and its location.

        Raises UnknownName if the document has no such page or time.
        """
        if self.pages is None and self.time is None and self.cell is None:
            return 0, len(text), {}
        places = searcher.opened.places
        spans = [span for row in searcher._rows(document) for span in places.spans_of_row(row)]
        if self.cell is not None:
            inside = [
                one
                for one in spans
                if one.kind == "cell" and self.is_in({**_sheet_of(spans), "cell": one.value})
            ]
            what, last = f"cell {self.cell}", "ketrag get FILE prints all of it"
        elif self.time is not None:
            inside = [one for one in spans if one.kind == "time" and one.value == self.time]
            what, last = f"time {self.time}", "`ketrag search` prints the times that there are"
        else:
            own = [one for one in spans if one.kind in ("page", "slide")]
            low, high = self.pages or (1, 1)
            inside = [one for one in own if low <= one.value <= high]
            what = f"page {low}"
            last = f"the last one is {own[-1].value}" if own else "its format has no pages"
        if not inside:
            raise UnknownName(f"{searcher.opened.texts.names[document]} has no {what}", hint=last)
        start, end = min(one.start for one in inside), max(one.end for one in inside)
        return start, end, places.of_rows(searcher._rows(document), start, end)


def _sheet_of(spans: Sequence[Locator]) -> dict[str, Any]:
    return next(({"sheet": one.value} for one in spans if one.kind == "sheet"), {})


_POSITIONS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Part]], ...]] = (
    (re.compile(r"(\d\d:\d\d:\d\d)"), lambda m: Part(time=m[1])),
    (re.compile(r"(\d+)-(\d+)"), lambda m: Part(lines=(int(m[1]), int(m[2])))),
    (re.compile(r"(\d+):(\d+)"), lambda m: Part(lines=(int(m[1]), int(m[1]) + int(m[2]) - 1))),
    (re.compile(r"(\d+)"), lambda m: Part(lines=(int(m[1]), None))),
    (re.compile(r"p(\d+)(?:-(\d+))?"), lambda m: Part(pages=(int(m[1]), int(m[2] or m[1])))),
    (re.compile(r"((?:[^:!]+!)?(?:cell|[A-Za-z]{1,3})\d+)"), lambda m: Part(cell=m[1])),
)
"""Positions behind the last colons of `FILE:POSITION`, the most specific first."""


def split_position(text: str) -> Iterator[tuple[str, Part]]:
    """Yield the ways to read `FILE:POSITION`: all of it as a file first.

    Examples:
        >>> [file for file, _ in split_position("notes.md:93-110")]
        ['notes.md:93-110', 'notes.md']
    """
    yield text, Part()
    for at in (index for index, letter in enumerate(text) if letter == ":" and index):
        for pattern, part in _POSITIONS:
            found = pattern.fullmatch(text, at + 1)
            if found is not None:
                yield text[:at], part(found)
