"""Decompositions: a chunk as semantic units, with the entities and relationships of each (NodeRAG, 3.3)."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ketrag_fast.models.extraction.grounding import Source
from ketrag_fast.models.extraction.parse import read_json
from ketrag_fast.models.extraction.records import MAX_DESCRIPTION, MAX_NAME, clean, entity
from ketrag_fast.models.tasks.task import ParsedReply

MAX_UNITS: Final = 1_000
MAX_ENTITIES: Final = 1_000
MAX_RELATIONSHIPS: Final = 1_000
"""The maximum number of entities and relationships of a unit; the rest is dropped and counted."""
_LISTS: Final = ("units", "Output", "output", "semantic_units")
_TEXTS: Final = ("unit", "semantic_unit", "text")
_PARTS: Final = 3


class Relationship(NamedTuple):
    """Two names and their relation. The names are cleaned, but not normalised."""

    source: str
    relation: str
    target: str


class SemanticUnit(NamedTuple):
    """One statement of a chunk. `malformed` are relationships without three parts, as they were given."""

    text: str
    entities: tuple[str, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    malformed: tuple[str, ...] = ()


class Decomposition(NamedTuple):
    """All units of one chunk, in the order of the reply; `dropped` counts what could not be used."""

    units: tuple[SemanticUnit, ...] = ()
    dropped: int = 0

    @property
    def entities(self) -> int:
        """The names, with repetitions."""
        return sum(len(unit.entities) for unit in self.units)


def key_of(name: str) -> str:
    """Return the key of an entity: the name in compatibility form, with single blanks, in upper case."""
    return " ".join(unicodedata.normalize("NFKC", name).split()).upper()


def parse_decomposition(text: str, source: str) -> ParsedReply[Decomposition] | None:
    """Return the decomposition in a reply about `source` (title and text); None if it has none. Never raises.

    Names that do not occur in the source are dropped, and with them their relationships.
    """
    mended = read_json(text)
    if mended.value is None:
        return None
    listed = next((mended.value[name] for name in _LISTS if isinstance(mended.value.get(name), list)), None)
    if listed is None:
        return None
    place = Source(source)
    units: list[SemanticUnit] = []
    dropped = mended.lost
    for item in listed:
        unit, lost = (None, 1) if len(units) >= MAX_UNITS else _unit(item, place)
        dropped += lost
        if unit is not None:
            units.append(unit)
    found = Decomposition(tuple(units), dropped)
    return ParsedReply(found, "clean" if mended.why is None else "repaired", found.entities)


def _unit(item: Any, place: Source) -> tuple[SemanticUnit | None, int]:
    """Return a unit, and the number of parts dropped."""
    if isinstance(item, list) and len(item) == _PARTS:
        text, names, relationships = item
    elif isinstance(item, dict):
        text = next((item[name] for name in _TEXTS if name in item), None)
        names, relationships = item.get("entities"), item.get("relationships")
    else:
        return None, 1
    said = clean(text)[:MAX_DESCRIPTION]
    if not said:
        return None, 1
    dropped = 0
    entities: dict[str, None] = {}
    for name in names if isinstance(names, list) else ():
        record = entity(name, "", "")
        if record is None or len(entities) >= MAX_ENTITIES or not place.holds(record.name):
            dropped += 1
        else:
            entities[record.name] = None
    kept: list[Relationship] = []
    malformed: list[str] = []
    for value in relationships if isinstance(relationships, list) else ():
        parts = _parts(value)
        one = None if parts is None else relationship(parts, entities)
        if parts is None or len(kept) + len(malformed) >= MAX_RELATIONSHIPS:
            dropped += 1
        elif one is None:
            malformed.append(", ".join(parts)[:MAX_DESCRIPTION])
        elif not (place.holds(one.source) and place.holds(one.target)):
            dropped += 1
        else:
            kept.append(one)
    return SemanticUnit(said, tuple(entities), tuple(kept), tuple(malformed)), dropped


def _parts(value: Any) -> list[str] | None:
    """Return the parts of a relationship in any form; None if it has none."""
    if isinstance(value, str):
        value = value[: 4 * MAX_DESCRIPTION].split(",")
    elif isinstance(value, dict):
        value = [value.get(name) for name in ("source", "relation", "target")]
        value[1] = value[1] if value[1] is not None else "relates to"
    if not isinstance(value, list):
        return None
    parts = [clean(part)[:MAX_DESCRIPTION] for part in value]
    return parts if any(parts) else None


def relationship(parts: Sequence[str], entities: Iterable[str]) -> Relationship | None:
    """Return a relationship of three parts, or of more if the first and last are entities of the unit.

    None if it has another form, or an end that is not a name.
    """
    if len(parts) > _PARTS:
        known = {key_of(name) for name in entities}
        if key_of(parts[0]) not in known or key_of(parts[-1]) not in known:
            return None
        parts = [parts[0], ", ".join(parts[1:-1]), parts[-1]]
    if len(parts) != _PARTS or not all(parts):
        return None
    first, last = entity(parts[0], "", "", escaped=False), entity(parts[2], "", "", escaped=False)
    if first is None or last is None:
        return None
    return Relationship(first.name, parts[1][: 4 * MAX_NAME], last.name)


def dumps(found: Decomposition) -> str:
    """Return the decomposition as the journal stores it."""
    return json.dumps(
        {"u": [[*unit[:2], unit.relationships, unit.malformed] for unit in found.units], "d": found.dropped},
        ensure_ascii=False,
        separators=(",", ":"),
    )


def loads(text: str) -> Decomposition | None:
    """Return the decomposition from its stored form; None if it is damaged."""
    try:
        data = json.loads(text)
        units = tuple(
            SemanticUnit(
                _text(said),
                tuple(_text(name) for name in names),
                tuple(Relationship(*(_text(part) for part in row)) for row in rows),
                tuple(_text(row) for row in malformed),
            )
            for said, names, rows, malformed in data["u"]
        )
        return Decomposition(units, int(data["d"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value
