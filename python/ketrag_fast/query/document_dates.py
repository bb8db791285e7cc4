"""Dates in the metadata of documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

FIELDS: Final = ("date", "modified", "year")
"""Metadata fields that may hold the date of a document, in order of preference."""
_DATE: Final = re.compile(r"\s*(\d{4})(?:[-/.]?(\d{2})(?:[-/.]?(\d{2}))?)?(?!\d)")


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
