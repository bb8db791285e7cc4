"""One field of a record, made harmless (10-ketrag 1.3 step 2), and the bounds of what is kept."""

from __future__ import annotations

import html
import math
import re
from typing import Any, Final

from ketrag_fast.models.extraction.records import EntityRecord, RelationRecord
from ketrag_fast.secrets import redact

MAX_NAME: Final = 256
"""Characters. A longer name is no name: its record is dropped."""
MAX_TYPE: Final = 64
MAX_DESCRIPTION: Final = 2_000
"""Characters. A longer description is cut."""
MAX_STRENGTH: Final = 1e6
"""So that no sum of strengths overflows; whoever asks for 1 to 10 gets 1 to 10."""
_SPACE: Final = re.compile(r"\s+")
# C0 and C1, and halves of surrogate pairs, which no file can hold.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_WORDLIKE: Final = re.compile(r"[^\W_]")


def clean(value: Any, *, escaped: bool = True) -> str:
    """A field's text: trimmed, HTML entities read, control characters dropped, each run of white space one
    blank. "" for what is no text.

    A number is its digits. White space goes first: a line break inside a name is a blank. `escaped=False`
    leaves HTML entities alone: they were read once, and "&amp;lt;" is to be no "<".
    """
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, (int, float)):
        value = _digits(value)
    if not isinstance(value, str):
        return ""
    text = _SPACE.sub(" ", value.strip())
    text = _unescaped(text) if escaped else text
    # What was dropped or read as an entity may have stood between the letters of an endpoint's key.
    return redact(_SPACE.sub(" ", _CONTROL.sub("", _SPACE.sub(" ", text))).strip())


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # the number of a character with thousands of digits
        return text


def entity(name: Any, kind: Any, description: Any, *, escaped: bool = True) -> EntityRecord | None:
    """A record, or None where the name is none."""
    label = _name(name, escaped)
    if not label:
        return None
    return EntityRecord(label, _type(kind, escaped), _description(description, escaped))


def relation(
    source: Any, target: Any, description: Any, strength: Any, *, escaped: bool = True
) -> RelationRecord | None:
    """A record, or None where an end is no name or both are the same."""
    first, second = _name(source, escaped), _name(target, escaped)
    if not first or not second or first.upper() == second.upper():
        return None
    return RelationRecord(first, second, _description(description, escaped), _strength(strength))


def _digits(value: float) -> str:
    if isinstance(value, float):
        if not math.isfinite(value):
            return ""
        value = int(value) if value.is_integer() and abs(value) < 1e15 else value
    return str(value) if abs(value) < 1e30 else ""


def _name(value: Any, escaped: bool) -> str:
    if isinstance(value, str) and len(value) > 16 * MAX_NAME:
        return ""
    text = clean(value, escaped=escaped)
    return text if len(text) <= MAX_NAME and _WORDLIKE.search(text) else ""


def _type(value: Any, escaped: bool) -> str:
    if isinstance(value, str) and len(value) > 16 * MAX_TYPE:
        return ""
    text = clean(value, escaped=escaped)
    return text if len(text) <= MAX_TYPE else ""


def _description(value: Any, escaped: bool) -> str:
    if isinstance(value, str) and len(value) > 4 * MAX_DESCRIPTION:
        value = value[: 4 * MAX_DESCRIPTION]
    text = clean(value, escaped=escaped)
    if len(text) <= MAX_DESCRIPTION:
        return text
    cut = text[: MAX_DESCRIPTION + 1]
    return cut[: cut.rfind(" ")] if " " in cut[MAX_DESCRIPTION // 2 :] else text[:MAX_DESCRIPTION]


def _strength(value: Any) -> float:
    """A finite number above zero; 1 where there is none."""
    if isinstance(value, str) and len(value) <= 32:
        try:
            value = float(value)
        except ValueError:
            return 1.0
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 1.0
    try:
        number = float(value)
    except OverflowError:
        return 1.0
    return min(number, MAX_STRENGTH) if math.isfinite(number) and number > 0 else 1.0
