"""Read single rows of the arrays of a stage: a text, a row of ids, the language of a document.

The arrays are those of NumPy, or the columns of a stored stage (`Arrays.columns`), which work without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ketrag_fast import _core
from ketrag_fast.types import Span

Rows = Mapping[str, Any]


def text_of(arrays: Rows, name: str, number: int) -> str:
    """Return one string of `NAME_blob` and `NAME_offsets`."""
    first, last = arrays[f"{name}_offsets"][number : number + 2].tolist()
    return bytes(arrays[f"{name}_blob"][first:last]).decode("utf-8")


def row_of(arrays: Rows, name: str, number: int) -> list[int]:
    """Return one row of `NAME_indptr` and `NAME_indices`."""
    first, last = arrays[f"{name}_indptr"][number : number + 2].tolist()
    found: list[int] = arrays[f"{name}_indices"][first:last].tolist()
    return found


def span_of(units: Rows, unit: int, first: int = 0, last: int | None = None) -> Span:
    """Return a part of a unit, from byte `first` to `last` (None for its end), with its position."""
    data = text_of(units, "unit_texts", unit).encode()
    last = len(data) if last is None else min(last, len(data))
    text = data[first:last].decode("utf-8", "ignore")
    start = int(units["unit_span"][unit, 0]) + len(data[:first].decode("utf-8", "ignore"))
    document = int(units["unit_document"][unit])
    return Span(
        document=text_of(units, "document_ids", document),
        title=text_of(units, "document_titles", document),
        start=start,
        end=start + len(text),
        text=text,
    )


def texts_of(arrays: Rows, name: str) -> list[str]:
    """Return all strings of `NAME_blob` and `NAME_offsets`."""
    data = bytes(arrays[f"{name}_blob"][:])
    return [
        data[first:last].decode("utf-8") for first, last in pairwise(arrays[f"{name}_offsets"][:].tolist())
    ]


LANGUAGE_FIELD = "language"
"""The metadata field that holds the language of a document."""


def language_arrays(stages: Mapping[str, Rows]) -> tuple[Any, Any] | None:
    """Return the document and the language of each unit, or of each chunk; None if all are English.

    Units have languages if the index has links, and chunks if it has a vocabulary.
    """
    links, words, units = stages.get("links", {}), stages.get("words", {}), stages["units"]
    if "unit_language" in links:
        return units["unit_document"], links["unit_language"]
    if "chunk_language" in words and not links:
        return units["chunk_document"], words["chunk_language"]
    return None


def languages_of(stage: Rows | None) -> list[int]:
    """Return the numbers of the languages in which queries are tokenised; none if every text is English.

    `stage` are the arrays of the links or of the words.
    """
    if stage is None or "languages" not in stage:
        return []
    numbers: list[int] = stage["languages"][:].tolist()
    return numbers


def code_of_row(stages: Mapping[str, Rows], row: int) -> str | None:
    """Return the ISO 639-1 code for one row of the documents' columns; None if all texts are English.

    The language of a document is that of most of its units; of languages with equally many units, the first
    in the core's table.
    """
    found = language_arrays(stages)
    if found is None:
        return None
    owners, languages = found
    begin = owners.find(row)
    counts = Counter(languages[begin : owners.find(row + 1, begin)].tolist())
    number = min(counts, key=lambda number: (-counts[number], number), default=0)
    return _core.languages()[number][0]
