"""The records extracted from a chunk (KET-RAG, Algorithm 1): their fields are cleaned and cut to a length."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ketrag_fast.secrets import redact

MAX_NAME: Final = 256
"""Maximum length of a name in characters; records with longer names are dropped."""
MAX_TYPE: Final = 64
MAX_DESCRIPTION: Final = 2_000
"""Maximum length of a description in characters; longer ones are truncated."""
MAX_STRENGTH: Final = 1e6
"""Maximum strength, so that no sum overflows."""
_SPACE: Final = re.compile(r"\s+")
# C0 and C1, and halves of surrogate pairs, which no file can hold.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_DIRECTION: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_WORDLIKE: Final = re.compile(r"[^\W_]")


class EntityRecord(NamedTuple):
    """An entity in one chunk. Cleaned, but not yet upper-cased or merged."""

    name: str
    type: str = ""
    description: str = ""


class RelationRecord(NamedTuple):
    """A relation between two entities, by name. `strength` is finite."""

    source: str
    target: str
    description: str = ""
    strength: float = 1.0


class NameMention(NamedTuple):
    """A mention of an entity in the text."""

    start: int
    end: int
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """All records of a chunk, in reply order; `dropped` counts malformed ones."""

    entities: tuple[EntityRecord, ...] = ()
    relations: tuple[RelationRecord, ...] = ()
    dropped: int = 0


def clean(value: Any, *, escaped: bool = True) -> str:
    """Return the text of a field: HTML entities decoded, control characters removed, white space collapsed.

    Returns the digits of a number and "" for other values. White space is collapsed first, so a line break
    inside a name becomes a blank. `escaped=False` keeps HTML entities that were decoded before.
    """
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, (int, float)):
        value = _digits(value)
    if not isinstance(value, str):
        return ""
    if _is_clean(value):
        return redact(value)
    text = _SPACE.sub(" ", value.strip())
    text = _unescaped(text) if escaped else text
    # A removed character or an HTML entity may have split the API key of an endpoint.
    return redact(_SPACE.sub(" ", _CONTROL.sub("", _SPACE.sub(" ", text))).strip())


def _is_clean(text: str) -> bool:
    """Return whether a text is printable ASCII with single blanks inside and no entity: most fields are."""
    return (
        text.isascii()
        and text.isprintable()
        and "&" not in text
        and "  " not in text
        and text[:1] != " " != text[-1:]
    )


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # a character reference with thousands of digits
        return text


def entity(name: Any, kind: Any, description: Any, *, escaped: bool = True) -> EntityRecord | None:
    """Return an entity record, or None if the name is invalid."""
    label = _name(name, escaped)
    if not label:
        return None
    return EntityRecord(label, _type(kind, escaped), _description(description, escaped))


def relation(
    source: Any, target: Any, description: Any, strength: Any, *, escaped: bool = True
) -> RelationRecord | None:
    """Return a relation record, or None if a name is invalid or both are equal."""
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
    if not text.isascii():
        # Composed, so that equal names merge, and without marks of direction around or inside it.
        text = unicodedata.normalize("NFC", _DIRECTION.sub("", text)).strip()
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
    """Return a finite number above 0, by default 1."""
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
