"""Cut documents into chunks, units and sentences, without NumPy: an edit has no time to import it."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.base.packed_texts import packed_texts
from ketrag_fast.storage.delta import aligned
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.types.locations import MARKS, Locator, is_mark

Report = Callable[[int, int], bool | None] | None
Locators = list[tuple[int, Sequence[Locator]]]
"""Locators by document row, for rows that have any."""
_COLUMNS = ("id", "title", "text", "metadata")


def cut_rows(
    documents: Documents,
    settings: Settings,
    threads: int,
    report: Report,
    *,
    metadata: bool = False,
    lines: bool = False,
) -> tuple[_core.CutUnits, Locators]:
    """Return the arrays of some documents, and their rows with locators.

    With `metadata` and `lines`, the arrays of these exist also if no document has any.
    """
    columns = [documents.buffers(name) for name in _COLUMNS]
    rows, count = list(documents.rows()), len(columns[0][1]) - 1
    starts = array("I", bytes(4 * count))
    for row, start, _ in rows:
        starts[row] = start
    located = ((row, [one for one in own if not is_mark(one)]) for row, _, own in rows)
    locators: Locators = [(row, own) for row, own in located if own]
    cut = _core.cut_units(
        columns,
        len(documents),
        aligned(starts),
        locations(locators, count),
        cut=settings.cut,
        tokens=settings.chunk_tokens,
        overlap=settings.overlap,
        splits=settings.split_level,
        encoding=settings.encoding,
        threads=threads,
        language=settings.language,
        marks=_marks(rows),
        metadata=metadata,
        lines=lines,
        report=report,
    )
    return cut, locators


def _marks(rows: Iterable[tuple[int, int, Sequence[Locator]]]) -> memoryview | None:
    """Return the marks of the readers: row, start and end in its text, number of the kind, value."""
    found = array("I")
    for row, start, own in rows:
        for one in own:
            if is_mark(one):
                found.extend((row, one.start - start, one.end - start, MARKS.index(one.kind), one.value))
    return memoryview(found).cast("B").cast("I", (len(found) // 5, 5)) if found else None


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""`json.dumps` with these arguments creates an encoder for each call, which takes as long as the call."""


def locations(rows: Iterable[tuple[int, Sequence[Locator]]], count: int) -> tuple[Any, Any, Any, Any]:
    """Return where the locators of each of `count` rows end, the span and the label of each, and the labels.

    A label is JSON such as `["page",12]`; labels are numbered by their first occurrence.
    """
    number: dict[str, int] = {}
    ends, spans, labels = array("Q", bytes(8 * (count + 1))), array("I"), array("I")
    for row, locators in rows:
        for one in locators:
            label = _encode([one.kind, one.value])
            labels.append(number.setdefault(label, len(number)))
            spans.extend((one.start, one.end))
        ends[row + 1] = len(locators)
    total = 0
    for at, own in enumerate(ends):
        total += own
        ends[at] = total
    return ends, aligned(spans), aligned(labels), packed_texts(number)
