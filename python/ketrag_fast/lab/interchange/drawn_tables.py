"""The tables of a graph that is only declared for pictures: names, kinds and weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.systems.spec.drawing import DrawableGraph, NodeBlock
from ketrag_fast.systems.spec.graph_tables import Column, GraphTables

_MOST_KINDS: Final = 255
"""Kinds of nodes that tables can number; further ones are written as "node"."""

Rows = NDArray[np.int64]


def drawn_tables(graph: DrawableGraph) -> GraphTables:
    """Return a drawable graph as tables. Repeated edges are written once for each repetition."""
    starts = np.cumsum([0, *(block.count for block in graph.blocks)])

    def each(value: Callable[[NodeBlock, int], Any]) -> Callable[[Rows], list[Any]]:
        def read(rows: Rows) -> list[Any]:
            owners = np.searchsorted(starts, rows, "right") - 1
            pairs = zip(rows.tolist(), owners.tolist(), strict=True)
            return [value(graph.blocks[owner], row - int(starts[owner])) for row, owner in pairs]

        return read

    kinds: dict[str, int] = {}
    kind = np.zeros(int(starts[-1]), np.uint8)
    for block, start in zip(graph.blocks, starts.tolist(), strict=False):
        for number in range(block.count if callable(block.kind) else min(block.count, 1)):
            name = block.kind(number) if callable(block.kind) else block.kind
            place = kinds.setdefault(name if len(kinds) < _MOST_KINDS else "node", len(kinds))
            last = start + number + 1 if callable(block.kind) else start + block.count
            kind[start + number : last] = place
    owners = [np.searchsorted(starts, ends, "right") - 1 for ends in (graph.sources, graph.targets)]
    pairs = np.minimum(*owners) * len(graph.blocks) + np.maximum(*owners)
    relations = [graph.edge, *dict.fromkeys(graph.edges_between.values())]
    relation = np.zeros(len(pairs), np.uint8)
    for (one, other), name in graph.edges_between.items():
        relation[pairs == one * len(graph.blocks) + other] = relations.index(name)
    return GraphTables(
        kinds=tuple(kinds) or ("node",),
        kind=kind,
        nodes={
            "name": Column("text", each(lambda block, number: block.title(number))),
            "units": Column("ids", each(lambda block, n: [] if block.unit is None else [block.unit(n)])),
        },
        relations=tuple(relations),
        relation=relation,
        source=graph.sources,
        target=graph.targets,
        edges={"weight": Column("float", lambda rows: graph.weights[rows].tolist())},
    )
