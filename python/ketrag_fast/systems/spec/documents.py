"""The documents of a build as columns, for the stages."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ketrag_fast.systems.spec.sections import SectionSpan, parts_of
from ketrag_fast.types.locations import is_mark

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.storage.tables import StoredDocument, Tables
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
        self._packed: dict[str, Packed] = {}
        self._parts: tuple[dict[int, list[SectionSpan]], dict[int, tuple[Locator, ...]]] | None = None
        self._some: list[StoredDocument] | None = None
        self._hashes: NDArray[np.uint8] | None = None
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
            cut: Whether those with headings have one row for each section.
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
        from ketrag_fast.storage.published_rows import are_as_published

        if self._tables.is_verified():
            return
        if are_as_published(self._tables, units, rows):
            self._tables.set_verified()
        else:
            self._tables.verify()

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

        if self._hashes is None:
            every = np.ascontiguousarray(self._tables.contents()[:, :SHORT_HASH])
            self._hashes = every if self._numbers is None else every[self._numbers]
        return self._hashes

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
            for part in parts.get(number, [None]):
                start = 0 if part is None else part.start
                own = marks if part is None else tuple(_within(marks, part))
                yield number + shift, start, own
                shift += 1
            shift -= 1

    def packed(self, column: str) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """Return `id`, `title`, `text` or `metadata` (JSON) as (UTF-8 blob, n + 1 offsets)."""
        import numpy as np

        if column not in self._packed:
            values = self._values(column)
            sections, _ = self._of_headings()
            if sections:
                values = _expand_sections(column, values, sections)
            blob, ends = bytearray(), array("Q", [0])
            for value in values:  # one at a time: the texts may fill much of the memory
                blob += value
                ends.append(len(blob))
            packed = np.frombuffer(blob, np.uint8), np.frombuffer(ends, np.uint64)
            for one in packed:
                one.flags.writeable = False
            self._packed[column] = packed
        return self._packed[column]

    def forget(self) -> None:
        """Drop the cached columns."""
        self._packed.clear()
        self._parts = None
        self._some = None


def _within(marks: Sequence[Locator], part: SectionSpan) -> Iterator[Locator]:
    """Yield the locators of a section. The marks of the readers are cut to it."""
    for one in marks:
        if one.start < part.end and one.end > part.start:
            yield _cut_mark(one, part) if is_mark(one) else one


def _cut_mark(one: Locator, part: SectionSpan) -> Locator:
    start, end, value = max(one.start, part.start), min(one.end, part.end), one.value
    if one.kind == "lines" and one.start == 0:  # no reader has other ones in texts with sections
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
