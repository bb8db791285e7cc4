"""Parse the reply of a model into records. Replies are untrusted: any text gives a result.

Accepts terse arrays and objects with keys, and broken JSON if its meaning is certain. Repaired are: thoughts,
text and code fences around the JSON; a comma before a closing bracket; control characters inside a string; a
needless backslash; and a truncated end, where complete records are kept and the last one is dropped. Keeps
cleaned records with names that occur in the passage (`grounding`); all others are dropped and counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from ketrag_fast.models.extraction import records as clean
from ketrag_fast.models.extraction.grounding import Source
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.records import dataclass

PARSER: Final = 2
"""Version of the parser: increase it when parsing changes, so that stored replies are parsed again."""
MAX_RECORDS: Final = 2_000
"""Maximum number of entities, and of relations, in a reply; a passage has a few dozen."""
_ENTITIES: Final = ("e", "entities")
_RELATIONS: Final = ("r", "relations", "relationships")
_LEAST_FIELDS: Final = 3
_ENTITY_FIELDS: Final = (("name", "entity_name", "entity"), ("type", "entity_type"), ("description",))
_RELATION_FIELDS: Final = (("source",), ("target",), ("description",), ("strength", "weight"))


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed reply.

    `how` is "clean" if it had the requested format (maybe without records), "repaired" if it was repaired or
    truncated (`why` gives the reason), "unusable" if nothing could be parsed: then the extraction is empty.
    """

    extraction: Extraction
    how: Literal["clean", "repaired", "unusable"]
    why: str | None = None


def parse_reply(text: str, source: str) -> Parsed:
    """Return the records of a reply about `source` (title and text of the chunk). Never raises."""
    if not text.strip():
        return Parsed(Extraction(), "unusable", "an empty reply")
    mended = read_json(text)
    if mended.value is None:
        return Parsed(Extraction(), "unusable", mended.why)
    rows, links = (_list(mended.value, names) for names in (_ENTITIES, _RELATIONS))
    if rows is None and links is None:
        return Parsed(Extraction(), "unusable", "JSON of another shape")
    holds = Source(source).holds
    entities: list[EntityRecord] = []
    relations: list[RelationRecord] = []
    for item in rows or ():
        fields = _fields(item, _ENTITY_FIELDS)
        entity = None if fields is None else clean.entity(fields[0], fields[1], fields[2])
        if entity is not None and holds(entity.name) and len(entities) < MAX_RECORDS:
            entities.append(entity)
    for item in links or ():
        fields = _fields(item, _RELATION_FIELDS)
        relation = None if fields is None else clean.relation(fields[0], fields[1], fields[2], fields[-1])
        is_valid = relation is not None and holds(relation.source) and holds(relation.target)
        if relation is not None and is_valid and len(relations) < MAX_RECORDS:
            relations.append(relation)
    given = len(rows or ()) + len(links or ())
    dropped = mended.lost + given - len(entities) - len(relations)
    found = Extraction(tuple(entities), tuple(relations), dropped)
    if mended.why is None and rows is not None and links is not None:
        return Parsed(found, "clean")
    return Parsed(found, "repaired", mended.why or "one of the two lists is missing")


def join_extractions(parts: Iterable[Extraction]) -> Extraction:
    """Concatenate the records of a reply and its gleanings; the fold merges duplicates."""
    every = list(parts)
    return Extraction(
        tuple(record for part in every for record in part.entities),
        tuple(record for part in every for record in part.relations),
        sum(part.dropped for part in every),
    )


def _list(value: dict[str, Any], names: Sequence[str]) -> list[Any] | None:
    """Return the list with one of these names; None if it is missing or not a list."""
    return next((value[name] for name in names if isinstance(value.get(name), list)), None)


def _fields(item: Any, names: Sequence[Sequence[str]]) -> list[Any] | None:
    """Return the fields of an item in the order of `names`, or None if it has another form."""
    if isinstance(item, list):
        return [*item, *[None] * (len(names) - len(item))] if len(item) >= _LEAST_FIELDS else None
    if isinstance(item, dict):
        return [next((item[name] for name in each if name in item), None) for each in names]
    return None


MAX_REPLY: Final = 1_000_000
"""Maximum length in characters; longer replies are truncated."""
MAX_DEPTH: Final = 16
_THOUGHTS: Final = ("think", "thinking", "reasoning")
_TOKEN: Final = re.compile(
    r'(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")|(?P<mark>[\[\]{},:])|(?P<plain>[^\s\[\]{},:"]+)|(?P<open>".*)',
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt]|.)', re.DOTALL)
_TRIALS: Final = 4
"""Number of braces tried as the beginning of the object: text before it may contain some."""
_RECORDS: Final = 2
"""Depth of a record: in the object, in a list."""
_CLOSERS: Final = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Mended:
    """A repaired reply. `value` is None if nothing could be parsed; `why` is the problem; `lost` is the
    number (0 or 1) of truncated records.
    """

    value: dict[str, Any] | None
    why: str | None = None
    lost: int = 0


def read_json(text: str) -> Mended:
    """Return the JSON object of a reply. Never raises."""
    short = text[:MAX_REPLY]
    if len(short) == len(text) and (value := _loads(short)) is not None:
        return Mended(value)
    body = _without_thought(short)
    begin, cut_early = body.find("{"), False
    for _ in range(_TRIALS):
        if begin < 0:
            break
        rebuilt, lost = _rebuilt(body, begin)
        cut_early |= rebuilt is None and lost is not None
        value = None if rebuilt is None else _loads(rebuilt)
        if value is not None:
            why = "text around the JSON, or slips inside it" if lost is None else "cut off"
            return Mended(value, why, lost or 0)
        begin = body.find("{", begin + 1)
    if cut_early:
        return Mended(None, "cut off before the end of its first record")
    return Mended(None, "broken JSON" if "{" in body else "no JSON object in it")


def _without_thought(text: str) -> str:
    """Return a text without its first complete thought, in linear time."""
    spans = []
    for name in _THOUGHTS:
        begin = text.find(f"<{name}>")
        end = text.find(f"</{name}>", begin) if begin >= 0 else -1
        if end >= 0:
            spans.append((begin, end + len(name) + 3))
    if not spans:
        return text
    begin, end = min(spans)
    return text[:begin].rstrip() + text[end:]


def _loads(text: str) -> dict[str, Any] | None:
    """Return a JSON object, or None for anything else, huge numbers and deep nesting."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _rebuilt(text: str, begin: int) -> tuple[str | None, int | None]:
    """Rebuild the object at `begin` token by token; return (object, None).

    If it is truncated, return its complete records and the number (0 or 1) of truncated ones.
    """
    out: list[str] = []
    stack: list[str] = []
    # length of `out` after a closed record or list, and the missing closers
    kept: tuple[int, str] | None = None
    opened = False
    for found in _TOKEN.finditer(text, begin):
        sign = found.group()
        if found.lastgroup == "open":  # a string without an end: the reply was truncated in it
            opened = True
            break
        if found.lastgroup == "text":
            out.append(_ESCAPE.sub(_escape, sign))
        elif sign in _CLOSERS:
            stack.append(_CLOSERS[sign])
            out.append(sign)
            if len(stack) > MAX_DEPTH:
                return None, None
        elif sign in "}]":
            if not stack or stack.pop() != sign:
                return None, None
            while out and out[-1] == ",":
                out.pop()
            out.append(sign)
            if not stack:
                return " ".join(out), None
            if len(stack) <= _RECORDS:
                kept = len(out), "".join(reversed(stack))
        else:
            out.append(sign)
    if kept is None:
        return None, 1
    lost = opened or any(sign != "," for sign in out[kept[0] :])
    return " ".join(out[: kept[0]]) + kept[1], int(lost)


def _escape(found: re.Match[str]) -> str:
    body = found[1]
    return found[0] if len(body) > 1 or body in '"\\/bfnrt' else body
