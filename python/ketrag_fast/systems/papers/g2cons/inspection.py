"""The concept graph for `ketrag graph`, pictures and exports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from textwrap import shorten
from typing import Any, Final
from unicodedata import normalize

import numpy as np

from ketrag_fast.records import asdict, dataclass
from ketrag_fast.storage.generation import Generation
from ketrag_fast.systems.shared.drawing import join_edges, rows_with
from ketrag_fast.systems.shared.graph_columns import constant, ids_column, number_column, once
from ketrag_fast.systems.shared.rows import Arrays, csr
from ketrag_fast.systems.shared.stored_rows import row_of, span_of
from ketrag_fast.systems.shared.word_forms import WordForms
from ketrag_fast.systems.spec.drawing import Column, DrawableGraph, GraphTables, NodeBlock
from ketrag_fast.types import Span
from ketrag_fast.types.wording import counted

_SHOWN, _NEAR, _WIDTH = 20, 5, 160


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour in the concept graph: Dice weight, number of shared chunks, and cosine."""

    name: str
    weight: float
    shared: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Concept:
    """A node of the concept graph, with its neighbours, strongest first, and the chunks and units it is in.

    `rank` is its importance if concepts selected the core chunks, else None.
    """

    name: str
    rank: float | None
    neighbours: tuple[Neighbour, ...]
    chunks: tuple[int, ...]
    units: tuple[Span, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the object that `ketrag graph --json` prints."""
        return {"schema": "ketrag/concept/1", **asdict(self)}

    def lines(self) -> Iterator[str]:
        """Yield the lines that `ketrag graph` prints."""
        rank = "" if self.rank is None else f", rank {self.rank:.3g}"
        neighbours, chunks = counted(len(self.neighbours), "neighbour"), counted(len(self.chunks), "chunk")
        yield f"{self.name} (concept): {neighbours}, {chunks}{rank}"
        for near in self.neighbours[:_SHOWN]:
            yield (
                f"- {near.name}  (weight {near.weight:.3f}: {counted(near.shared, 'chunk')} together, "
                f"cosine {near.cosine:.3f})"
            )
        if len(self.neighbours) > _SHOWN:
            yield f"  ... and {len(self.neighbours) - _SHOWN:,} more (--json lists them all)"
        yield f"in {counted(len(self.units), 'unit')}:"
        for span in self.units[:_SHOWN]:
            yield f"  {span.document}[{span.start}:{span.end}] {shorten(span.text, _WIDTH)}"
        if len(self.units) > _SHOWN:
            yield f"  ... and {len(self.units) - _SHOWN:,} more"


class ConceptInspector:
    """The concepts of one generation; arrays are mapped on first use."""

    STAGE: Final = "concept_graph"
    """The stage that an index needs for this inspection."""
    WHAT: Final = "concept"

    def __init__(self, generation: Generation) -> None:
        stages = generation.stages
        self._units, self._words = stages["units"], stages["words"]
        self._concepts, self._graph = stages["concepts"], stages["concept_graph"]
        self._ranks = stages["core_concept"]["concept_rank"] if "core_concept" in stages else None

    @cached_property
    def _forms(self) -> WordForms:
        return WordForms(self._units, self._words)

    def find(self, name: str) -> Concept | None:
        """Return the concept of a term, ignoring case; None if it does not exist."""
        number = self._known(name)
        if number is None:
            return None
        row = slice(*self._graph["edges_indptr"][number : number + 2].tolist())
        edges = zip(
            self._graph["edges_indices"][row].tolist(),
            self._graph["edge_weight"][row].tolist(),
            self._graph["edge_shared"][row].tolist(),
            self._graph["edge_cosine"][row].tolist(),
            strict=True,
        )
        strongest = sorted(edges, key=lambda edge: (-edge[1], edge[0]))
        return Concept(
            name=self._name(number),
            rank=None if self._ranks is None else float(self._ranks[number]),
            neighbours=tuple(Neighbour(self._name(to), *edge) for to, *edge in strongest),
            chunks=self._chunks(number),
            units=tuple(
                span_of(self._units, unit) for unit in row_of(self._concepts, "concept_units", number)
            ),
        )

    def near(self, name: str) -> list[str]:
        """Return concepts with a similar spelling."""
        known = self._forms.near(normalize("NFKC", name))
        return [word for word in known if self._known(word) is not None][:_NEAR]

    def _known(self, name: str) -> int | None:
        """Return the first concept among the possible spellings of a name."""
        numbers = map(self._number, self._forms.find(normalize("NFKC", name)))
        return next((number for number in numbers if number is not None), None)

    def _number(self, word: int) -> int | None:
        words = self._concepts["concept_word"]
        at = int(np.searchsorted(words, np.uint32(word)))
        return at if at < len(words) and int(words[at]) == word else None

    def _name(self, concept: int) -> str:
        return self._forms[int(self._concepts["concept_word"][concept])]

    def _chunks(self, concept: int) -> tuple[int, ...]:
        """Return the chunks that contain a concept."""
        places = np.flatnonzero(self._concepts["chunk_concepts_indices"] == concept)
        chunks = np.searchsorted(self._concepts["chunk_concepts_indptr"], places.astype(np.uint64), "right")
        return tuple((chunks - 1).tolist())


def read_concepts(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return concepts, and edges with their Dice weights."""
    concepts, graph = stages["concepts"], stages["concept_graph"]
    words = WordForms(stages["units"], stages["words"])
    number = concepts["concept_word"]  # ascending

    def find(name: str) -> list[int]:
        known = np.array(words.find(name), np.uint32)
        return np.flatnonzero(np.isin(number, known)).tolist() if len(known) else []

    def near(name: str) -> list[str]:
        return [word for word in words.near(name) if find(word)]

    block = NodeBlock(
        "concept",
        len(number),
        lambda concept: words[int(number[concept])],
        find,
        near,
        inspects="concept",
    )
    return join_edges(
        (block,),
        [(0, 0, csr(graph, "edges"), graph["edge_weight"])],
        of_units=lambda units: rows_with(concepts, "concept_units", units),
        edge="shares chunks",
        both_ways=True,
    )


def concept_tables(stages: Mapping[str, Arrays]) -> GraphTables:
    """Return the concepts and the pairs that share chunks and meaning."""
    graph, kept = stages["concept_graph"], stages["concepts"]
    words = kept["concept_word"].astype(np.int64)
    forms = WordForms(stages["units"], stages["words"])
    indptr, indices = csr(graph, "edges")
    places, first = once(indptr, indices)
    nodes = {
        "name": Column("text", lambda rows: forms.spell(words[rows].tolist())),
        "units": ids_column(kept, "concept_units"),
    }
    if "core_concept" in stages:
        nodes["rank"] = number_column(stages["core_concept"]["concept_rank"])
    return GraphTables(
        kinds=("concept",),
        kind=constant(len(words)),
        nodes=nodes,
        relations=("together",),
        relation=constant(len(places)),
        source=first,
        target=indices[places],
        edges={
            "weight": number_column(graph["edge_weight"][places]),
            "shared_chunks": number_column(graph["edge_shared"][places]),
            "cosine": number_column(graph["edge_cosine"][places]),
        },
        unique_names=not forms.has_stems,
    )
