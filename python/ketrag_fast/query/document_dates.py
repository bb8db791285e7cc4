"""Dates in the metadata of documents, and the periods for which the passages of a theme are counted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.shared.rows import Arrays

FIELDS: Final = ("date", "modified", "year")
"""Metadata fields that may hold the date of a document, in order of preference."""
_DATE: Final = re.compile(r"\s*(\d{4})(?:[-/.]?(\d{2})(?:[-/.]?(\d{2}))?)?(?!\d)")
_LENGTHS: Final = (4, 7, 10)
"""Length of a date with the precision of a year, a month and a day, in characters."""
_MOST: Final = 24
"""Maximum number of months or days that are used as periods."""


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
