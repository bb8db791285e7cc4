"""Texts of documents in published generations, each stored once and compressed.

The stage "units" stores the texts of all units, and the rest of each document that no unit covers. Documents
are looked up by the hash of all their stored data, so a text that is found is correct, whichever generation
it is read from. Only the blocks that hold the requested texts are verified and unpacked; a damaged block
affects no other document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast import _core
from ketrag_fast.errors import IndexDamaged, IndexIncompatible
from ketrag_fast.storage.arrays import Arrays
from ketrag_fast.storage.generation import open_generation
from ketrag_fast.storage.layout import SHORT_HASH, Layout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNITS: Final = "units"
"""The stage that stores the texts."""
_RUN: Final = 256
"""Maximum number of documents that are restored together."""


class PublishedTexts:
    """The texts in the generations of an index, the newest first. They are opened on first use.

    Texts that these lack are read from the generations of `others`.
    """

    def __init__(self, layout: Layout, others: Sequence[Layout] = ()) -> None:
        self._layouts = (layout, *others)
        self._opened: list[_UnitTexts] | None = None

    def find(self, contents: Sequence[bytes]) -> list[bytes | None]:
        """Return the texts of documents with these content hashes; None for a text that no generation has.

        Examples:
            >>> PublishedTexts(layout).find([bytes(32)])
            [None]
        """
        found: list[bytes | None] = [None] * len(contents)
        missing = list(range(len(contents)))
        for texts in self._generations():
            if not missing:
                break
            for at, text in zip(missing, texts.find([contents[at] for at in missing]), strict=True):
                found[at] = text
            missing = [at for at in missing if found[at] is None]
        return found

    def only(self, number: int) -> PublishedTexts:
        """Return the texts of one generation."""
        other = PublishedTexts(self._layouts[0])
        other._opened = list(_open(self._layouts[0], [number]))
        return other

    def _generations(self) -> list[_UnitTexts]:
        if self._opened is None:
            self._opened = [
                texts
                for layout in self._layouts
                for texts in _open(layout, sorted(layout.generations(), reverse=True))
            ]
        return self._opened


def _open(layout: Layout, numbers: Sequence[int]) -> Iterator[_UnitTexts]:
    for number in numbers:
        try:
            units = open_generation(layout.generation(number)).stages[UNITS]
            yield _UnitTexts(units)
        except (IndexDamaged, IndexIncompatible, KeyError, ValueError):
            continue  # an older generation may still have the texts


class _UnitTexts:
    """The texts in one generation's stage "units"."""

    def __init__(self, units: Arrays) -> None:
        import numpy as np

        self._units = units
        self._hashes = units["document_hashes"]
        heads = np.ascontiguousarray(self._hashes[:, :8]).view(np.uint64).reshape(-1)
        self._order = np.argsort(heads, kind="stable")
        self._heads = heads[self._order]
        self._first_row = first_rows(units)
        self._first_unit = np.searchsorted(units["unit_document"], self._first_row)

    def find(self, contents: Sequence[bytes]) -> list[bytes | None]:
        numbers = self._numbers(contents)
        wanted = sorted({number for number in numbers if number is not None})
        texts: dict[int, bytes] = {}
        for first, last in _runs(wanted):
            texts |= self._restore(first, last)
        return [None if number is None else texts.get(number) for number in numbers]

    def _numbers(self, contents: Sequence[bytes]) -> list[int | None]:
        """Return the numbers of the documents with these hashes."""

        import numpy as np

        if not len(self._heads):
            return [None] * len(contents)
        wanted = np.frombuffer(b"".join(content[:SHORT_HASH] for content in contents), np.uint8)
        wanted = wanted.reshape(-1, SHORT_HASH)
        heads = np.ascontiguousarray(wanted[:, :8]).view(np.uint64).reshape(-1)
        at = np.minimum(np.searchsorted(self._heads, heads), len(self._heads) - 1)
        same = (self._hashes[self._order[at]] == wanted).all(axis=1)
        found = np.where(same, self._order[at], -1).tolist()
        for number in np.flatnonzero((self._heads[at] == heads) & ~same).tolist():
            other = self._number(contents[number])  # several hashes may share this prefix
            found[number] = -1 if other is None else other
        return [None if number < 0 else number for number in found]

    def _number(self, content: bytes) -> int | None:
        """Return the number of the document with this hash."""

        import numpy as np

        head = np.frombuffer(content[:8], np.uint64)[0]
        for at in range(int(np.searchsorted(self._heads, head)), len(self._heads)):
            if self._heads[at] != head:
                break
            number = int(self._order[at])
            if self._hashes[number].tobytes() == content[:SHORT_HASH]:
                return number
        return None

    def _restore(self, first: int, last: int) -> dict[int, bytes]:
        """Return the texts of documents `first` to `last`, without those in damaged blocks."""
        try:
            return dict(zip(range(first, last), self._texts(first, last), strict=True))
        except (IndexDamaged, ValueError, IndexError):
            if last - first == 1:
                return {}
        middle = (first + last) // 2
        return {**self._restore(first, middle), **self._restore(middle, last)}

    def _texts(self, first: int, last: int) -> Iterator[bytes]:
        blob, ends = restore_texts(self._units, self._first_row, self._first_unit, first, last)
        data = blob.tobytes()
        yield from (data[start:stop] for start, stop in pairwise(ends.tolist()))


def restore_texts(
    units: Arrays,
    first_row: NDArray[np.int64],
    first_unit: NDArray[np.int64],
    first: int,
    last: int,
) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """Return the texts of documents `first` to `last` as packed strings.

    Args:
        units: The stage that stores the texts.
        first_row: The result of `first_rows` for `units`.
        first_unit: The first unit of each document, followed by the number of units.
        first: Number of the first document.
        last: Number of the last document plus 1.
    """

    import numpy as np

    row, end = int(first_row[first]), int(first_row[last])
    unit, stop = int(first_unit[first]), int(first_unit[last])
    ends = units["unit_texts_offsets"]
    blob, offsets = _core.restore_strings(
        (
            units.read_bytes("unit_texts_blob", int(ends[unit]), int(ends[stop])),
            ends[unit : stop + 1] - ends[unit],
        ),
        units["unit_document"][unit:stop] - np.uint32(row),
        units["unit_bytes"][unit:stop],
        _slice_strings(units["document_gaps_blob"], units["document_gaps_offsets"], row, end),
    )
    return blob, offsets[first_row[first : last + 1] - row]


def first_rows(units: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Return the first row of each document, followed by the number of rows.

    A document with sections has a row for each of them, all with its id.
    """

    import numpy as np

    ends, blob = units["document_ids_offsets"], units["document_ids_blob"]
    rows, count = len(ends) - 1, int(units["document_count"][0])
    if rows == count:
        return np.arange(rows + 1, dtype=np.int64)
    data, places = blob.tobytes(), ends.tolist()
    ids = [data[places[row] : places[row + 1]] for row in range(rows)]
    starts = [row for row in range(rows) if row == 0 or ids[row] != ids[row - 1]]
    if len(starts) != count:
        raise ValueError(f"{len(starts):,} documents, expected {count:,}")
    return np.array([*starts, rows], np.int64)


def _slice_strings(
    blob: NDArray[np.uint8], offsets: NDArray[np.uint64], start: int, stop: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    ends = offsets[start : stop + 1]
    return blob[int(ends[0]) : int(ends[-1])], ends - ends[0]


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of consecutive numbers, each at most `_RUN` long."""
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1 or at - start == _RUN:
            yield numbers[start], numbers[at - 1] + 1
            start = at
