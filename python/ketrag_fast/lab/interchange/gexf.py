"""GEXF 1.2, as Gephi and NetworkX read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Final

import numpy as np

from ketrag_fast.kernels import drawing
from ketrag_fast.lab.interchange.graph_part import GraphPart, Tick
from ketrag_fast.lab.interchange.graphml import texts_of
from ketrag_fast.lab.interchange.xml_text import attribute
from ketrag_fast.systems.spec.graph_tables import Column

_TYPES: Final = {"text": "string", "int": "long", "float": "double", "ids": "string"}
_HEAD: Final = """<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://www.gexf.net/1.2draft" xmlns:viz="http://www.gexf.net/1.2draft/viz" version="1.2">
"""
_OWN: Final = frozenset({"name", "weight"})
"""Columns that are attributes of the elements themselves: the label of a node, the weight of an edge."""


def write(part: GraphPart, stream: IO[bytes], tick: Tick, *, layout: bool = False) -> None:
    """Write the nodes and edges with all columns. Numbers of units are separated by spaces.

    With `layout`, nodes have the positions of a force-directed layout, from -1,000 to 1,000.
    """
    tables = part.tables
    nodes = {name: column for name, column in tables.nodes.items() if name != "name"}
    edges = {name: column for name, column in tables.edges.items() if name not in _OWN}
    mode = "directed" if tables.directed else "undirected"
    lines = [_HEAD, f'<graph mode="static" defaultedgetype="{mode}">\n']
    lines += [*_declared("node", nodes), *_declared("edge", edges), "<nodes>\n"]
    stream.write("".join(lines).encode())
    places = _positions(part, tick) if layout else {}
    for some in part.node_rows():
        names = map(attribute, some.columns["name"])
        rows = zip(some.ids.tolist(), names, _values(some.kinds, some.columns, nodes), strict=True)
        text = "".join(
            f'<node id="{number}" label="{name}">{data}{places.get(number, "")}</node>\n'
            for number, name, data in rows
        )
        stream.write(text.encode())
        tick(len(some.ids))
    stream.write(b"</nodes>\n<edges>\n")
    for several in part.edge_rows():
        ends = zip(several.ids.tolist(), several.source.tolist(), several.target.tolist(), strict=True)
        weights = [f' weight="{weight!r}"' for weight in several.columns.get("weight", ())]
        weights = weights or [""] * len(several.ids)
        data = _values(several.kinds, several.columns, edges)
        text = "".join(
            f'<edge id="{number}" source="{a}" target="{b}"{weight}>{cells}</edge>\n'
            for (number, a, b), weight, cells in zip(ends, weights, data, strict=True)
        )
        stream.write(text.encode())
        tick(len(several.ids))
    stream.write(b"</edges>\n</graph>\n</gexf>\n")


def _positions(part: GraphPart, tick: Tick) -> dict[int, str]:
    """Return the element with the position of each node."""

    def in_time(done: int, total: int) -> None:
        tick(0)

    tables, ids = part.tables, part.node_ids
    weights = np.ones(len(part.edge_ids))
    if "weight" in tables.edges:
        weights = np.maximum(np.array(tables.edges["weight"].read(part.edge_ids), np.float64), 1e-6)
    source, target = (np.searchsorted(ids, end[part.edge_ids]) for end in (tables.source, tables.target))
    graph = drawing.weighted_graph(len(ids), source, target, weights, report=in_time)
    rows = zip(ids.tolist(), (1000 * drawing.layout(graph, report=in_time)).tolist(), strict=True)
    return {node: f'<viz:position x="{x:.2f}" y="{-y:.2f}" z="0.0"/>' for node, (x, y) in rows}


def _declared(owner: str, columns: Mapping[str, Column]) -> Iterator[str]:
    yield f'<attributes class="{owner}">\n'
    named = [("kind", "string"), *((name, _TYPES[column.type]) for name, column in columns.items())]
    for number, (name, kind) in enumerate(named):
        yield f'<attribute id="{number}" title="{name}" type="{kind}"/>\n'
    yield "</attributes>\n"


def _values(
    kinds: Sequence[str], values: Mapping[str, Sequence[Any]], columns: Mapping[str, Column]
) -> Iterator[str]:
    cells = [[f'<attvalue for="0" value="{kind}"/>' for kind in kinds]]
    for number, (name, column) in enumerate(columns.items(), 1):
        if column.type == "text":
            texts = [attribute(value) for value in values[name]]
        else:
            texts = texts_of(column, values[name])
        cells.append([f'<attvalue for="{number}" value="{text}"/>' for text in texts])
    return (f"<attvalues>{''.join(row)}</attvalues>" for row in zip(*cells, strict=True))
