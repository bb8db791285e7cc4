"""Where passages come from: the metadata of their documents, and their locations in the sources."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast import _core
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.systems.shared.stored_rows import (
    LANGUAGE_FIELD,
    Rows,
    code_of_row,
    language_arrays,
    text_of,
    texts_of,
)
from ketrag_fast.types.locations import Locator, location_of

if TYPE_CHECKING:
    from ketrag_fast.storage.arrays import Arrays

    Write = Callable[[Any], bytes]

_HOLDS: Final = "location_indptr"
_LINES: Final = "unit_lines"


def rows_by_name(units: Rows) -> dict[str, list[int]]:
    """Return the rows of each document. A document with sections has one row per section."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(texts_of(units, "document_ids")):
        rows.setdefault(name, []).append(row)
    return rows


def descriptions(places: Places, metadata: DocumentMetadata, write: Write) -> _core.Descriptions | None:
    """Return an object that writes metadata and locations of passages as JSON; None if there are none.

    `write` returns a value as JSON.
    """
    if not places.has_any and not metadata.has_any:
        return None

    def describe(rows: Sequence[tuple[int, int, int]]) -> list[bytes]:
        found = []
        for unit, start, end in rows:
            location = places.of_unit(unit, start, end)
            about = {"page": location.get("page"), "location": location, "metadata": metadata.of_unit(unit)}
            found.append(write(about)[1:-1])  # fields without braces
        return found

    return _core.Descriptions(describe)


class DocumentMetadata:
    """Reads the metadata of a generation one document at a time; reads nothing if no document has metadata.

    If some documents are not English, each document has its detected `language`, unless its source gives one.
    """

    def __init__(self, stages: Mapping[str, Arrays]) -> None:
        self._stages = {name: arrays.columns for name, arrays in stages.items()}
        self._units = self._stages["units"]
        self._stored = "document_metadata_offsets" in self._units
        self.has_any = self._stored or language_arrays(self._stages) is not None
        """Whether any document has metadata."""

    def of_unit(self, unit: int) -> dict[str, Any]:
        """Return the metadata of the document that contains a unit."""
        return self.of_row(self._units["unit_document"][unit]) if self.has_any else {}

    def of_document(self, name: str) -> dict[str, Any]:
        """Return the metadata of a document by its id; empty for an unknown id."""
        rows = self._rows.get(name) if self.has_any else None
        return {} if rows is None else self.of_row(rows[0])

    def of_row(self, row: int) -> dict[str, Any]:
        """Return the metadata of a row of the documents' arrays. Raises IndexDamaged if it is not JSON."""
        code = code_of_row(self._stages, row)
        detected = {} if code is None else {LANGUAGE_FIELD: code}
        return {**detected, **self._stored_of(row)}

    def _stored_of(self, row: int) -> dict[str, Any]:
        if not self._stored:
            return {}
        ends = self._units["document_metadata_offsets"]
        first = max(ends.find(ends[row + 1]) - 1, 0)  # the rows of other sections are empty
        try:
            metadata = json.loads(text_of(self._units, "document_metadata", first), parse_constant=_none)
        except (ValueError, RecursionError) as error:
            raise _damaged(row) from error
        if not isinstance(metadata, dict):
            raise _damaged(row)
        return metadata

    @cached_property
    def _rows(self) -> dict[str, list[int]]:
        return rows_by_name(self._units)


def metadata_rows(stages: Mapping[str, Arrays]) -> list[str]:
    """Return the metadata of each row of the documents' arrays as JSON, with the detected language."""
    from ketrag_fast.systems.shared.rows import codes_of_rows

    units = stages["units"].columns
    rows = ["{}"] * (len(units["document_ids_offsets"]) - 1)
    if "document_metadata_offsets" in units:
        rows = texts_of(units, "document_metadata")
        for at, row in enumerate(rows):
            rows[at] = row or rows[at - 1]  # the first section holds the metadata of the whole document
    codes = codes_of_rows(stages)
    return rows if codes is None else list(map(_add_language, rows, codes))


def _add_language(metadata: str, code: str) -> str:
    """Return metadata (JSON) with the detected language first; a `language` from the source overrides it."""
    rest = metadata.lstrip()[1:].lstrip()
    return f'{{"{LANGUAGE_FIELD}": "{code}"' + (rest if rest.startswith("}") else f", {rest}")


def _none(_: str) -> None:
    """Return None for NaN and infinity, which JSON does not have."""


def _damaged(row: int) -> IndexDamaged:
    return IndexDamaged(
        f"the metadata of document {row} is not a JSON object", hint="run `ketrag index --rebuild`"
    )


class Places:
    """The locators of an opened generation, if it has any."""

    def __init__(self, units: Arrays) -> None:
        self._units = units.columns
        self._has_marks = _HOLDS in units
        self.has_any = self._has_marks or _LINES in units
        """Whether any document has locations."""

    def of_unit(self, unit: int, start: int, end: int) -> dict[str, Any]:
        """Return the location of a span of a document that begins in a unit."""
        found = self._of(self._units["unit_document"][unit], start, end) if self._has_marks else {}
        return found | self._lines(unit, start, end) if _LINES in self._units else found

    def of_document(self, name: str, start: int, end: int) -> dict[str, Any]:
        """Return the location of a span of a document by its id."""
        return self.of_rows(self._rows.get(name, ()), start, end)

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
                last = self._units[_LINES][self._last(unit, end), 1]
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
    def _rows(self) -> dict[str, list[int]]:
        return rows_by_name(self._units)

    def spans_of_row(self, row: int) -> list[Locator]:
        """Return the locators in a row of the documents' arrays."""
        if not self._has_marks:
            return []
        first, last = self._units[_HOLDS][row : row + 2].tolist()
        return self._locators(range(first, last))

    def values_of_rows(self, kind: str) -> dict[int, Any]:
        """Return the value of the first locator of a kind in each row that has one."""
        if not self._has_marks:
            return {}
        mark = f'["{kind}",'.encode()
        blob, offsets = self._units["location_labels_blob"], self._units["location_labels_offsets"]
        ends, data = offsets[:].tolist(), bytes(blob[:])
        labels = [number for number, at in enumerate(ends[:-1]) if data.startswith(mark, at)]
        values = {number: self._label(number)[1] for number in labels}
        found: dict[int, Any] = {}
        places = [at for at, label in enumerate(self._units["location_label"][:].tolist()) if label in values]
        holds = self._units[_HOLDS][:].tolist()
        for at in places:
            found.setdefault(bisect_right(holds, at) - 1, values[self._units["location_label"][at]])
        return found

    def _of(self, row: int, start: int, end: int) -> dict[str, Any]:
        first, last = self._units[_HOLDS][row : row + 2].tolist()
        near = self._units["location_span"].overlapping(first, last, start, max(end, start + 1))
        return location_of(self._locators(near), start, end)

    def _locators(self, numbers: Iterable[int]) -> list[Locator]:
        spans, labels = self._units["location_span"], self._units["location_label"]
        return [Locator(spans[at, 0], spans[at, 1], *self._label(labels[at])) for at in numbers]

    def _label(self, number: int) -> tuple[str, Any]:
        begin, end = self._units["location_labels_offsets"][number : number + 2].tolist()
        try:
            kind, value = json.loads(bytes(self._units["location_labels_blob"][begin:end]))
        except (ValueError, TypeError, RecursionError) as error:
            raise IndexDamaged(
                f"location label {number} is not valid JSON", hint="run `ketrag index --rebuild`"
            ) from error
        return str(kind), value
