"""The fold of replies into a skeleton, plainly: the oracle of `rust/papers/src/ket_rag/skeleton`."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Count = Callable[[str], int]


class FoldedEntity(NamedTuple):
    """A record of one chunk."""

    name: str
    type: str
    description: str


class FoldedRelation(NamedTuple):
    """A record of one chunk."""

    source: str
    target: str
    description: str
    strength: float


class ChunkReply(NamedTuple):
    """What was read out of one chunk."""

    chunk: int
    entities: Sequence[FoldedEntity]
    relations: Sequence[FoldedRelation]


@dataclass
class EntityNode:
    """An entity, or a relation with its two ends."""

    name: str = ""
    type: str = ""
    ends: tuple[int, int] = (0, 0)
    weight: float = 0.0
    rank: int = 0
    description: str = ""
    said: dict[str, set[int]] = field(default_factory=dict)
    chunks: list[int] = field(default_factory=list)
    units: list[int] = field(default_factory=list)

    def say(self, text: str, chunk: int) -> None:
        """Notes the chunk, and each line of a description with it."""
        if chunk not in self.chunks:
            self.chunks.append(chunk)
        for line in text.replace("\r", "\n").split("\n"):
            if line.strip():
                self.said.setdefault(line.strip(), set()).add(chunk)


def fold(
    replies: Sequence[ChunkReply],
    chunk_units: Sequence[Sequence[int]],
    count: Count,
    cut: Callable[[str, int], str],
    *,
    description_tokens: int = 500,
) -> tuple[list[EntityNode], list[EntityNode], list[int]]:
    """(entities, relations, dropped); `replies` in ascending chunk id. `cut(text, n)`: its first n tokens."""
    entities: dict[str, EntityNode] = {}
    relations: dict[frozenset[str], EntityNode] = {}
    dropped = [0, 0, 0]
    for chunk, records, joins in replies:
        for name, kind, description in records:
            if not upper(name):
                dropped[0] += 1
                continue
            node = entities.setdefault(upper(name), EntityNode(upper(name)))
            node.type = node.type or upper(kind)
            node.say(description, chunk)
        for source, target, description, strength in joins:
            ends = (upper(source), upper(target))
            if not all(ends) or ends[0] == ends[1]:
                dropped[1 if not all(ends) else 2] += 1
                continue
            for end in ends:
                entities.setdefault(end, EntityNode(end)).say("", chunk)
            place = {name: i for i, name in enumerate(entities)}
            new = EntityNode(ends=(place[ends[0]], place[ends[1]]))
            node = relations.setdefault(frozenset(ends), new)
            node.weight += strength if math.isfinite(strength) else 1.0
            node.say(description, chunk)
    names = list(entities.values())
    pairs = list(relations.values())
    for pair in pairs:
        for i in pair.ends:
            names[i].rank += 1
    for pair in pairs:
        pair.rank = sum(names[i].rank for i in pair.ends)
    for node in [*names, *pairs]:
        ordered = sorted(node.said, key=lambda line: (-len(node.said[line]), line.encode()))
        kept: list[str] = []
        for line in ordered:
            if sum(count(k) + 1 for k in [*kept, line]) > description_tokens:
                break
            kept.append(line)
        if ordered and not kept:
            kept = [cut(ordered[0], description_tokens)]
        node.description = "\n".join(kept)
        node.units += [unit for chunk in node.chunks for unit in chunk_units[chunk]]
    return names, pairs, dropped


def upper(text: str) -> str:
    """Trimmed, without control characters, in upper case."""
    kept = "".join(c for c in text.strip() if unicodedata.category(c) != "Cc")
    return "".join(c.upper() for c in kept)


def folded(c: str) -> str:
    """A character without case: `ß` becomes `ss`."""
    return "".join(u.lower() for u in c.upper())


def occurrences(text: str, name: str) -> list[tuple[int, int]]:
    """Start and end of each occurrence of `name` in any case, as whole words, left to right."""
    wanted = "".join(folded(c) for c in name)
    found = []
    at = 0
    while wanted and at < len(text):
        end = at
        seen = ""
        while end < len(text) and len(seen) < len(wanted):
            seen += folded(text[end])
            end += 1
        whole = not (at and _joined(text[at - 1], text[at]))
        if seen == wanted and whole and not (end < len(text) and _joined(text[end - 1], text[end])):
            found.append((at, end))
            at = end
        else:
            at += 1
    return found


def _joined(a: str, b: str) -> bool:
    return _spelt(a) and _spelt(b)


def _spelt(c: str) -> bool:
    unspaced = ((0xE00, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0xFAFF), (0x20000, 0x10FFFF))
    return c.isalnum() and not any(low <= ord(c) <= high for low, high in unspaced)


def entity_row(number: int, node: EntityNode) -> str:
    """`id|entity|description|number of relationships` with its line break."""
    return f"{number}|{cell(node.name)}|{cell(node.description)}|{node.rank}\n"


def relation_head(number: int, node: EntityNode, names: Mapping[int, str]) -> str:
    """A relation's row up to the links."""
    source, target = (cell(names[i]) for i in node.ends)
    weight = f"{node.weight}" if node.weight else ""
    return f"{number}|{source}|{target}|{cell(node.description)}|{weight}|{node.rank}|"


def cell(text: str) -> str:
    """Line breaks become spaces."""
    return text.replace("\n", " ").replace("\r", " ")
