"""The documents of a build as columns, for the stages."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.records import dataclass, replace
from ketrag_fast.types.locations import EXCHANGE, PAUSE, Locator, is_mark, seconds_of, sort_locators

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.storage.document_table import StoredDocument
    from ketrag_fast.storage.tables import Tables
    from ketrag_fast.types import Document
    from ketrag_fast.types.locations import Locator

    Packed = tuple[NDArray[np.uint8], NDArray[np.uint64]]


class Documents:
    """The documents of a build in order, read from the tables on first use.

    With `cut`, a document with headings has one row for each section, all with its id. Columns are cached,
    because several stages read them, until `forget`.

    Examples:
        >>> [document.title for document in documents]  # `inputs.documents` of a stage
        ['Fram', 'Maud', 'Fridtjof Nansen']
        >>> blob, offsets = documents.packed("title")
        >>> offsets.tolist()
        [0, 4, 8, 23]
    """

    def __init__(self, tables: Tables, *, cut: bool = False, numbers: Sequence[int] | None = None) -> None:
        self._tables = tables
        self._cut = cut
        self._numbers = numbers
        self._packed: dict[str, tuple[Any, Any]] = {}
        self._parts: tuple[dict[int, list[SectionSpan]], dict[int, tuple[Locator, ...]]] | None = None
        self._some: list[StoredDocument] | None = None
        self._hashes: bytes | None = None
        self._given: tuple[Mapping[str, Packed], dict[int, tuple[Locator, ...]]] | None = None

    def __len__(self) -> int:
        return self._tables.count() if self._numbers is None else len(self._numbers)

    def __iter__(self) -> Iterator[Document]:
        return self._tables.documents()

    @classmethod
    def of(cls, tables: Tables, ids: Sequence[str], *, cut: bool = False) -> Documents:
        """Return the documents with these ids, in this order. Raises IndexDamaged if one is altered."""
        found = cls(tables, cut=cut, numbers=range(len(ids)))
        found._some = list(tables.stored(ids))
        found._hashes = tables.short_hashes(ids)
        return found

    @classmethod
    def of_columns(
        cls,
        columns: Mapping[str, Packed],
        located: Mapping[int, tuple[Locator, ...]],
        *,
        cut: bool = False,
    ) -> Documents:
        """Return documents that are not stored yet.

        Args:
            columns: `id`, `title`, `text` and `metadata` of each.
            located: The locators of those that have any, by number.
            cut: Whether documents with headings get one row per section.
        """
        found = cls.__new__(cls)
        found._cut = cut
        found._numbers = range(len(columns["id"][1]) - 1)
        found._packed = {}
        found._parts = None
        found._some = []
        found._hashes = None
        found._given = columns, dict(located)
        if not found._of_headings()[0]:
            found._packed = dict(columns)
        return found

    def only(self, numbers: Sequence[int]) -> Documents:
        """Return the documents with these numbers, in this order."""
        return Documents(self._tables, cut=self._cut, numbers=numbers)

    def blocks(self, size: int) -> Iterator[Documents]:
        """Yield the documents in order, as blocks of about `size` bytes that are read and verified once."""
        if self._numbers is not None:
            yield self
            return
        start = 0
        for some in self._tables.blocks(size):
            block = Documents(self._tables, cut=self._cut, numbers=range(start, start + len(some)))
            block._some = some
            start += len(some)
            yield block

    def verify(self) -> None:
        """Raise IndexDamaged if a stored document is altered, wherever it is used."""
        self._tables.verify()

    def verify_unchanged(self, units: Mapping[str, NDArray[Any]], rows: NDArray[np.int64]) -> None:
        """Verify the documents that have not changed since `units` was published; mostly reads no text.

        `units` are the intact arrays of the stage "units", `rows` the published row of each document, or -1
        for a new one, which is verified when it is read. Raises IndexDamaged if a document is altered.
        """
        self._tables.verify_unchanged(units, rows)

    def contents(self) -> NDArray[np.uint8]:
        """Return uint8[documents, 32]: the hashes of all stored documents, in order."""
        return self._tables.contents()

    def check_order(self) -> None:
        """Raise IndexDamaged if the order of the stored documents differs from their rows."""
        self._tables.check("documents")

    def hashes(self) -> NDArray[np.uint8]:
        """Return uint8[documents, 16]: a hash of everything stored of each document, to detect changes."""
        import numpy as np

        from ketrag_fast.storage.layout import SHORT_HASH

        if self._hashes is not None:
            return np.frombuffer(self._hashes, np.uint8).reshape(-1, SHORT_HASH)
        every = np.ascontiguousarray(self._tables.contents()[:, :SHORT_HASH])
        return every if self._numbers is None else every[self._numbers]

    def hash_bytes(self) -> bytes:
        """Return what `hashes` does, as bytes."""
        return self.hashes().tobytes() if self._hashes is None else self._hashes

    def _chosen(self) -> list[StoredDocument]:
        if self._some is None:
            self._some = list(self._tables.some(self._numbers or ()))
        return self._some

    def _values(self, column: str) -> Iterator[bytes]:
        if self._given is not None:
            blob, ends = self._given[0][column]
            return (blob[start:end].tobytes() for start, end in pairwise(ends.tolist()))
        if self._numbers is None:
            return self._tables.column(column)
        return (document.columns[column] for document in self._chosen())

    def _located(self) -> dict[int, tuple[Locator, ...]]:
        if self._given is not None:
            return self._given[1]
        if self._numbers is None:
            return dict(self._tables.located())
        return {at: document.locators for at, document in enumerate(self._chosen()) if document.locators}

    def _of_headings(self) -> tuple[dict[int, list[SectionSpan]], dict[int, tuple[Locator, ...]]]:
        """Return the sections of documents that have any, and the locators, both by document number."""
        if self._parts is None:
            located = self._located()
            parts: dict[int, list[SectionSpan]] = {}
            if self._cut and located:
                titles, texts = list(self._values("title")), list(self._values("text"))
                for number, marks in located.items():
                    found = parts_of(texts[number].decode("utf-8"), titles[number].decode("utf-8"), marks)
                    if len(found) > 1:
                        parts[number] = found
            self._parts = parts, located
        return self._parts

    def rows(self) -> Iterator[tuple[int, int, tuple[Locator, ...]]]:
        """Yield the number, the start in its document and the locators of each row that has locators."""
        parts, located = self._of_headings()
        shift = 0
        for number in sorted({*parts, *located}):
            marks = located.get(number, ())
            own = parts.get(number)
            if own is None:
                yield number + shift, 0, marks
                continue
            for part, within in zip(own, _by_section(marks, own), strict=True):
                yield number + shift, part.start, tuple(within)
                shift += 1
            shift -= 1

    def packed(self, column: str) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """Return `id`, `title`, `text` or `metadata` (JSON) as (UTF-8 blob, n + 1 offsets)."""
        import numpy as np

        blob, ends = self.buffers(column)
        packed = np.frombuffer(blob, np.uint8), np.frombuffer(ends, np.uint64)
        for one in packed:
            one.flags.writeable = False
        return packed

    def buffers(self, column: str) -> tuple[Any, Any]:
        """Return what `packed` does, as buffers."""
        if column not in self._packed:
            values = self._values(column)
            sections, _ = self._of_headings()
            if sections:
                values = _expand_sections(column, values, sections)
            blob, ends = bytearray(), array("Q", [0])
            for value in values:  # one at a time: the texts may fill much of the memory
                blob += value
                ends.append(len(blob))
            self._packed[column] = blob, ends
        return self._packed[column]

    def forget(self) -> None:
        """Free the cached columns."""
        self._packed.clear()
        self._parts = None
        self._some = None


def _by_section(marks: Sequence[Locator], parts: Sequence[SectionSpan]) -> list[list[Locator]]:
    """Return the locators that overlap each section, in order. The marks of the readers are cut to it."""
    ends = [part.end for part in parts]
    found: list[list[Locator]] = [[] for _ in parts]
    for one in marks:
        at = bisect_right(ends, one.start)
        while at < len(parts) and parts[at].start < one.end:
            found[at].append(_cut_mark(one, parts[at]) if is_mark(one) else one)
            at += 1
    return found


def _cut_mark(one: Locator, part: SectionSpan) -> Locator:
    start, end, value = max(one.start, part.start), min(one.end, part.end), one.value
    if (
        one.kind == "lines" and one.start == 0
    ):  # readers emit no other kinds of locators in texts with sections
        value += part.lines
    return replace(one, start=start, end=end, value=value)


def _expand_sections(
    column: str, values: Iterable[bytes], sections: Mapping[int, list[SectionSpan]]
) -> Iterator[bytes]:
    """Yield the rows of a column, with each cut document replaced by its sections."""
    for number, value in enumerate(values):
        parts = sections.get(number)
        if parts is None:
            yield value
        elif column == "title":
            yield from (part.title.encode("utf-8") for part in parts)
        elif column == "text":
            text = value.decode("utf-8")
            yield from (text[part.start : part.end].encode("utf-8") for part in parts)
        else:
            yield from (value for _ in parts)


_KINDS: Final = ("heading", "symbol")
SHORT: Final = 1_200
"""Documents shorter than this are not cut: they are one or two units."""
_LEAST: Final = 200
"""The minimum length of a section, about a quarter of a unit; shorter ones are merged with a neighbour."""
_LEAST_OF_CODE: Final = 120
"""The minimum length of a function or class."""
_HALF: Final = 400
"""Sections of one parent share a unit while they have at most as many characters as half a unit."""
_MUCH: Final = 4
_LONGEST: Final = 300
_NAME_OF_EXCHANGE: Final = 100
"""Characters of an exchange that its title is taken from."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SectionSpan:
    """A section of a document, with its title."""

    start: int
    end: int
    title: str
    lines: int = 0
    """Number of line ends before it."""


def parts_of(text: str, title: str, locators: Sequence[Locator]) -> list[SectionSpan]:
    """Return the sections of a document, in order and without gaps; a short document is one section.

    Subtitles are cut at long pauses, conversations between exchanges.
    """
    exchanges = [one for one in sort_locators(locators) if one.kind == EXCHANGE]
    if exchanges:
        starts = [0, *(one.start for one in exchanges[1:]), len(text)]
        return [SectionSpan(start, end, _of_exchange(text, start, title)) for start, end in pairwise(starts)]
    times = [one for one in sort_locators(locators) if one.kind == "time"]
    if times:
        later = (b.start for a, b in pairwise(times) if seconds_of(b.value) - seconds_of(a.value) > PAUSE)
        return [SectionSpan(start, end, title) for start, end in pairwise((0, *later, len(text)))]
    marks = [one for one in locators if one.kind in _KINDS and isinstance(one.value, list) and one.value]
    if not marks or len(text) < SHORT:
        return [SectionSpan(0, len(text), title)]
    found: list[SectionSpan] = []
    lines = at = 0
    is_code = any(one.kind == "symbol" for one in marks)
    least, shared = (_LEAST_OF_CODE, 0) if is_code else (_LEAST, _HALF)
    for start, end, path in _merge_short(list(_stretches(text, marks)), least, shared):
        lines += text.count("\n", at, start)
        at = start
        found.append(SectionSpan(start, end, _title(title, path), lines))
    return found


def _of_exchange(text: str, start: int, title: str) -> str:
    """Return the title of an exchange: its first line without the name of who wrote it, and the title."""
    line = text[start : start + _NAME_OF_EXCHANGE].split("\n", 1)[0].partition(": ")[2]
    return title if not line or line.startswith(title[: len(line)] or "\0") else _title(title, (line,))


def _stretches(text: str, marks: Sequence[Locator]) -> Iterator[tuple[int, int, Path]]:
    """Yield the stretches between edges of marks, each with the path of its innermost mark."""
    edges = sorted({0, len(text), *(one.start for one in marks), *(one.end for one in marks)})
    opening = sorted(marks, key=lambda one: (one.start, -one.end))
    around: list[Locator] = []
    at = 0
    for start, end in pairwise(edges):
        around = [one for one in around if one.end > start]
        while at < len(opening) and opening[at].start <= start:
            if opening[at].end > start:
                around.append(opening[at])
            at += 1
        inner = min(around, key=lambda one: (one.end - one.start, -one.start), default=None)
        yield start, end, tuple(map(str, inner.value)) if inner is not None else ()


def _merge_short(
    stretches: Sequence[tuple[int, int, Path]], least: int, shared: int
) -> list[tuple[int, int, Path]]:
    """Merge stretches of less than `least` characters with the next one.

    They are named after the much longer one, else their common path. Stretches of one parent are merged while
    they have at most `shared` characters.
    """
    found: list[tuple[int, int, Path]] = []
    for start, end, path in stretches:
        before, middle, above = found[-1] if found else (0, 0, ())
        if found and above == path:
            found[-1] = before, end, path
        elif found and path and end - before <= shared and path[:-1] in (above, above[:-1]):
            found[-1] = before, end, path[:-1]
        elif found and middle - before < least:
            found[-1] = before, end, _merged_path(above, middle - before, path, end - start)
        else:
            found.append((start, end, path))
    if len(found) > 1 and found[-1][1] - found[-1][0] < least:  # the last stretch has no next one
        (start, middle, above), (_, end, path) = found[-2:]
        found[-2:] = [(start, end, _merged_path(above, middle - start, path, end - middle))]
    return found


def _merged_path(above: Path, first: int, path: Path, second: int) -> Path:
    if path[: len(above)] == above and second > first:
        return path
    if max(first, second) > _MUCH * min(first, second):
        return path if second > first else above
    return _common(above, path)


def _common(one: Path, other: Path) -> Path:
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return one[:same]


def _title(title: str, path: Path) -> str:
    """Return a title such as `3.2 Risks (Report › 3 Results)`: the headings above are searched too."""
    if not path:
        return title
    above = [name for name in (title, *path[:-1]) if name]
    outer = f" ({' › '.join(above)})" if above else ""
    return f"{path[-1]}{outer}"[:_LONGEST]
