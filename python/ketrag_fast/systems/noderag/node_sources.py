"""The sources of a node: the sentences or chunks that its text comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ketrag_fast.errors import IndexDamaged, InternalError
from ketrag_fast.storage.file_records import REPAIR
from ketrag_fast.systems.shared.row_text import row_of, span_of, text_of
from ketrag_fast.systems.shared.rows import Arrays
from ketrag_fast.types import Cited, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
