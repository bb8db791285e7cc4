"""Parse the reply of a model into records. Replies are untrusted: any text gives a result.

Accepts terse arrays, objects with keys and GraphRAG's delimited records, and broken JSON if the repair is
certain (`repair`). Keeps cleaned records with names that occur in the passage (`grounding`); all others are
dropped and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ketrag_fast.models.extraction import cleaning as clean
from ketrag_fast.models.extraction import delimiter
from ketrag_fast.models.extraction.grounding import Source
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.models.extraction.repair import MAX_REPLY, read_json

PARSER: Final = 2
"""Version of the parser: increase it when parsing changes, so that stored replies are parsed again."""
MAX_RECORDS: Final = 2_000
"""Maximum number of entities, and of relations, in a reply; a passage has a few dozen."""
_ENTITIES: Final = ("e", "entities")
_RELATIONS: Final = ("r", "relations", "relationships")
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


def parse_reply(text: str, source: str, *, grounded: bool = True) -> Parsed:
    """Return the records of a reply about `source` (title and text of the chunk). Never raises.

    `grounded=False` also keeps names that do not occur in the source.
    """
    place = Source(source) if grounded else None
    if not text.strip():
        return Parsed(Extraction(), "unusable", "an empty reply")
    if delimiter.is_delimited_reply(text):
        found = _parse_delimited(text[:MAX_REPLY], place)
        if found is not None:
            whole = delimiter.is_whole(text) and len(text) <= MAX_REPLY
            return Parsed(found, "clean" if whole else "repaired", None if whole else "cut off")
    mended = read_json(text)
    if mended.value is None:
        return Parsed(Extraction(), "unusable", mended.why)
    entities, relations = _lists(mended.value)
    if entities is None and relations is None:
        return Parsed(Extraction(), "unusable", "JSON of another shape")
    kept = _Kept(place)
    kept.dropped += mended.lost
    for item in entities or ():
        kept.entity(_fields(item, _ENTITY_FIELDS, 3))
    for item in relations or ():
        kept.relation(_fields(item, _RELATION_FIELDS, 3))
    whole = mended.why is None and entities is not None and relations is not None
    why = None if whole else mended.why or "one of the two lists is missing"
    return Parsed(kept.extraction(), "clean" if whole else "repaired", why)


def join_extractions(parts: Iterable[Extraction]) -> Extraction:
    """Concatenate the records of a reply and its gleanings; the fold merges duplicates."""
    every = list(parts)
    return Extraction(
        tuple(record for part in every for record in part.entities),
        tuple(record for part in every for record in part.relations),
        sum(part.dropped for part in every),
    )


class _Kept:
    """Collects valid records and counts the others."""

    def __init__(self, source: Source | None) -> None:
        self._holds: Callable[[str], bool] = (lambda _: True) if source is None else source.holds
        self._entities: list[EntityRecord] = []
        self._relations: list[RelationRecord] = []
        self.dropped = 0

    def entity(self, fields: Sequence[Any] | None) -> None:
        record = None if fields is None else clean.entity(fields[0], fields[1], fields[2])
        if record is None or len(self._entities) >= MAX_RECORDS or not self._holds(record.name):
            self.dropped += 1
        else:
            self._entities.append(record)

    def relation(self, fields: Sequence[Any] | None) -> None:
        record = None if fields is None else clean.relation(fields[0], fields[1], fields[2], fields[-1])
        if (
            record is None
            or len(self._relations) >= MAX_RECORDS
            or not (self._holds(record.source) and self._holds(record.target))
        ):
            self.dropped += 1
        else:
            self._relations.append(record)

    def extraction(self) -> Extraction:
        return Extraction(tuple(self._entities), tuple(self._relations), self.dropped)


def _parse_delimited(text: str, source: Source | None) -> Extraction | None:
    """Parse delimited records; None if there is none, because the delimiters may be part of JSON text."""
    kept, found = _Kept(source), False
    for row in delimiter.records(text):
        if row.kind == "entity":
            kept.entity(row.fields)
        elif row.kind == "relation":
            kept.relation(row.fields)
        else:
            kept.dropped += 1
        found |= row.kind != "malformed"
    return kept.extraction() if found else None


def _lists(value: dict[str, Any]) -> tuple[list[Any] | None, list[Any] | None]:
    """Return the lists of entities and relations; None for one that is missing or not a list."""

    def one(names: Sequence[str]) -> list[Any] | None:
        return next((value[name] for name in names if isinstance(value.get(name), list)), None)

    return one(_ENTITIES), one(_RELATIONS)


def _fields(item: Any, names: Sequence[Sequence[str]], least: int) -> list[Any] | None:
    """Return the fields of an item in the order of `names`, or None if it has another form."""
    if isinstance(item, list):
        return [*item, *[None] * (len(names) - len(item))] if len(item) >= least else None
    if isinstance(item, dict):
        return [next((item[name] for name in each if name in item), None) for each in names]
    return None
