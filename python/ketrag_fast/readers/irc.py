"""Logs of IRC clients: a time, a name in angle brackets and a text; WeeChat has tabs between them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import Final

from ketrag_fast.readers.conversation import Message, conversation, stretches_of
from ketrag_fast.readers.protocol import Item, SourceFile

_LINE: Final = re.compile(
    r"\[?(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d):(\d\d)(?::(\d\d))?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"\s{1,4}<[ @+%&~!]?([^<>\s]{1,40})>\s(.*)"
)
_WEECHAT: Final = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d):(\d\d)(?::(\d\d))?\t[ @+%&~!]?([^\t\s]{1,40})\t(.*)")
_NOTICES: Final = ("-->", "<--", "--", "=!=")
"""Signs that WeeChat writes instead of a name: for joins, for departures, and for its own messages."""
_DAY: Final = re.compile(
    r"(?:---|\*\*\*\*|Session Start:)[^\n]{0,40}? "
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6} "
    r"(\d{1,2})(?: \d\d:\d\d:\d\d)? (\d{4})"
)
"""A line with which irssi, HexChat and mIRC begin a day."""
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HEAD_LINES: Final = 40
_MESSAGES: Final = 3
"""Messages among the first `_HEAD_LINES` lines by which a log is recognised."""


def is_irc(head: bytes) -> bool:
    """Return whether a text begins as a log of an IRC client does."""
    lines = head.decode("utf-8", "replace").splitlines()[:_HEAD_LINES]
    return sum(_LINE.match(line) is not None for line in lines) >= _MESSAGES


def read_irc(file: SourceFile) -> Iterator[Item]:
    """Yield the log as one document. Joins, parts and other notices are left out."""
    messages: list[Message] = []
    day: dt.date | None = None
    pattern = _WEECHAT if file.suffix == ".weechatlog" else _LINE
    for line in file.text().splitlines():
        begun = _DAY.match(line)
        if begun is not None:
            day = _date(int(begun[3]), _MONTHS.index(begun[1]) + 1, int(begun[2])) or day
        match = pattern.match(line)
        if match is not None and match[5] not in _NOTICES:
            if match[1]:
                year, month, number = map(int, match[1].split("-"))
                day = _date(year, month, number) or day
            name, text = match[5], match[6]
            if name == "*":  # what WeeChat writes for `/me`
                name, _, text = text.partition(" ")
            messages.append(Message(name, text, _time(day, match)))
    title = file.id.rpartition("/")[2].rpartition(".")[0]
    document = conversation(file.id, title, stretches_of(messages), {})
    yield file.failure("the log has no messages") if document is None else document


def _date(year: int, month: int, day: int) -> dt.date | None:
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def _time(day: dt.date | None, match: re.Match[str]) -> float | None:
    """Return the time of a message; None if no line has named the day."""
    hour, minute, second = int(match[2]), int(match[3]), int(match[4] or 0)
    if day is None or hour > 23 or minute > 59 or second > 59:
        return None
    return dt.datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=dt.UTC).timestamp()
