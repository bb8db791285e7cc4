"""Newer documents first among passages of comparable relevance, for the setting `newest`.

The clock of the machine plays no role: only the dates of the documents are compared with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.query.document_dates import FIELDS, date_in
from ketrag_fast.query.source_paths import SourcePaths
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_stamps import read_stamps

if TYPE_CHECKING:
    from ketrag_fast.query.open_generation import Opened

COMPARABLE: Final = 0.2
"""Maximum difference between comparable passages, as a share of the best score."""
_BITS: Final = 3
"""Bits of their sketches by which copies differ at most, as in the core."""
_FEW: Final = 10
"""With as many passages or more, comparable ones are also at most half as far behind as the last one is."""


def newest_first(scores: NDArray[np.float64], days: Sequence[str]) -> list[int]:
    """Return positions in the preferred order.

    Starting with the best, each passage leads a group of those that follow it with a comparable score. A
    group is ordered by date, newest first; passages of the same day, and those without a date at the end,
    keep their order.

    Args:
        scores: Scores of passages, best first.
        days: Their dates, "" for none. Dates of a year or a month come after those of its days.

    Examples:
        >>> newest_first(np.array([9.0, 8.5, 8.4, 3.0]), ["2024-05-01", "", "2026-01-31", "2026-11-01"])
        [2, 0, 1, 3]
    """
    if not len(scores):
        return []
    spread = float(scores[0] - scores[-1])
    margin = COMPARABLE * (float(scores[0]) if scores[-1] >= 0 else spread)
    if len(scores) >= _FEW:
        margin = min(margin, spread / 2)
    order: list[int] = []
    while len(order) < len(scores):
        first = len(order)
        stop = first + 1
        while stop < len(scores) and scores[stop] >= scores[first] - margin:
            stop += 1
        order += sorted(range(first, stop), key=lambda at: days[at], reverse=True)
    return order


def newest_copies_first(order: list[int], days: Sequence[str], keys: Sequence[tuple[int, int]]) -> list[int]:
    """Return an order in which the newest of nearly equal passages has the place of the first of them.

    A query prints only the first of them. `keys` are the two numbers of each passage in `unit_keys`.
    """
    order = list(order)
    for place, first in enumerate(order):
        facts, sketch = keys[first]
        copies = [
            other
            for other in range(place + 1, len(order))
            if keys[order[other]][0] == facts and (keys[order[other]][1] ^ sketch).bit_count() <= _BITS
        ]
        newest = max(copies, key=lambda other: (days[order[other]], -other), default=place)
        if days[order[newest]] > days[first]:
            order[place], order[newest] = order[newest], first
    return order


def days_of(opened: Opened, folder: Path, units: Sequence[int]) -> list[str]:
    """Return the date of the document of each unit, "" for none.

    It is the latest of `modified` and `date` in its metadata, else its `year`, else the day on which its file
    was changed last when the index read it (UTC).
    """
    found = []
    for unit in units:
        metadata = opened.document_metadata.of_unit(unit)
        own = [date_in({name: metadata[name]}) for name in FIELDS if name in metadata]
        found.append(max(own, default=""))
    unknown = [at for at, day in enumerate(found) if not day]
    if unknown:
        places = opened.searcher.places([units[at] for at in unknown], [0] * len(unknown))
        names = [document for _, document, *_ in places]
        times = _file_days(folder, names)
        for at, name in zip(unknown, names, strict=True):
            found[at] = times.get(name, "")
    return found


def _file_days(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the days on which the files of documents were changed, by document."""
    stamps = read_stamps(Layout(folder))
    if stamps is None:
        return {}
    days = {}
    for name, file in SourcePaths(folder).of(names).items():
        time = stamps.time_of(file.path)
        if time is not None:
            days[name] = datetime.fromtimestamp(time / 1e9, UTC).date().isoformat()
    return days
