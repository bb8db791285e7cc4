"""Dates of documents, and the periods for which the passages of a theme are counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.kernels.text import unpack
from ketrag_fast.query.document_dates import date_in
from ketrag_fast.systems.shared.rows import Arrays

I64 = NDArray[np.int64]

_LENGTHS: Final = (4, 7, 10)
"""Length of a date with the precision of a year, a month and a day, in characters."""
_FEWEST, _MOST = 2, 24


def dates_of_rows(units: Arrays) -> list[str] | None:
    """Return the date of each row of the documents' arrays, "" if unknown; None if no document has a date."""
    if "document_metadata_offsets" not in units:
        return None
    rows = unpack(units["document_metadata_blob"], units["document_metadata_offsets"])
    dates: list[str] = []
    for row in rows:
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
        own = {date[:length] for date in dates if len(date) >= length}
        if length != chosen and len(own) > _MOST:
            break
        if len([date for date in dates if len(date) >= length]) * 2 <= sum(map(bool, dates)):
            break
        chosen = length
    return [date[:chosen] if len(date) >= chosen else "" for date in dates]
