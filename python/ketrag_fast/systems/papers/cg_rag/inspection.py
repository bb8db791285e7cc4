"""The citation graph for `ketrag graph`, pictures, exports and `ketrag stats`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.records import asdict, dataclass
from ketrag_fast.storage.generation import Generation
from ketrag_fast.systems.papers.cg_rag.candidates import ADJACENT, CITED, CITING, REFERENCE
from ketrag_fast.systems.papers.cg_rag.citations import BY_KEY, GIVEN, LINKED
from ketrag_fast.systems.shared.drawing import join_edges
from ketrag_fast.systems.shared.graph_columns import I64, constant, owners, texts_at
from ketrag_fast.systems.shared.name_lookup import Names
from ketrag_fast.systems.shared.rows import Arrays, csr, documents_of, lengths, strings, unit_owners
from ketrag_fast.systems.shared.stored_rows import row_of, text_of
from ketrag_fast.systems.spec.drawing import Column, DrawableGraph, GraphTables, NodeBlock
from ketrag_fast.types.wording import counted

_SHOWN: Final = 20
_LISTED: Final = 50
SOURCES: Final = {GIVEN: "metadata", LINKED: "link", BY_KEY: "bibliography"}
EDGES: Final = {CITED: "cites", CITING: "is cited by", REFERENCE: "refers to", ADJACENT: "follows"}


@dataclass(frozen=True, slots=True)
class CitationEdge:
    """Another document, and the source of the citation: metadata, a link, a bibliography key."""

    document: str
    title: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tie:
    """An edge of the graph: `unit` receives messages from `sender`, a text of `document`, for `reasons`."""

    unit: int
    start: int
    sender: int
    document: str
    kinds: tuple[str, ...]
    alpha: float
    relevance: float


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A document of the graph; `unresolved` are its citations that match no document."""

    document: str
    title: str
    cites: tuple[CitationEdge, ...]
    cited_by: tuple[CitationEdge, ...]
    unresolved: tuple[str, ...]
    units: int
    ties: tuple[Tie, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the object that `ketrag graph --json` prints."""
        return {"schema": "ketrag/cited-document/1", **asdict(self)}

    def lines(self) -> Iterator[str]:
        """Yield the lines that `ketrag graph` prints."""
        title = f" {self.title}" if self.title else ""
        counts = f"{counted(self.units, 'unit')}, {counted(len(self.ties), 'edge')} into them"
        yield f"{self.document}{title} (document): {counts}"
        for told, listed in (("cites", self.cites), ("is cited by", self.cited_by)):
            yield f"{told} {len(listed):,}:" if listed else f"{told} nothing"
            for other in listed[:_SHOWN]:
                yield f"- {other.document}  {other.title}  ({', '.join(other.sources)})"
            if len(listed) > _SHOWN:
                yield f"  ... and {len(listed) - _SHOWN:,} more (--json lists them all)"
        if self.unresolved:
            lead = "leads" if len(self.unresolved) == 1 else "lead"
            yield f"{counted(len(self.unresolved), 'citation')} {lead} to no document:"
            yield from (f"- {text}" for text in self.unresolved[:_SHOWN])
        if self.ties:
            yield "its units hear from:"
        for tie in sorted(self.ties, key=lambda tie: (-tie.alpha, tie.unit, tie.sender))[:_SHOWN]:
            yield (
                f"- [{tie.start}:] {' and '.join(tie.kinds)} {tie.document} (unit {tie.sender})"
                f"  alpha {tie.alpha:.3f}"
            )
        if len(self.ties) > _SHOWN:
            yield f"  ... and {len(self.ties) - _SHOWN:,} more"


class CitationGraph:
    """The citations of one generation; arrays are mapped on first use."""

    STAGE: Final = "citation_graph"
    """The stage that an index needs for this inspection."""
    WHAT: Final = "document"

    def __init__(self, generation: Generation) -> None:
        stages = generation.stages
        self._units, self._citations = stages["units"], stages["citations"]
        self._graph = stages["citation_graph"]

    @cached_property
    def _ids(self) -> Names:
        return Names(*strings(self._units, "document_ids"), case=str)

    @cached_property
    def _titles(self) -> Names:
        return Names(*strings(self._units, "document_titles"), case=str)

    def find(self, name: str) -> CitedDocument | None:
        """Return the document of an id, else the first of a title; None if neither exists."""
        found = self._ids.find(name)
        found = self._titles.find(name) if found is None else found
        return None if found is None else self._shown(int(self._rows[0][found]))

    def near(self, name: str) -> list[str]:
        """Return similar ids."""
        return self._ids.near(name)

    def _shown(self, number: int) -> CitedDocument:
        indptr, indices = self._citations["cites_indptr"], self._citations["cites_indices"]
        places = np.flatnonzero(indices == number)
        citing = np.searchsorted(indptr, places.astype(np.uint64), "right") - 1
        own = range(int(indptr[number]), int(indptr[number + 1]))
        lost = np.flatnonzero(self._citations["unresolved_document"] == number).tolist()
        units = np.flatnonzero(self._rows[0][self._units["unit_document"]] == number).tolist()
        return CitedDocument(
            document=self._id(number),
            title=self._title(number),
            cites=tuple(self._citation(int(indices[at]), at) for at in own),
            cited_by=tuple(
                self._citation(by, at) for by, at in zip(citing.tolist(), places.tolist(), strict=True)
            ),
            unresolved=tuple(text_of(self._citations, "unresolved", at) for at in lost),
            units=len(units),
            ties=tuple(tie for unit in units for tie in self._ties(unit)),
        )

    def _id(self, number: int) -> str:
        return text_of(self._units, "document_ids", int(self._rows[1][number]))

    def _title(self, number: int) -> str:
        return text_of(self._units, "document_titles", int(self._rows[1][number]))

    @cached_property
    def _rows(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        return documents_of(self._units)

    def _citation(self, other: int, at: int) -> CitationEdge:
        bits = int(self._citations["cite_source"][at])
        return CitationEdge(self._id(other), self._title(other), _kind_names(bits, SOURCES))

    def _ties(self, unit: int) -> Iterator[Tie]:
        first = int(self._graph["edges_indptr"][unit])
        for at, sender in enumerate(row_of(self._graph, "edges", unit), first):
            yield Tie(
                unit=unit,
                start=int(self._units["unit_span"][unit, 0]),
                sender=sender,
                document=self._id(int(self._rows[0][self._units["unit_document"][sender]])),
                kinds=_kind_names(int(self._graph["edge_kind"][at]), EDGES),
                alpha=float(self._graph["edge_alpha"][at]),
                relevance=float(self._graph["edge_relevance"][at]),
            )


def _kind_names(bits: int, names: Mapping[int, str]) -> tuple[str, ...]:
    return tuple(name for bit, name in names.items() if bits & bit)


def details(stages: Mapping[str, Arrays]) -> dict[str, Any]:
    """Return rows of `ketrag stats` from the arrays: edges by kind, and unresolved citations."""
    if "citation_graph" not in stages or "citations" not in stages:
        return {}
    kinds, citations = stages["citation_graph"]["edge_kind"], stages["citations"]
    itself, lost, repeated = citations["counts"].tolist()
    owners = documents_of(stages["units"])[1][citations["unresolved_document"][:_LISTED]].tolist()
    return {
        "edges_by_kind": {
            "adjacent": int((kinds & ADJACENT != 0).sum()),
            "reference": int((kinds & REFERENCE != 0).sum()),
            "cited_to_citing": int((kinds & CITED != 0).sum()),
            "citing_to_cited": int((kinds & CITING != 0).sum()),
        },
        "documents_that_cite": int((lengths(citations["cites_indptr"]) > 0).sum()),
        "citations_of_itself": itself,
        "references_without_a_label": lost,
        "labels_defined_again": repeated,
        "unresolved": [
            {
                "document": text_of(stages["units"], "document_ids", owner),
                "citation": text_of(citations, "unresolved", at),
            }
            for at, owner in enumerate(owners)
        ],
    }


def caution(stages: Mapping[str, Arrays]) -> str | None:
    """Return a warning if the graph has no edges."""
    graph = stages["citation_graph"]
    if not len(graph["edge_kind"]):
        return "the graph of citations has no edge: units are ranked by their vectors and words alone"
    return None


def read_citations(stages: dict[str, Arrays]) -> DrawableGraph:
    """Return documents and their citations."""
    units, citations = stages["units"], stages["citations"]
    owners, rows = documents_of(units)
    ids, titles = (Names(*strings(units, name), case=str) for name in ("document_ids", "document_titles"))

    def title(number: int) -> str:
        row = int(rows[number])
        return text_of(units, "document_titles", row) or text_of(units, "document_ids", row)

    def find(name: str) -> list[int]:
        found = [row for row in (ids.find(name), titles.find(name)) if row is not None]
        return sorted({int(owners[row]) for row in found})

    def near(name: str) -> list[str]:
        return titles.near(name) or ids.near(name)

    return join_edges(
        (NodeBlock("document", len(rows), title, find, near, inspects="document"),),
        [(0, 0, csr(citations, "cites"), 1.0)],
        of_units=lambda found: np.unique(owners[units["unit_document"][found]]).astype(np.int64),
        edge="cites",
    )


def citation_tables(stages: Mapping[str, Arrays]) -> GraphTables:
    """Return the documents, and their citations as edges."""
    units, arrays = stages["units"], stages["citations"]
    indptr, indices = csr(arrays, "cites")
    count = len(indptr) - 1
    first_row = documents_of(units)[1].astype(np.int64)
    ends = np.searchsorted(unit_owners(units), np.arange(count + 1))

    def units_of(rows: I64) -> list[list[int]]:
        pairs = zip(ends[rows].tolist(), ends[rows + 1].tolist(), strict=True)
        return [list(range(first, last)) for first, last in pairs]

    def origins(rows: I64) -> list[str]:
        flags = arrays["cite_source"][rows].tolist()
        return [", ".join(name for bit, name in SOURCES.items() if bit & value) for value in flags]

    return GraphTables(
        kinds=("document",),
        kind=constant(count),
        nodes={
            "name": Column("text", lambda rows: texts_at(strings(units, "document_ids"), first_row[rows])),
            "title": Column(
                "text", lambda rows: texts_at(strings(units, "document_titles"), first_row[rows])
            ),
            "units": Column("ids", units_of),
        },
        relations=("cites",),
        relation=constant(len(indices)),
        source=owners(indptr),
        target=indices,
        edges={"origin": Column("text", origins)},
        directed=True,
        unique_names=True,
    )
