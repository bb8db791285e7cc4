"""Dates of documents: periods of themes, and newer documents first among passages of comparable relevance.

The current time is not used: dates are compared only with each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.query.source_paths import SourcePaths

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.query.open_generation import Opened
    from ketrag_fast.systems.shared.rows import Arrays

FIELDS: Final = ("date", "modified", "year")
"""Metadata fields that may hold the date of a document, in order of preference."""
_DATE: Final = re.compile(r"\s*(\d{4})(?:[-/.]?(\d{2})(?:[-/.]?(\d{2}))?)?(?!\d)")
_LENGTHS: Final = (4, 7, 10)
"""Length of a date with the precision of a year, a month and a day, in characters."""
_MOST: Final = 24
"""Maximum number of months or days that are used as periods."""
COMPARABLE: Final = 0.2
"""Maximum difference between the scores of comparable passages, as a share of the best score."""
_BITS: Final = 3
"""Maximum number of bits by which the sketches of copies differ, as in the core."""
_FEW: Final = 10
"""With at least this many passages, the difference is also at most half of that between first and last."""


def date_in(metadata: Mapping[str, Any]) -> str:
    """Return the date in metadata as YYYY, YYYY-MM or YYYY-MM-DD; "" if there is no date.

    Examples:
        >>> date_in({"date": "2026-03-01T10:00:00"}), date_in({"year": 1893}), date_in({"date": "soon"})
        ('2026-03-01', '1893', '')
    """
    for name in FIELDS:
        value = metadata.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            continue
        found = _DATE.match(str(value))
        if found is not None:
            return "-".join(part for part in found.groups() if part)
    return ""


def dates_of_rows(units: Arrays) -> list[str] | None:
    """Return the date of each row of the documents' arrays, "" if unknown; None if no document has a date."""
    from ketrag_fast.kernels.text import unpack

    if "document_metadata_offsets" not in units:
        return None
    dates: list[str] = []
    for row in unpack(units["document_metadata_blob"], units["document_metadata_offsets"]):
        if row:
            dates.append(_date_of(row))
        else:  # the first section holds the metadata of the whole document
            dates.append(dates[-1] if dates else "")
    return dates if any(dates) else None


def _date_of(row: str) -> str:
    try:
        metadata = json.loads(row)
    except (ValueError, RecursionError):
        return ""
    return date_in(metadata) if isinstance(metadata, dict) else ""


def periods_of(dates: Sequence[str]) -> list[str]:
    """Return the period of each date: days or months if there are at most 24 of them, else years.

    Empty dates, and dates that are less precise than the periods, have no period ("").

    Examples:
        >>> periods_of(["2026-03-01", "2026-04-02", ""])
        ['2026-03-01', '2026-04-02', '']
        >>> periods_of(["1893-06", "2026-04-02"])
        ['1893-06', '2026-04']
    """
    chosen = _LENGTHS[0]
    for length in _LENGTHS:
        own = [date[:length] for date in dates if len(date) >= length]
        too_many = length != chosen and len(set(own)) > _MOST
        if too_many or len(own) * 2 <= sum(map(bool, dates)):
            break
        chosen = length
    return [date[:chosen] if len(date) >= chosen else "" for date in dates]


def newest_first(scores: NDArray[np.float64], days: Sequence[str]) -> list[int]:
    """Return positions in the preferred order.

    Starting with the best passage, passages that follow with a comparable score form a group. A group is
    ordered by date, newest first; passages without a date come last. Passages of the same day keep their
    order.

    Args:
        scores: Scores of passages, best first.
        days: Their dates, "" if unknown. A year or a month counts as older than each of its days.

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
    """Return the order after swapping the newest of nearly equal passages with the first of them.

    A query prints only the first one. `keys` are the two numbers of each passage in `unit_keys`.
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
    """Return the date of each unit's document, "" if unknown.

    The date is the later of `modified` and `date` in the metadata, else `year`, else the day (UTC) of the
    file's last change at the time when the index read it.
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
        times = file_days(folder, names)
        for at, name in zip(unknown, names, strict=True):
            found[at] = times.get(name, "")
    return found


def file_days(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the day of the last change of each document's file, by document, of those that have a file."""
    files = SourcePaths(folder).of(names).items() if names else ()
    return {
        name: datetime.fromtimestamp(file.changed / 1e9, UTC).date().isoformat()
        for name, file in files
        if file.changed is not None
    }
