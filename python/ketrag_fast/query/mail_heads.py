"""Heads of mails: who sent them to whom, when and about what, from the metadata of their documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_LINES: Final = (("From", "from"), ("To", "to"), ("Cc", "cc"))


def is_mail(metadata: Mapping[str, Any]) -> bool:
    """Return whether metadata is that of a mail, which has a sender and a date or an id."""
    return isinstance(metadata.get("from"), str) and ("date" in metadata or "message_id" in metadata)


def head_of(metadata: Mapping[str, Any], title: str) -> str:
    """Return the head of a mail; "" for another document.

    Examples:
        >>> print(head_of({"from": "Ada <a@x.org>", "date": "2024-09-12T09:12:00+00:00"}, "new address"))
        From: Ada <a@x.org>
        Subject: new address
        Date: 2024-09-12 09:12
    """
    if not is_mail(metadata):
        return ""
    lines = [f"{name}: {metadata[key]}" for name, key in _LINES if metadata.get(key)]
    lines += [f"Subject: {title}"] if title else []
    date = str(metadata.get("date", ""))
    return "\n".join([*lines, f"Date: {date[:16].replace('T', ' ')}"] if date else lines)


def sender_and_date(metadata: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the sender of a mail and its day; None for another document."""
    if not is_mail(metadata):
        return None, None
    day = _DAY.match(str(metadata.get("date", "")))
    return str(metadata["from"]), None if day is None else day[0]
