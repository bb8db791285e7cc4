"""Locations of passages in their sources (page, heading), from the locators of a generation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.kernels.text import unpack
from ketrag_fast.types.locations import Locator, location_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HOLDS = "location_indptr"
_LINES = "unit_lines"


class Places:
    """The locators of an opened generation, if it has any."""

    def __init__(self, units: Mapping[str, NDArray[Any]]) -> None:
        self._units = units
        self._has_marks = _HOLDS in units
        self.has_any = self._has_marks or _LINES in units
        """Whether any document has locations."""

    def of_unit(self, unit: int, start: int, end: int) -> dict[str, Any]:
        """Return the location of a span of a document that begins in a unit."""
        found = self._of(int(self._units["unit_document"][unit]), start, end) if self._has_marks else {}
        return found | self._lines(unit, start, end) if _LINES in self._units else found

    def of_document(self, name: str, start: int, end: int) -> dict[str, Any]:
        """Return the location of a span of a document by its id."""
        return self.of_rows(self._numbers.get(name, ()), start, end)

    def of_rows(self, rows: Iterable[int], start: int, end: int) -> dict[str, Any]:
        """Return the location of a span of a document by its rows."""
        for row in rows if self._has_marks else ():
            if found := self._of(row, start, end):
                return found
        return {}

    def _lines(self, unit: int, start: int, end: int) -> dict[str, Any]:
        """Return the first and last line in the source of a span of a unit."""
        first, last = self._units[_LINES][unit].tolist()
        if not first:
            return {}
        begin, stop = self._units["unit_span"][unit].tolist()
        if (start, end) != (begin, stop):
            offsets = self._units["unit_texts_offsets"][unit : unit + 2].tolist()
            text = bytes(self._units["unit_texts_blob"][offsets[0] : offsets[1]]).decode("utf-8")
            first += text.count("\n", 0, max(start - begin, 0))
            if end > stop:  # the span ends in another unit
                last = self._units[_LINES][self._last(unit, end)][1].item()
            else:
                last = first + text.count("\n", max(start - begin, 0), max(end - begin, 0))
        return {"lines": [first, last]}

    def _last(self, unit: int, end: int) -> int:
        """Return the first unit from `unit` on that ends at `end` or later."""
        ends = self._units["unit_span"]
        while unit + 1 < len(ends) and ends[unit, 1] < end:
            unit += 1
        return unit

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        """The rows of each document. A document with sections has one row per section."""
        names = unpack(self._units["document_ids_blob"], self._units["document_ids_offsets"])
        found: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            found.setdefault(name, []).append(number)
        return found

    def spans_of_row(self, row: int) -> list[Locator]:
        """Return the locators in a row of the documents' arrays."""
        if not self._has_marks:
            return []
        first, last = self._units[_HOLDS][row : row + 2].tolist()
        spans, labels = self._units["location_span"], self._units["location_label"]
        return [
            Locator(int(spans[at, 0]), int(spans[at, 1]), *self._label(int(labels[at])))
            for at in range(first, last)
        ]

    def _of(self, document: int, start: int, end: int) -> dict[str, Any]:
        units = self._units
        first, last = units[_HOLDS][document : document + 2].tolist()
        spans = units["location_span"][first:last]
        near = np.flatnonzero((spans[:, 0] < max(end, start + 1)) & (spans[:, 1] >= start))
        found = [
            Locator(
                int(spans[at, 0]), int(spans[at, 1]), *self._label(int(units["location_label"][first + at]))
            )
            for at in near.tolist()
        ]
        return location_of(found, start, end)

    def _label(self, number: int) -> tuple[str, Any]:
        begin, end = self._units["location_labels_offsets"][number : number + 2].tolist()
        try:
            kind, value = json.loads(self._units["location_labels_blob"][begin:end].tobytes())
        except (ValueError, TypeError, RecursionError) as error:
            raise IndexDamaged(
                f"location label {number} is not valid JSON", hint="run `ketrag index --rebuild`"
            ) from error
        return str(kind), value
