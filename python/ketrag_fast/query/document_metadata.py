"""Metadata of the documents that passages come from."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.shared.document_languages import FIELD, code_of_row, language_arrays
from ketrag_fast.systems.shared.row_text import text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DocumentMetadata:
    """Reads the metadata of a generation one document at a time; reads nothing if no document has metadata.

    If some documents are not English, each document has its detected `language`, unless its source gives one.
    """

    def __init__(self, stages: Mapping[str, Mapping[str, NDArray[Any]]]) -> None:
        self._stages = stages
        self._units = stages["units"]
        self._stored = "document_metadata_offsets" in self._units
        self.has_any = self._stored or language_arrays(stages) is not None
        """Whether any document has metadata."""

    def of_unit(self, unit: int) -> dict[str, Any]:
        """Return the metadata of the document that contains a unit."""
        return self.of_row(int(self._units["unit_document"][unit])) if self.has_any else {}

    def of_document(self, name: str) -> dict[str, Any]:
        """Return the metadata of a document by its id; empty for an unknown id."""
        row = self._rows.get(name) if self.has_any else None
        return {} if row is None else self.of_row(row)

    def of_row(self, row: int) -> dict[str, Any]:
        """Return the metadata of a row of the documents' arrays. Raises IndexDamaged if it is not JSON."""
        code = code_of_row(self._stages, row)
        detected = {} if code is None else {FIELD: code}
        return {**detected, **self._stored_of(row)}

    def _stored_of(self, row: int) -> dict[str, Any]:
        if not self._stored:
            return {}
        ends = self._units["document_metadata_offsets"]
        first = max(bisect_left(ends, ends[row + 1]) - 1, 0)  # the rows of other sections are empty
        try:
            metadata = json.loads(text_of(self._units, "document_metadata", first), parse_constant=_none)
        except (ValueError, RecursionError) as error:
            raise _damaged(row) from error
        if not isinstance(metadata, dict):
            raise _damaged(row)
        return metadata

    @cached_property
    def _rows(self) -> dict[str, int]:
        """The first row of each document; a long document has a row for each section."""
        names = unpack(self._units["document_ids_blob"], self._units["document_ids_offsets"])
        rows: dict[str, int] = {}
        for row, name in enumerate(names):
            rows.setdefault(name, row)
        return rows


def _none(_: str) -> None:
    """Return None for NaN and infinity, which JSON does not have."""


def _damaged(row: int) -> IndexDamaged:
    return IndexDamaged(
        f"the metadata of document {row} is not a JSON object", hint="run `ketrag index --rebuild`"
    )
