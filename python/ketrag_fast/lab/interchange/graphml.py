"""GraphML, as NetworkX, Gephi, yEd and igraph read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Final

from ketrag_fast.lab.interchange.graph_part import GraphPart, Tick
from ketrag_fast.lab.interchange.xml_text import content
from ketrag_fast.systems.spec.graph_tables import Column

_TYPES: Final = {"text": "string", "int": "long", "float": "double", "ids": "string"}
_HEAD: Final = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""


def write(part: GraphPart, stream: IO[bytes], tick: Tick) -> None:
    """Write the nodes and edges with all columns. Numbers of units are separated by spaces."""
    tables = part.tables
    lines = [_HEAD, *_keys("node", "n", tables.nodes), *_keys("edge", "e", tables.edges)]
    mode = "directed" if tables.directed else "undirected"
    lines.append(f'<graph id="{part.name}" edgedefault="{mode}">\n')
    stream.write("".join(lines).encode())
    for nodes in part.node_rows():
        rows = zip(nodes.ids.tolist(), _data("n", nodes.kinds, nodes.columns, tables.nodes), strict=True)
        stream.write("".join(f'<node id="{number}">{data}</node>\n' for number, data in rows).encode())
        tick(len(nodes.ids))
    for edges in part.edge_rows():
        ends = zip(edges.source.tolist(), edges.target.tolist(), strict=True)
        rows = zip(ends, _data("e", edges.kinds, edges.columns, tables.edges), strict=True)
        text = "".join(f'<edge source="{a}" target="{b}">{data}</edge>\n' for (a, b), data in rows)
        stream.write(text.encode())
        tick(len(edges.ids))
    stream.write(b"</graph>\n</graphml>\n")


def _keys(owner: str, letter: str, columns: Mapping[str, Column]) -> Iterator[str]:
    named = [("kind", "string"), *((name, _TYPES[column.type]) for name, column in columns.items())]
    for number, (name, kind) in enumerate(named):
        yield f'<key id="{letter}{number}" for="{owner}" attr.name="{name}" attr.type="{kind}"/>\n'


def _data(
    letter: str, kinds: Sequence[str], values: Mapping[str, Sequence[Any]], columns: Mapping[str, Column]
) -> Iterator[str]:
    """Yield the `data` elements of each row."""
    cells = [[f'<data key="{letter}0">{kind}</data>' for kind in kinds]]
    for number, (name, column) in enumerate(columns.items(), 1):
        head = f'<data key="{letter}{number}">'
        cells.append([f"{head}{text}</data>" for text in texts_of(column, values[name])])
    return map("".join, zip(*cells, strict=True))


def texts_of(column: Column, values: Sequence[Any]) -> list[str]:
    """Return the values of a column as the content of XML elements."""
    if column.type == "text":
        return [content(value) for value in values]
    if column.type == "ids":
        return [" ".join(map(str, value)) for value in values]
    return [repr(value) for value in values]
