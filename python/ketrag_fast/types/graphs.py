"""Drawings of a part of a graph: nodes with positions, edges, and the size of the whole graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ketrag_fast.records import asdict, dataclass
from ketrag_fast.types.documents import Span
from ketrag_fast.types.wording import counted


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node in a drawing of a graph.

    Attributes:
        id: the node's number in the graph of this generation.
        kind: passage, name, entity, ...
        title: the node's name, or the title of its document, cut after 500 characters.
        weight: the number of the node's edges in the whole graph.
        community: the number of the node's community among the drawn nodes; 0 is the largest.
        x, y: coordinates, from -1 to 1.
        unit: the unit number (`Passage.unit`) of a passage node; None for other nodes.
        inspects: the kind to pass to `index.inspect.node` for this node; None if it cannot be inspected.
        seed: whether the drawing is centred on this node.

    Examples:
        >>> GraphNode(7, "name", "fram", weight=3, community=0, x=0.0, y=0.0).seed
        False
    """

    id: int
    kind: str
    title: str
    weight: int
    community: int
    x: float
    y: float
    unit: int | None = None
    inspects: str | None = None
    seed: bool = False


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge between two drawn nodes, by their positions in `GraphView.nodes`.

    Examples:
        >>> edge = GraphEdge(0, 1, "mentions", 1.5)
        >>> edge.source, edge.target
        (0, 1)
    """

    source: int
    target: int
    kind: str
    weight: float


@dataclass(frozen=True, slots=True)
class GraphView:
    """A drawing of a graph or a part of it.

    Attributes:
        graph: the name of the graph.
        nodes: the drawn nodes, the most important first.
        edges: the drawn edges between them.
        total_nodes, total_edges: the size of the whole graph.
        kinds: the number of nodes of each kind in the whole graph if that is known without
            reading every node, otherwise among the drawn nodes.
        generation: the generation of the index.
        path: the indices in `nodes` of the requested path, from start to end.

    Examples:
        >>> node = GraphNode(7, "name", "fram", weight=3, community=0, x=0.0, y=0.0)
        >>> view = GraphView("walk", (node,), (), 824, 1410, {"name": 712, "passage": 112}, generation=1)
        >>> view.truncated, view.to_json()["returned"]
        (True, {'nodes': 1, 'edges': 0})
    """

    graph: str
    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    total_nodes: int
    total_edges: int
    kinds: dict[str, int]
    generation: int
    path: tuple[int, ...] = ()

    @property
    def truncated(self) -> bool:
        """True if the graph has nodes or edges that are not drawn."""
        return len(self.nodes) < self.total_nodes or len(self.edges) < self.total_edges

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form in columns, which is a third of the size of a list of objects."""
        drawn = {node.kind for node in self.nodes}
        kinds = [kind for kind in self.kinds if kind in drawn]  # the same order in every drawing of a graph
        edge_kinds = list(dict.fromkeys(edge.kind for edge in self.edges))
        number = {kind: at for at, kind in enumerate(kinds)}
        edge_number = {kind: at for at, kind in enumerate(edge_kinds)}
        return {
            "schema": "ketrag/graph-view/1",
            "graph": self.graph,
            "generation": self.generation,
            "returned": {"nodes": len(self.nodes), "edges": len(self.edges)},
            "total": {"nodes": self.total_nodes, "edges": self.total_edges},
            "truncated": self.truncated,
            "path": list(self.path),
            "counts": self.kinds,
            "kinds": kinds,
            "edge_kinds": edge_kinds,
            "nodes": {
                "id": [node.id for node in self.nodes],
                "kind": [number[node.kind] for node in self.nodes],
                "title": [node.title for node in self.nodes],
                "weight": [node.weight for node in self.nodes],
                "community": [node.community for node in self.nodes],
                "x": [round(node.x, 5) for node in self.nodes],
                "y": [round(node.y, 5) for node in self.nodes],
                "unit": [node.unit for node in self.nodes],
                "inspects": [node.inspects for node in self.nodes],
                "seed": [at for at, node in enumerate(self.nodes) if node.seed],
            },
            "edges": {
                "source": [edge.source for edge in self.edges],
                "target": [edge.target for edge in self.edges],
                "kind": [edge_number[edge.kind] for edge in self.edges],
                "weight": [round(edge.weight, 4) for edge in self.edges],
            },
        }


@dataclass(frozen=True, slots=True)
class Relation:
    """An undirected relation between two entities, its strength, and the sentences that state it.

    Examples:
        >>> index.inspect.entity("Fram").relations[0].target
        'NANSEN'
    """

    source: str
    target: str
    description: str
    weight: float
    rank: int
    sources: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of a graph of entities. `rank` is the number of its relations, which are sorted strongest first.

    `chunks` are the chunks from which it was extracted, `sources` the sentences that name it.

    Examples:
        >>> entity = index.inspect.entity("Fram")
        >>> entity.name, entity.rank
        ('FRAM', 1)
    """

    name: str
    type: str
    description: str
    rank: int
    chunks: tuple[int, ...]
    relations: tuple[Relation, ...]
    sources: tuple[Span, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that `ketrag graph --json` prints."""
        return {"schema": "ketrag/entity/1", **asdict(self)}

    def lines(self) -> Iterator[str]:
        """Yield the lines that `ketrag graph` prints: the strongest relations, and some sentences of each."""
        kind = f" ({self.type.lower()})" if self.type else ""
        relations, chunks = counted(len(self.relations), "relation"), counted(len(self.chunks), "chunk")
        yield f"{self.name}{kind}: {relations}, {chunks}"
        yield from (f"  {line}" for line in self.description.splitlines())
        for relation in self.relations[:_SHOWN]:
            yield f"- {relation.source} -- {relation.target}  (strength {relation.weight:g})"
            yield from (f"    {line}" for line in relation.description.splitlines())
            yield from _quote_spans(relation.sources, "    ", _SENTENCES)
        if len(self.relations) > _SHOWN:
            yield f"  ... and {len(self.relations) - _SHOWN:,} more (--json lists them all)"
        yield f"named in {counted(len(self.sources), 'sentence')}:"
        yield from _quote_spans(self.sources, "  ", _SHOWN)


_SHOWN, _SENTENCES = 20, 3


def _quote_spans(spans: Sequence[Span], indent: str, shown: int) -> Iterator[str]:
    for span in spans[:shown]:
        yield f"{indent}{span.document}[{span.start}:{span.end}] {' '.join(span.text.split())}"
    if len(spans) > shown:
        yield f"{indent}... and {len(spans) - shown:,} more"
