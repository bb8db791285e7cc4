"""Conversations as documents: an exchange (a question and its answer) is a passage, with tools behind it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ketrag_fast.records import dataclass, field
from ketrag_fast.types import Document
from ketrag_fast.types.locations import EXCHANGE, Locator

_OUTPUT: Final = 20_000
"""Maximum number of characters of one tool output that are kept: longer ones are listings and logs."""
_DATA: Final = re.compile(r"[A-Za-z0-9+/_=-]{400,}+|(?:[A-Za-z0-9+/]{60,76}+=*\r?\n){5,}+")
"""Pictures and archives as Base64, on one line or on many. No word, path or checksum is as long."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd]")
_BINARY: Final = 10
"""An output of which more than 1 in `_BINARY` characters is a control character is not text."""
_PAUSE: Final = 3_600.0
"""Seconds of silence after which the messages of several people begin a new exchange."""
_LONG: Final = 1_600
"""Characters, about two passages, after which messages of several people begin a new exchange."""


@dataclass(slots=True)
class Message:
    """A message: its author, text and time (seconds since 1970), and what tools received and returned."""

    role: str
    text: str
    time: float | None = None
    tools: list[str] = field(default_factory=list)


def exchanges_of(messages: Iterable[Message]) -> list[list[Message]]:
    """Return the messages by exchange, which begins with a question of the user."""
    found: list[list[Message]] = []
    for message in messages:
        is_question = message.role == "user" and bool(message.text.strip())
        if not found or (is_question and any(one.role != "user" for one in found[-1])):
            found.append([])
        found[-1].append(message)
    return found


def stretches_of(messages: Iterable[Message]) -> list[list[Message]]:
    """Return the messages of several people in stretches without a long pause."""
    found: list[list[Message]] = []
    size, last = 0, 0.0
    for message in messages:
        now = last if message.time is None else message.time
        if not found or now - last > _PAUSE or size > _LONG:
            found.append([])
            size = 0
        found[-1].append(message)
        size, last = size + len(message.text), now
    return found


def conversation(
    name: str, title: str, exchanges: Sequence[Sequence[Message]], metadata: dict[str, Any]
) -> Document | None:
    """Return a conversation as a document, dated by its first message; None if nothing was said."""
    parts: list[str] = []
    locators: list[Locator] = []
    length = 0
    for exchange in exchanges:
        text = _text_of(exchange)
        if not text:
            continue
        start = length + (2 if parts else 0)
        length = start + len(text)
        locators.append(Locator(start, length, EXCHANGE, len(parts) + 1))
        time = next((one.time for one in exchange if one.time is not None), None)
        if time is not None:
            locators.append(Locator(start, length, "date", _moment(time)))
        parts.append(text)
    if not parts:
        return None
    times = [one.time for exchange in exchanges for one in exchange if one.time is not None]
    about = {"date": _moment(times[0])[:10], **metadata} if times else metadata
    return Document(name, "\n\n".join(parts), title, about, tuple(locators))


def _text_of(exchange: Sequence[Message]) -> str:
    said = [f"{one.role}: {one.text.strip()}" for one in exchange if one.text.strip()]
    tools = [_cut(output.strip()) for one in exchange for output in one.tools if output.strip()]
    return "\n\n".join([*said, *tools])


def _cut(output: str) -> str:
    """Return at most `_OUTPUT` characters of what a tool returned, without data that nobody can read."""
    if _BINARY * len(_CONTROL.findall(output, 0, _OUTPUT)) > min(len(output), _OUTPUT):
        return f"[binary output, {len(output):,} characters]"
    output = _DATA.sub(lambda found: f"[data, {len(found[0]):,} characters]", output)
    left = len(output) - _OUTPUT
    return output if left <= 0 else f"{output[:_OUTPUT]}\n... {left:,} more characters"


def _moment(time: float) -> str:
    return dt.datetime.fromtimestamp(time, dt.UTC).isoformat(" ", "minutes")[:16]


def seconds_of(value: Any) -> float | None:
    """Return a time in seconds since 1970 from a number or an ISO 8601 text; None for anything else."""
    try:
        if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
            moment = dt.datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
        found = float(value)
        dt.datetime.fromtimestamp(found, dt.UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return found
