"""The language of each document: that of most of its units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core

Arrays = Mapping[str, NDArray[Any]]
FIELD = "language"
"""The metadata field that holds the language of a document."""


def language_arrays(stages: Mapping[str, Arrays]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return the document and the language of each unit, or of each chunk; None if all are English.

    Units have languages if the index has links, and chunks if it has a vocabulary.
    """
    links, words, units = stages.get("links", {}), stages.get("words", {}), stages["units"]
    if "unit_language" in links:
        return units["unit_document"], links["unit_language"]
    if "chunk_language" in words and not links:
        return units["chunk_document"], words["chunk_language"]
    return None


def codes_of_rows(stages: Mapping[str, Arrays]) -> list[str] | None:
    """Return the ISO 639-1 code for each row of the documents' arrays; None if every text is English.

    Rows without units count as English. Of languages with equally many units, the first in the core's table
    is returned.
    """
    found = language_arrays(stages)
    if found is None:
        return None
    owners, numbers = found
    names = [code for code, _ in _core.languages()]
    rows = len(stages["units"]["document_ids_offsets"]) - 1
    cells = owners.astype(np.int64) * len(names) + numbers
    counts = np.bincount(cells, minlength=rows * len(names)).reshape(rows, len(names))
    return [names[number] for number in counts.argmax(axis=1).tolist()]


def languages_of(stage: Arrays | None) -> list[int]:
    """Return the numbers of the languages in which queries are tokenised; none if every text is English.

    `stage` are the arrays of the links or of the words.
    """
    if stage is None or "languages" not in stage:
        return []
    numbers: list[int] = stage["languages"].tolist()
    return numbers


def code_of_row(stages: Mapping[str, Arrays], row: int) -> str | None:
    """Return the code that `codes_of_rows` has for one row, or None."""
    found = language_arrays(stages)
    if found is None:
        return None
    owners, languages = found
    begin, end = np.searchsorted(owners, np.array([row, row + 1], owners.dtype)).tolist()
    numbers = np.bincount(languages[begin:end], minlength=1)
    return _core.languages()[int(numbers.argmax())][0]
