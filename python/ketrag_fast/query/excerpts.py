"""Parts of the indexed texts by location: `notes.md:93-110`, `report.pdf:p12`, `stock.xlsx:Stock!A65`."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import InputError, UnknownName
from ketrag_fast.query.mail_heads import head_of
from ketrag_fast.query.open_generation import FilterMask
from ketrag_fast.query.search import Searcher
from ketrag_fast.query.source_paths import place_fields, without_part
from ketrag_fast.records import dataclass
from ketrag_fast.types import Excerpt
from ketrag_fast.types.locations import Location, Locator

_SHOWN: Final = 20
"""Number of lines of an excerpt that is requested by its first line alone."""
_OTHER: Final = 3
"""Maximum difference in the lengths of similar names, as of `note.md` and `notes.md`."""
_LIKE: Final = 0.75
"""Minimum similarity of names (difflib). `crow.csv` has 0.88 to `crew.csv`, `main.rs` 0.62 to `lib.rs`."""
_CELL: Final = re.compile(r"(cell|[A-Za-z]{0,3})(\d+)")


@dataclass(frozen=True, slots=True)
class Excerpts:
    """Reads parts of the texts of an opened generation."""

    searcher: Searcher

    def excerpt(self, name: str, part: Part, filtered: FilterMask | None) -> Excerpt:
        """Return a part of the text of a file, named by its path or by the id of a document.

        Raises UnknownName if the file is not in the index or does not pass the filter.
        """
        documents = self._find(name, part, filtered)
        texts = self.searcher.opened.texts
        files = self.searcher.paths.of([texts.names[documents[0]]])
        title = self.searcher.title(documents[0])
        location: dict[str, Any] = {}
        if len(documents) == 1:
            text = texts.text(documents[0])
            first = texts.core.first_line(documents[0], text)
            start, end, location = part.range_in(self.searcher, documents[0], text)
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
        if high < low:
            raise InputError(f"{low:,}-{high:,} is not a range of lines", hint=f"such as {name}:93-110")
        if low > total:
            raise UnknownName(f"{name} has no line {low:,}", hint=f"its text ends with line {total:,}")
        low, high = max(low, begin), min(high, total)
        shown = [row.removesuffix("\r") for row in rows[low - begin : high - begin + 1]]
        if first is not None:
            location = {**location, "lines": [low, high]}
        place = place_fields(texts.names[documents[0]], files, location, title)
        heads = tuple(head for head in self._heads(documents, begin) if low <= head[0] <= high)
        return Excerpt(**place, text="\n".join(shown), first=low, total=total, heads=heads)

    def units_at(self, name: str, part: Part, filtered: FilterMask | None) -> list[int]:
        """Return the units that cover a part of a file, in order. A first line alone is one line.

        Raises as `excerpt`.
        """
        texts, units = self.searcher.opened.texts, self.searcher.units
        found: list[int] = []
        for number in self._find(name, part, filtered):
            text = texts.text(number)
            start, end, _ = part.range_in(self.searcher, number, text)
            if part.lines is not None:
                begin = texts.core.first_line(number, text) or 1
                first, last = part.lines[0], part.lines[1] or part.lines[0]
                ends = [0, *(match.end() for match in re.finditer("\n", text)), len(text) + 1]
                if not 0 <= first - begin < len(ends) - 1:
                    raise UnknownName(
                        f"{name} has no line {first:,}",
                        hint=f"its text ends with line {begin + len(ends) - 2:,}",
                    )
                start, end = ends[first - begin], ends[min(max(last, first) - begin + 1, len(ends) - 1)]
            wanted = bytes(at == number for at in range(len(texts)))
            own = [unit for unit, fits in enumerate(texts.core.units_of(wanted)) if fits]
            spans = [(int(units["unit_span"][unit, 0]), int(units["unit_span"][unit, 1])) for unit in own]
            inside = [
                unit for unit, (low, high) in zip(own, spans, strict=True) if low < end and start < high
            ]
            # Blank lines between passages belong to the passage below them.
            below = [unit for unit, (low, _) in zip(own, spans, strict=True) if low >= end]
            found += inside or below[:1] or own[-1:]
        return found

    def _heads(self, documents: Sequence[int], begin: int) -> Iterator[tuple[int, str]]:
        """Yield the heads of mails, each with the number of the first line of its text."""
        opened, line = self.searcher.opened, begin
        for number in documents:
            metadata = opened.document_metadata.of_row(opened.texts.rows(number)[0])
            head = head_of(metadata, self.searcher.title(number))
            if head:
                yield line, head
            if len(documents) > 1:
                line += opened.texts.text(number).count("\n") + 1

    def unknown(self, name: str, filtered: FilterMask | None) -> UnknownName:
        """Return the error for a file that is not in the index or does not pass the filter.

        Its hint names paths that resemble it, of those that the caller may see.
        """
        texts = self.searcher.opened.texts
        fits = None if filtered is None or filtered.core is None else texts.core.documents_of(filtered.mask)
        seen = (known for at, known in enumerate(texts.names) if fits is None or fits[at])
        near = near_paths(name, dict.fromkeys(map(without_part, seen)))
        hint = f"did you mean {' or '.join(near)}?" if near else "`ketrag documents` lists what is"
        return UnknownName(f"{name} is not in the index", hint=hint)

    def has(self, name: str) -> bool:
        """Return whether the index has a document or a file with this name."""
        return bool(self._candidates(name))

    def _find(self, name: str, part: Part, filtered: FilterMask | None) -> list[int]:
        """Return the documents of a file that pass the filter, in order."""
        texts = self.searcher.opened.texts
        fits = None if filtered is None or filtered.core is None else texts.core.documents_of(filtered.mask)
        found = [at for at in self._candidates(name) if fits is None or fits[at]]
        if part.cell is not None and len(found) > 1:
            found = [
                at for at in found if part.is_in(self.searcher.opened.places.of_rows(texts.rows(at), 0, 1))
            ]
        if not found:
            raise self.unknown(name, filtered)
        return found

    def _candidates(self, name: str) -> list[int]:
        texts = self.searcher.opened.texts
        path = Path(os.path.abspath(os.path.expanduser(name)))  # noqa: PTH100, PTH111 - links stay, no error
        parts = path.parts[1:]
        ends = {"/".join(parts[at:]) for at in range(len(parts))}
        starts = tuple(end + mark for end in ends for mark in "#:/")
        near = [at for at, known in enumerate(texts.names) if known in ends or known.startswith(starts)]
        files = self.searcher.paths.of(texts.names[at] for at in near)
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


def near_paths(name: str, paths: Iterable[str]) -> list[str]:
    """Return at most three paths that resemble one, the most similar first.

    Files of the same name in other folders, or with other case or marks between words, come before those
    whose name is misspelt.

    Examples:
        >>> near_paths("src/Read_me.md", ["docs/read-me.md", "docs/roadmap.md", "src/main.rs"])
        ['docs/read-me.md']
    """
    from difflib import SequenceMatcher  # few messages need it

    wanted = _plain(name.partition(":")[0].split("/")[-1])
    rows = []
    for path in paths:
        own = _plain(path.split("/")[-1])
        if not wanted or abs(len(own) - len(wanted)) > _OTHER:
            continue
        compared = SequenceMatcher(None, own, wanted)
        if own != wanted and min(compared.real_quick_ratio(), compared.quick_ratio()) < _LIKE:
            continue
        name_likeness = compared.ratio()
        if name_likeness >= _LIKE:
            rows.append((-name_likeness, -SequenceMatcher(None, path, name).ratio(), path))
    return [path for *_, path in heapq.nsmallest(3, rows)]


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


@dataclass(frozen=True, slots=True)
class Part:
    """The requested part of a text: lines, pages, a cell or a time. If no field is set, the whole text."""

    lines: tuple[int, int | None] | None = None
    pages: tuple[int, int] | None = None
    cell: str | None = None
    time: str | None = None

    def is_in(self, location: Location) -> bool:
        """Return whether a row of a sheet with this location contains the cell."""
        sheet, mark, cell = (self.cell or "").rpartition("!")
        if mark and location.get("sheet") != sheet:
            return False
        wanted, has = _CELL.fullmatch(cell), _CELL.match(str(location.get("cell", "")))
        return wanted is not None and has is not None and wanted[2] == has[2]

    def range_in(self, searcher: Searcher, document: int, text: str) -> tuple[int, int, dict[str, Any]]:
        """Return the part's range in a document's text, in code points, and its location.

        Raises UnknownName if the document has no such page or time.
        """
        if self.pages is None and self.time is None and self.cell is None:
            return 0, len(text), {}
        places = searcher.opened.places
        spans = [span for row in searcher.opened.texts.rows(document) for span in places.spans_of_row(row)]
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
        return start, end, places.of_rows(searcher.opened.texts.rows(document), start, end)


def _sheet_of(spans: Sequence[Locator]) -> dict[str, Any]:
    return next(({"sheet": one.value} for one in spans if one.kind == "sheet"), {})


_POSITIONS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Part]], ...]] = (
    (re.compile(r"(\d\d:\d\d:\d\d)"), lambda m: Part(time=m[1])),
    (re.compile(r"(\d{1,9})-(\d{1,9})"), lambda m: Part(lines=(int(m[1]), int(m[2])))),
    (re.compile(r"(\d{1,9}):(\d{1,9})"), lambda m: Part(lines=(int(m[1]), int(m[1]) + int(m[2]) - 1))),
    (re.compile(r"(\d{1,9})"), lambda m: Part(lines=(int(m[1]), None))),
    (re.compile(r"p(\d{1,9})(?:-(\d{1,9}))?"), lambda m: Part(pages=(int(m[1]), int(m[2] or m[1])))),
    (re.compile(r"((?:[^:!]{1,99}!)?(?:cell|[A-Za-z]{1,3})\d{1,9})"), lambda m: Part(cell=m[1])),
)
"""Patterns for the position in `FILE:POSITION`, the most specific first."""


def split_position(text: str) -> Iterator[tuple[str, Part]]:
    """Yield the ways to split `FILE:POSITION`, first the whole string as a file.

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
