"""Texts and lines of the documents of an opened generation, by number."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.kernels.text import unpack
from ketrag_fast.storage.published_texts import first_rows, restore_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.storage.arrays import Arrays

_BLOCK: Final = 2 << 20
"""Size in bytes of a block of texts that is read at once."""


class DocumentTexts:
    """The indexed texts of a generation. A document with sections is one text."""

    def __init__(self, stages: Mapping[str, Arrays]) -> None:
        self._units = stages["units"]
        self.first_row = first_rows(self._units)
        """The first row of each document in the documents' arrays, and the number of rows."""
        self._first_unit = np.searchsorted(self._units["unit_document"], self.first_row)
        self._lines = self._units.get("unit_lines")

    def __len__(self) -> int:
        return len(self.first_row) - 1

    @cached_property
    def names(self) -> list[str]:
        """The ids of the documents."""
        names = unpack(self._units["document_ids_blob"], self._units["document_ids_offsets"])
        return names if len(names) == len(self) else [names[row] for row in self.first_row[:-1].tolist()]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each document by its id."""
        return {name: number for number, name in enumerate(self.names)}

    def blocks(self, wanted: NDArray[np.bool_] | None) -> list[NDArray[np.int64]]:
        """Return the numbers of the documents that `wanted` marks, in blocks that are read at once."""
        sizes = self._units["unit_texts_offsets"][self._first_unit]
        numbers = np.arange(len(self)) if wanted is None else np.flatnonzero(wanted)
        cuts = np.flatnonzero(np.diff(sizes[numbers] // np.uint64(_BLOCK))) + 1
        return [block for block in np.split(numbers, cuts) if len(block)]

    def read_block(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """Return the texts of ascending documents as packed strings."""
        first, last = int(numbers[0]), int(numbers[-1]) + 1
        texts = self.read(first, last)
        if last - first == len(numbers):
            return texts
        return _core.take_strings(texts, (numbers - first).astype(np.uint32))

    def read(self, first: int, last: int) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """Return the texts of documents `first` to `last` as packed strings."""
        return restore_texts(self._units, self.first_row, self._first_unit, first, last)

    def text(self, number: int) -> str:
        """Return the text of a document."""
        blob, _ = self.read(number, number + 1)
        return blob.tobytes().decode("utf-8")

    def first_line(self, number: int, text: bytes) -> int | None:
        """Return the line of the source at which a document's text begins; None if it has no lines."""
        unit, stop = self._first_unit[number : number + 2].tolist()
        if self._lines is None or unit == stop or not self._lines[unit, 0]:
            return None
        before = int(self._units["unit_bytes"][unit, 0])
        return int(self._lines[unit, 0]) - text.count(b"\n", 0, before)

    def row_at(self, number: int, start: int) -> int:
        """Return the row of a document at an offset in code points.

        Between units, that of the unit before.
        """
        first, last = self._first_unit[number : number + 2].tolist()
        if first == last:
            return int(self.first_row[number])
        starts = self._units["unit_span"][first:last, 0]
        at = max(int(np.searchsorted(starts, start, "right")) - 1, 0)
        return int(self._units["unit_document"][first + at])

    def wanted(self, units: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the documents whose units are all in a mask. Documents without units are excluded."""
        starts = self._first_unit
        counts = np.diff(starts)
        sums = np.concatenate([[0], np.cumsum(units, dtype=np.int64)])
        found: NDArray[np.bool_] = (sums[starts[1:]] - sums[starts[:-1]] == counts) & (counts > 0)
        return found
