"""The languages of documents: for each that of most of its units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core

Arrays = Mapping[str, NDArray[Any]]
FIELD = "language"
"""The metadata field that holds the language of a document."""


def codes_of_rows(units: Arrays, links: Arrays | None) -> list[str] | None:
    """Return the ISO 639-1 code for each row of the documents' arrays; None if every unit is English.

    Rows without units count as English. Of languages with equally many units, the first in the core's table
    is returned.
    """
    if links is None or "unit_language" not in links:
        return None
    names = [code for code, _ in _core.languages()]
    rows = len(units["document_ids_offsets"]) - 1
    cells = units["unit_document"].astype(np.int64) * len(names) + links["unit_language"]
    counts = np.bincount(cells, minlength=rows * len(names)).reshape(rows, len(names))
    return [names[number] for number in counts.argmax(axis=1).tolist()]


def languages_of(links: Arrays | None) -> list[int]:
    """Return the numbers of the languages in which queries are read; none if every unit is English."""
    if links is None or "languages" not in links:
        return []
    numbers: list[int] = links["languages"].tolist()
    return numbers


def code_of_row(units: Arrays, links: Arrays | None, row: int) -> str | None:
    """Return what `codes_of_rows` has for one row, or None."""
    if links is None or "unit_language" not in links:
        return None
    owners = units["unit_document"]
    begin, end = np.searchsorted(owners, np.array([row, row + 1], owners.dtype)).tolist()
    numbers = np.bincount(links["unit_language"][begin:end], minlength=1)
    return _core.languages()[int(numbers.argmax())][0]
