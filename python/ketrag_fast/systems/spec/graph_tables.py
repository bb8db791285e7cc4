"""A graph as two tables, nodes and edges, whose rows are read in slices by exports and viewers.

Node `i` is row `i` of the node table. An undirected edge is listed once. Columns with these names mean the
same in every graph: nodes have a "name", and may have a "type", a "description" and "units" (the numbers of
the units that they come from); edges may have a "weight", a "description" and "units".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

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
