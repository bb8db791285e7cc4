"""Inspection of one entity of NodeRAG's graph: its attribute, units, relations and community."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from textwrap import shorten
from typing import Any, Final

import numpy as np

from ketrag_fast.storage.generation import Generation
from ketrag_fast.systems.noderag.communities import NONE
from ketrag_fast.systems.noderag.node_sources import NodeSources
from ketrag_fast.systems.noderag.units import key_of
from ketrag_fast.systems.shared.name_lookup import Names
from ketrag_fast.systems.shared.row_text import row_of, text_of
from ketrag_fast.systems.shared.rows import Arrays, strings
from ketrag_fast.types import Span
from ketrag_fast.types.wording import counted

_SHOWN, _WIDTH = 12, 160


@dataclass(frozen=True, slots=True)
class UnitText:
    """A semantic unit, its number of occurrences, and its sources."""

    text: str
    weight: int
    sources: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class RelationText:
    """A relation to another entity: its text, number of occurrences, and chunks."""

    other: str
    text: str
    weight: int
    chunks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodeEntity:
    """An entity of the graph. `betweenness` is the raw sum over the pivots; `attribute` is None if the
    entity is not important enough; `elements` are (title, text) of its community.
    """

    name: str
    weight: int
    core_number: int
    betweenness: float
    attribute: str | None
    community: int | None
    elements: tuple[tuple[str, str], ...]
    relations: tuple[RelationText, ...]
    units: tuple[UnitText, ...]
    chunks: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the object that `ketrag graph --json` prints."""
        return {"schema": "ketrag/node-entity/1", **asdict(self)}

    def lines(self) -> Iterator[str]:
        """Yield the lines that `ketrag graph` prints."""
        found = ((self.units, "unit"), (self.relations, "relation"), (self.chunks, "chunk"))
        counts = ", ".join(counted(len(values), noun) for values, noun in found)
        yield f"{self.name} (entity of NodeRAG, weight {self.weight:,}): {counts}"
        if self.attribute is not None:
            yield f"attribute: {shorten(self.attribute, 3 * _WIDTH)}"
        for title, text in self.elements[:_SHOWN]:
            yield f"community {self.community}: {title} -- {shorten(text, _WIDTH)}"
        for relation in self.relations[:_SHOWN]:
            yield f"- {shorten(relation.text, _WIDTH)}  (weight {relation.weight:,})"
        if len(self.relations) > _SHOWN:
            yield f"  ... and {len(self.relations) - _SHOWN:,} more (--json lists them all)"
        yield f"named in {counted(len(self.units), 'unit')}:"
        for unit in self.units[:_SHOWN]:
            place = unit.sources[0]
            yield f"  {place.document}[{place.start}:{place.end}] {shorten(unit.text, _WIDTH)}"
        if len(self.units) > _SHOWN:
            yield f"  ... and {len(self.units) - _SHOWN:,} more"


class NodeGraph:
    """The entities of one generation; arrays are mapped on first use."""

    STAGE: Final = "noderag_edges"
    """The stage that must exist."""
    WHAT: Final = "node"

    def __init__(self, generation: Generation) -> None:
        stages = generation.stages
        self._sources = NodeSources(stages)
        self._graph: Arrays = stages["noderag_graph"]
        self._importance: Arrays = stages["noderag_importance"]
        self._attributes: Arrays = stages["noderag_attributes"]
        self._elements: Arrays = stages["noderag_elements"]
        self._community = stages["noderag_communities"]["community"]

    @cached_property
    def _names(self) -> Names:
        return Names(*strings(self._graph, "node_entity"))

    def find(self, name: str) -> NodeEntity | None:
        """Return the entity of a name, ignoring case; None if it does not exist."""
        number = self._names.find(key_of(name))
        if number is None:
            return None
        units = len(self._graph["unit_weight"])
        node = units + number
        shift = units + len(self._graph["entity_weight"])
        around = row_of(self._graph, "mentions", node)
        community = int(self._community[node])
        return NodeEntity(
            name=self._names[number],
            weight=int(self._graph["entity_weight"][number]),
            core_number=int(self._importance["core_number"][node]),
            betweenness=float(self._importance["betweenness"][node]),
            attribute=self._attribute(number),
            community=None if community == NONE else community,
            elements=() if community == NONE else tuple(self._of_community(community)),
            relations=self._relations(number, [other - shift for other in around if other >= shift]),
            units=self._units([other for other in around if other < units]),
            chunks=tuple(row_of(self._graph, "entity_chunks", number)),
        )

    def near(self, name: str) -> list[str]:
        """Return entities with a similar spelling."""
        return self._names.near(name)

    def _attribute(self, entity: int) -> str | None:
        owners = self._attributes["attribute_entity"]
        at = int(np.searchsorted(owners, entity))
        found = at < len(owners) and int(owners[at]) == entity
        return text_of(self._attributes, "attribute", at) if found else None

    def _of_community(self, community: int) -> Iterator[tuple[str, str]]:
        rows = self._elements["element_communities_indices"]
        ends = self._elements["element_communities_indptr"]
        own = {int(np.searchsorted(ends, place, "right")) - 1 for place in np.flatnonzero(rows == community)}
        for title in range(len(self._elements["title_offsets"]) - 1):
            for element in row_of(self._elements, "title_elements", title):
                if element in own:
                    yield text_of(self._elements, "title", title), text_of(self._elements, "element", element)

    def _relations(self, entity: int, numbers: list[int]) -> tuple[RelationText, ...]:
        found = []
        for number in numbers:
            first, last = self._graph["relation_ends"][number].tolist()
            found.append(
                RelationText(
                    other=self._names[last if first == entity else first],
                    text=text_of(self._graph, "node_relation", number),
                    weight=int(self._graph["relation_weight"][number]),
                    chunks=tuple(row_of(self._graph, "relation_chunks", number)),
                )
            )
        return tuple(sorted(found, key=lambda relation: (-relation.weight, relation.other)))

    def _units(self, numbers: list[int]) -> tuple[UnitText, ...]:
        return tuple(
            UnitText(
                text=text_of(self._graph, "semantic_unit", number),
                weight=int(self._graph["unit_weight"][number]),
                sources=self._sources.unit(number).sources,
            )
            for number in numbers
        )
