"""Declaration of a system's graphs, and the form in which they are drawn and exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PASSAGE: Final = "passage"
"""The kind of nodes that are units of the index."""


@dataclass(frozen=True, slots=True)
class GraphSource:
    """A graph that a system stores: `index.inspect.graph` draws it, `ketrag export` writes it.

    Attributes:
        name: the name of the graph.
        stages: the stages that must exist.
        help: one line: its nodes and edges.
        add: the command that adds the graph to an index.
        read: "module:function": from the arrays of all stages to a `DrawableGraph`.
        tables: "module:function": from the arrays of all stages to `GraphTables`, with descriptions and
            sources; without it, exports have the names, kinds and weights of the drawable graph.
        order: position in lists; the first graph that an index has is the default.

    Examples:
        >>> add = "ketrag index --modes auto,mine"
        >>> source = GraphSource("mine", ("units", "mine"), "things", add, read="my_package:read")
        >>> source.tables is None  # exports have the names, kinds and weights of the drawable graph
        True
    """

    name: str
    stages: tuple[str, ...]
    help: str
    add: str
    read: str
    tables: str | None = None
    order: int = 100


@dataclass(frozen=True, slots=True)
class NodeBlock:
    """Nodes of a graph with consecutive numbers.

    Attributes:
        kind: the kind of each node: one for all, or a function of its number in the block.
        count: the number of nodes.
        title: returns the title of a node.
        find: returns the numbers of the nodes with a name, in any case.
        near: returns similar names.
        unit: returns the unit that a node is, if it is one.
        inspects: the kind that `index.inspect.node` finds these nodes under; None if it does not.

    Examples:
        >>> names = ["fram", "maud"]
        >>> block = NodeBlock("ship", 2, names.__getitem__, lambda name: [names.index(name)], lambda name: [])
        >>> block.title(block.find("maud")[0])
        'maud'
    """

    kind: str | Callable[[int], str]
    count: int
    title: Callable[[int], str]
    find: Callable[[str], list[int]]
    near: Callable[[str], list[str]]
    unit: Callable[[int], int] | None = None
    inspects: str | None = None


@dataclass(frozen=True, slots=True)
class DrawableGraph:
    """An undirected graph: blocks of nodes, numbered one after the other, and weighted edges.

    Attributes:
        blocks: the nodes.
        sources, targets: u32[edges], the ends of edges; repeated edges are added up.
        weights: f64[edges], positive.
        of_units: returns the nodes that belong to units, the closest first.
        edge: the kind of an edge.
        edges_between: kinds of edges by the numbers of the two blocks, the smaller first, if they differ.

    Examples:
        >>> import numpy as np
        >>> ships = NodeBlock("ship", 2, ["fram", "maud"].__getitem__, lambda name: [], lambda name: [])
        >>> ends = np.array([[0], [1]], np.uint32)
        >>> graph = DrawableGraph((ships,), ends[0], ends[1], np.ones(1), lambda units: units, "met")
        >>> sum(block.count for block in graph.blocks), len(graph.sources)
        (2, 1)
    """

    blocks: tuple[NodeBlock, ...]
    sources: NDArray[np.uint32]
    targets: NDArray[np.uint32]
    weights: NDArray[np.float64]
    of_units: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    edge: str
    edges_between: Mapping[tuple[int, int], str] = field(default_factory=dict)
