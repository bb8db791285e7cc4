"""The forms in which the graphs of a system are drawn and exported.

An export reads a graph as two tables, nodes and edges, in slices of rows. Node `i` is row `i` of the node
table, and an undirected edge is listed once. Columns with these names mean the same in every graph: nodes
have a "name", and may have a "type", a "description" and "units" (the numbers of the units that they come
from); edges may have a "weight", a "description" and "units".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from ketrag_fast.records import dataclass, field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

PASSAGE: Final = "passage"
"""The kind of nodes that are units of the index."""


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


ColumnType = Literal["text", "int", "float", "ids"]
"""The type of a value: str, int, float, or a list of int."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `read` returns the values of some rows, given by their numbers, in this order.

    Examples:
        >>> names = ["fram", "maud"]
        >>> Column("text", lambda rows: [names[row] for row in rows]).read([1])
        ['maud']
    """

    type: ColumnType
    read: Callable[[Rows], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class GraphTables:
    """The nodes and edges of one graph.

    Attributes:
        kinds: the kinds of nodes.
        kind: the position in `kinds` of the kind of each node; its length is the number of nodes.
        nodes: columns of the nodes; "name" is required.
        relations: the kinds of edges.
        relation: the position in `relations` of the kind of each edge.
        source, target: the ends of each edge, by node number.
        edges: columns of the edges.
        directed: whether edges have a direction.
        unique_names: whether no two nodes have the same name.
        communities: the community of each node, `NO_COMMUNITY` for none; None if they are not stored.

    Examples:
        >>> import numpy as np
        >>> name = Column("text", lambda rows: [["fram", "maud"][row] for row in rows])
        >>> ends = np.array([[0], [1]], np.uint32)
        >>> kind, relation = np.zeros(2, np.uint8), np.zeros(1, np.uint8)
        >>> tables = GraphTables(("ship",), kind, {"name": name}, ("met",), relation, ends[0], ends[1], {})
        >>> len(tables), tables.nodes["name"].read([0])
        (2, ['fram'])
    """

    kinds: tuple[str, ...]
    kind: NDArray[np.uint8]
    nodes: Mapping[str, Column]
    relations: tuple[str, ...]
    relation: NDArray[np.uint8]
    source: NDArray[np.uint32]
    target: NDArray[np.uint32]
    edges: Mapping[str, Column]
    directed: bool = False
    unique_names: bool = False
    communities: NDArray[np.uint32] | None = None

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.kind)


NO_COMMUNITY = 2**32 - 1
