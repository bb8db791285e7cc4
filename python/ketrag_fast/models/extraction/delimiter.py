"""Parse replies in GraphRAG's format:
`("entity"<|>NAME<|>TYPE<|>DESCRIPTION)##("relationship"<|>...)<|COMPLETE|>`.

An entity has at least 4 fields, a relation at least 5, the last of which is its strength; other records are
malformed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

FIELD: Final = "<|>"
RECORD: Final = "##"
COMPLETE: Final = "<|COMPLETE|>"
_KINDS: Final = {"entity": 4, "relationship": 5, "relation": 5}
_TORN: Final = re.compile(r"(?:#|<(?:\|[A-Z]*\|?)?)\s*$")
"""A truncated delimiter between records."""
_EDGE: Final = re.compile(r"^\s*\(|\)\s*$")


class Record(NamedTuple):
    """A record. `kind` is "entity", "relation" or "malformed"; fields are not cleaned."""

    kind: str
    fields: tuple[str, ...] = ()


def is_delimited_reply(text: str) -> bool:
    """Return whether a reply has this format."""
    return FIELD in text


def is_whole(text: str) -> bool:
    """Return whether a reply is complete."""
    return COMPLETE in text


def records(text: str) -> Iterator[Record]:
    """Yield the records of one or more concatenated replies. A truncated last record is malformed."""
    body = text.replace(COMPLETE, RECORD)
    parts = body.split(RECORD)
    for place, part in enumerate(parts):
        if FIELD not in part:
            continue
        begun = part[max(part.rfind("(", 0, part.index(FIELD)), 0) :]
        if place == len(parts) - 1:
            begun = _TORN.sub("", begun).rstrip()
            if not begun.endswith(")"):
                yield Record("malformed")
                continue
        fields = [_unquote(field) for field in _EDGE.sub("", begun).split(FIELD)]
        kind = fields[0].lower()
        if len(fields) < _KINDS.get(kind, len(fields) + 1):
            yield Record("malformed")
        else:
            yield Record("entity" if kind == "entity" else "relation", tuple(fields[1:]))


def _unquote(field: str) -> str:
    text = field.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text
