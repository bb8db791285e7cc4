"""Inspection of one entity of NodeRAG's graph: its attribute, units, relations and community."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast.errors import IndexDamaged, InternalError
from ketrag_fast.records import asdict, dataclass
from ketrag_fast.storage.generation import Generation
from ketrag_fast.storage.io_errors import REPAIR
from ketrag_fast.systems.papers.noderag.communities import NONE
from ketrag_fast.systems.papers.noderag.units import key_of
from ketrag_fast.systems.shared.name_lookup import Names
from ketrag_fast.systems.shared.rows import Arrays, strings
from ketrag_fast.systems.shared.stored_rows import row_of, span_of, text_of
from ketrag_fast.types import Cited, Span
from ketrag_fast.types.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    """The stage that an index needs for this inspection."""
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


MOST: Final = 20
"""The maximum number of sources of a node; an element may have hundreds of chunks."""


def node_sources(
    stages: Mapping[str, Arrays], nodes: Sequence[int], fits: NDArray[np.bool_] | None = None
) -> list[Cited]:
    """Return the kind and the sources of each node: the sentence of a unit, else whole units.

    With a filter, only matching units are cited.
    """
    found = NodeSources(stages, fits)
    return [found.of(node) for node in nodes]


class NodeSources:
    """The nodes of an index with their texts and sources."""

    def __init__(self, stages: Mapping[str, Arrays], fits: NDArray[np.bool_] | None = None) -> None:
        self._stages = stages
        self._fits = fits
        self.units, self.graph = stages["units"], stages["noderag_graph"]
        self.attributes, self.elements = stages["noderag_attributes"], stages["noderag_elements"]
        counts = (
            len(self.units["chunk_document"]),
            len(self.graph["unit_weight"]),
            len(self.attributes["attribute_entity"]),
            len(self.elements["element_offsets"]) - 1,
            len(self.graph["entity_weight"]),
            len(self.elements["title_offsets"]) - 1,
        )
        self.starts = np.concatenate([[0], np.cumsum(counts)])

    def of(self, node: int) -> Cited:
        """Return the sources of a node by its number in the whole graph."""
        kind = int(np.searchsorted(self.starts, node, "right")) - 1
        number = node - int(self.starts[kind])
        if kind == 1:
            return self.unit(number)
        if kind == 2:
            return self._over("attribute", self._left(row_of(self.attributes, "attribute_chunks", number)))
        if kind == 3:
            return self._over("high_level_element", self._left(self._chunks_of_element(number)))
        if kind == 6:
            return self._over("relationship", self._left(row_of(self.graph, "relation_chunks", number)))
        raise InternalError(f"the node {node} is never printed")

    def _left(self, chunks: Sequence[int]) -> Sequence[int]:
        """Return the chunks that pass the filter; all units of a chunk are of one document."""
        if self._fits is None:
            return chunks
        first = self.units["chunk_units"]
        return [chunk for chunk in chunks if self._fits[first[chunk]]]

    def unit(self, number: int) -> Cited:
        """Return the sources of a semantic unit: its sentence if a chunk contains it, else whole units."""
        text = text_of(self.graph, "semantic_unit", number)
        chunks = self._left(row_of(self.graph, "unit_chunks", number))
        found = [place for chunk in chunks[:MOST] for place in self._places(chunk, text)]
        if not found:
            return self._over("semantic_unit", chunks)
        return Cited("semantic_unit", found[0][0], chunks[0], tuple(span for _, span in found))

    def _places(self, chunk: int, text: str) -> list[tuple[int, Span]]:
        """Return the unit of a chunk that contains a sentence, and the offset, ignoring runs of blanks."""
        first, last = self.units["chunk_units"][chunk : chunk + 2].tolist()
        for unit in range(first, last):
            whole = text_of(self.units, "unit_texts", unit)
            begin = whole.find(text)
            if begin >= 0:
                start = len(whole[:begin].encode())
                return [(unit, span_of(self.units, unit, start, start + len(text.encode())))]
        return []

    def _over(self, kind: str, chunks: Sequence[int]) -> Cited:
        """Return the sources of text that was made from whole chunks. Raises IndexDamaged without chunks."""
        if not len(chunks):
            raise IndexDamaged(f"a node of kind {kind} has no chunk", hint=REPAIR)
        first = self.units["chunk_units"][:-1][np.asarray(chunks[:MOST], np.int64)].astype(np.int64)
        units = first.tolist()
        return Cited(kind, units[0], chunks[0], tuple(span_of(self.units, unit) for unit in units))

    def _chunks_of_element(self, element: int) -> list[int]:
        """Return the chunks of its communities' units, those with the most units first."""
        community = self._stages["noderag_communities"]["community"][: len(self.graph["unit_weight"])]
        own = row_of(self.elements, "element_communities", element)
        members = np.flatnonzero(np.isin(community, own)).tolist()
        counts: dict[int, int] = {}
        for unit in members:
            for chunk in row_of(self.graph, "unit_chunks", unit):
                counts[chunk] = counts.get(chunk, 0) + 1
        if not counts:  # a community of attributes alone
            nodes = len(self.graph["mentions_indptr"]) - 1
            every = self._stages["noderag_communities"]["community"][nodes:]
            for number in np.flatnonzero(np.isin(every, own)).tolist():
                for chunk in row_of(self.attributes, "attribute_chunks", number):
                    counts[chunk] = counts.get(chunk, 0) + 1
        return sorted(counts, key=lambda chunk: (-counts[chunk], chunk))
