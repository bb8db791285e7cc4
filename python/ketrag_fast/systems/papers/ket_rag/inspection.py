"""The skeleton, the keyword graph and the KNN graph for `ketrag graph`, pictures and exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

import numpy as np

from ketrag_fast.storage.generation import Generation
from ketrag_fast.systems.shared.drawing import join_edges, name_block, passage_block, rows_with
from ketrag_fast.systems.shared.graph_columns import constant, ids_column, number_column, text_column
from ketrag_fast.systems.shared.name_lookup import Names
from ketrag_fast.systems.shared.rows import Arrays, csr, lengths
from ketrag_fast.systems.shared.stored_rows import row_of, span_of, text_of
from ketrag_fast.systems.shared.word_forms import WordForms
from ketrag_fast.systems.spec.drawing import DrawableGraph, GraphTables, NodeBlock
from ketrag_fast.types import Entity, Relation, Span


class Skeleton:
    """The entities and relations of one generation; arrays are mapped on first use."""

    STAGE: Final = "skeleton"
    """The stage that an index needs for this inspection."""
    WHAT: Final = "entity"

    def __init__(self, generation: Generation) -> None:
        self._arrays: Arrays = generation.stages["skeleton"]
        self._units: Arrays = generation.stages["units"]

    @cached_property
    def names(self) -> Names:
        """The names of all entities, in upper case, by id."""
        return Names(self._arrays["entity_name_blob"], self._arrays["entity_name_offsets"])

    def find(self, name: str) -> Entity | None:
        """Return the entity of a name, ignoring case; None if it does not exist."""
        number = self.names.find(name)
        if number is None:
            return None
        starts, ends = (self._arrays[f"relation_{end}"] == number for end in ("source", "target"))
        touching = np.flatnonzero(starts | ends).tolist()
        weights = self._arrays["relation_weight"]
        touching.sort(key=lambda relation: (-float(weights[relation]), relation))
        return Entity(
            name=self.names[number],
            type=self._text("entity_type", number),
            description=self._text("entity_description", number),
            rank=int(self._arrays["entity_rank"][number]),
            chunks=tuple(row_of(self._arrays, "entity_chunks", number)),
            relations=tuple(self._relation(relation) for relation in touching),
            sources=self._sentences(self._mentions(number)),
        )

    def near(self, name: str) -> list[str]:
        """Return similar names."""
        return list(self.names.near(name))

    def _relation(self, number: int) -> Relation:
        source, target = (int(self._arrays[f"relation_{end}"][number]) for end in ("source", "target"))
        return Relation(
            source=self.names[source],
            target=self.names[target],
            description=self._text("relation_description", number),
            weight=float(self._arrays["relation_weight"][number]),
            rank=int(self._arrays["relation_rank"][number]),
            sources=self._joined(number, source, target),
        )

    def _joined(self, relation: int, source: int, target: int) -> tuple[Span, ...]:
        """Return the sentences of a relation's chunks that name both ends, else one end, else its units."""
        units = set(row_of(self._arrays, "relation_units", relation))
        one, other = (dict(self._places(self._mentions(end, units))) for end in (source, target))
        both = [span for place, span in one.items() if place in other]
        if both:
            return tuple(both)
        either = {**one, **other}
        if either:
            return tuple(either[place] for place in sorted(either))
        return tuple(self._span(unit, 0, None) for unit in sorted(units))

    def _mentions(self, entity: int, units: set[int] | None = None) -> list[tuple[int, int]]:
        """Return (unit, start in code points of the document) of each mention of the entity."""
        owners = self._arrays["mention_entity"]  # ascending
        first, last = np.searchsorted(owners, np.array([entity, entity + 1], owners.dtype))
        places = zip(
            self._arrays["mention_unit"][first:last].tolist(),
            self._arrays["mention_start"][first:last].tolist(),
            strict=True,
        )
        return [(unit, start) for unit, start in places if units is None or unit in units]

    def _sentences(self, mentions: Iterable[tuple[int, int]]) -> tuple[Span, ...]:
        return tuple(span for _, span in self._places(mentions))

    def _places(self, mentions: Iterable[tuple[int, int]]) -> list[tuple[tuple[int, int], Span]]:
        """Return each sentence once with its (unit, start), in text order."""
        found: dict[tuple[int, int], Span] = {}
        for unit, start in mentions:
            span = self._sentence(unit, start)
            found[unit, span.start] = span
        return sorted(found.items())

    def _sentence(self, unit: int, place: int) -> Span:
        text = self._unit_text(unit)
        begin = int(self._units["unit_span"][unit, 0])
        at = len(text[: max(place - begin, 0)].encode())
        offset = int(self._units["unit_bytes"][unit, 0])
        for first, last in self._sentence_bytes(unit):
            if first - offset <= at < last - offset:
                return self._span(unit, max(first - offset, 0), last - offset)
        return self._span(unit, 0, None)

    def _sentence_bytes(self, unit: int) -> list[tuple[int, int]]:
        """The spans of a unit's sentences, titles apart, in bytes of the document."""
        owners, titles = self._units["sent_unit"], self._units["sent_title"]
        start, end = np.searchsorted(owners, [unit, unit + 1])
        rows = self._units["sent_bytes"][start:end][titles[start:end] == 0]
        return [(int(first), int(last)) for first, last in rows]

    def _span(self, unit: int, first: int, last: int | None) -> Span:
        return span_of(self._units, unit, first, last)

    def _unit_text(self, unit: int) -> str:
        return text_of(self._units, "unit_texts", unit)

    def _text(self, name: str, number: int) -> str:
        return text_of(self._arrays, name, number)


def read_skeleton(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return entities, with their types as kinds, and relations, with their weights."""
    skeleton = stages["skeleton"]

    def kind(number: int) -> str:
        return text_of(skeleton, "entity_type", number).lower() or "entity"

    return DrawableGraph(
        (name_block(kind, skeleton, "entity_name", str.upper, inspects="entity"),),
        skeleton["relation_source"],
        skeleton["relation_target"],
        np.maximum(skeleton["relation_weight"], 1e-6),
        lambda units: rows_with(skeleton, "entity_units", units),
        "relation",
    )


def read_keywords(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return keywords linked to the passages that contain them; rare keywords have greater weight."""
    units, words = stages["units"], stages["words"]
    passages, forms = passage_block(units), WordForms(units, words)
    rows = csr(words, "unit_words")
    count = lengths(csr(words, "word_units")[0])
    rarity = np.log1p(passages.count / np.maximum(count, 1))
    return join_edges(
        (passages, NodeBlock("keyword", len(forms), forms.__getitem__, forms.find, forms.near)),
        [(0, passages.count, rows, rarity)],
        of_units=lambda found: found,
        edge="contains",
    )


def read_knn(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return chunks and their nearest neighbours; a chunk stands for its first unit."""
    units, knn = stages["units"], stages["knn"]
    name = "graph" if "graph_indptr" in knn else "unit_graph"
    indptr, indices = csr(knn, name)
    nodes, first = len(indptr) - 1, units["chunk_units"].astype(np.int64)
    of_chunks = nodes == len(first) - 1
    rows = first[:-1] if of_chunks else np.arange(nodes)
    owner = units["unit_chunk"].astype(np.int64) if of_chunks else np.arange(nodes)
    return join_edges(
        (passage_block(units, rows),),
        [(0, 0, (indptr, indices), 1.0)],
        of_units=lambda found: np.unique(owner[found]),
        edge="near",
        both_ways=True,
    )


def skeleton_tables(stages: Mapping[str, Arrays]) -> GraphTables:
    """Return the entities and their relations."""
    arrays = stages["skeleton"]
    return GraphTables(
        kinds=("entity",),
        kind=constant(len(arrays["entity_rank"])),
        nodes={
            "name": text_column(arrays, "entity_name"),
            "type": text_column(arrays, "entity_type"),
            "description": text_column(arrays, "entity_description"),
            "units": ids_column(arrays, "entity_units"),
        },
        relations=("related",),
        relation=constant(len(arrays["relation_source"])),
        source=arrays["relation_source"],
        target=arrays["relation_target"],
        edges={
            "description": text_column(arrays, "relation_description"),
            "weight": number_column(arrays["relation_weight"]),
            "units": ids_column(arrays, "relation_units"),
        },
        unique_names=True,
    )
