"""Read single rows of a stage's arrays: a text, a list of ids, or a span of a document."""

from __future__ import annotations

from ketrag_fast.systems.shared.rows import Arrays
from ketrag_fast.types import Span


def text_of(arrays: Arrays, name: str, number: int) -> str:
    """Return one string of `NAME_blob` and `NAME_offsets`."""
    first, last = arrays[f"{name}_offsets"][number : number + 2].tolist()
    return bytes(arrays[f"{name}_blob"][first:last]).decode("utf-8")


def row_of(arrays: Arrays, name: str, number: int) -> list[int]:
    """Return one row of `NAME_indptr` and `NAME_indices`."""
    first, last = arrays[f"{name}_indptr"][number : number + 2].tolist()
    found: list[int] = arrays[f"{name}_indices"][first:last].tolist()
    return found


def span_of(units: Arrays, unit: int, first: int = 0, last: int | None = None) -> Span:
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
