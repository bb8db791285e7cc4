"""GraphML, as NetworkX, Gephi, yEd and igraph read it, and GEXF 1.2, as Gephi and NetworkX read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Final

import numpy as np

from ketrag_fast.interchange.graph_part import GraphPart, Tick
from ketrag_fast.kernels import drawing
from ketrag_fast.systems.spec.drawing import Column

_TYPES: Final = {"text": "string", "int": "long", "float": "double", "ids": "string"}
_GRAPHML: Final = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
_GEXF: Final = """<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://www.gexf.net/1.2draft" xmlns:viz="http://www.gexf.net/1.2draft/viz" version="1.2">
"""
_OWN: Final = frozenset({"name", "weight"})
"""Columns that are attributes of GEXF's elements: the label of a node, the weight of an edge."""
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPECIAL: Final = re.compile("[&<>\r\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_QUOTED: Final = str.maketrans({'"': "&quot;", "\n": "&#10;", "\t": "&#9;"})


def write_graphml(part: GraphPart, stream: IO[bytes], tick: Tick) -> None:
    """Write the nodes and edges with all columns. Numbers of units are separated by spaces."""
    tables = part.tables
    key = '<key id="{}{{}}" for="{}" attr.name="{{}}" attr.type="{{}}"/>\n'
    lines = [_GRAPHML, *_declarations(key.format("n", "node"), tables.nodes)]
    lines += _declarations(key.format("e", "edge"), tables.edges)
    lines.append(f'<graph id="{part.name}" edgedefault="{_direction(part)}">\n')
    stream.write("".join(lines).encode())
    for nodes in part.node_rows():
        data = _cells(nodes.kinds, nodes.columns, tables.nodes, '<data key="n{}">', "</data>", content)
        rows = zip(nodes.ids.tolist(), data, strict=True)
        stream.write("".join(f'<node id="{number}">{cells}</node>\n' for number, cells in rows).encode())
        tick(len(nodes.ids))
    for edges in part.edge_rows():
        data = _cells(edges.kinds, edges.columns, tables.edges, '<data key="e{}">', "</data>", content)
        ends = zip(edges.source.tolist(), edges.target.tolist(), data, strict=True)
        text = "".join(f'<edge source="{a}" target="{b}">{cells}</edge>\n' for a, b, cells in ends)
        stream.write(text.encode())
        tick(len(edges.ids))
    stream.write(b"</graph>\n</graphml>\n")


def write_gexf(part: GraphPart, stream: IO[bytes], tick: Tick, *, layout: bool = False) -> None:
    """Write the same as GEXF.

    With `layout`, nodes have the positions of a force-directed layout, from -1,000 to 1,000.
    """
    tables = part.tables
    nodes = {name: column for name, column in tables.nodes.items() if name != "name"}
    edges = {name: column for name, column in tables.edges.items() if name not in _OWN}
    lines = [_GEXF, f'<graph mode="static" defaultedgetype="{_direction(part)}">\n']
    for owner, columns in (("node", nodes), ("edge", edges)):
        declared = _declarations('<attribute id="{}" title="{}" type="{}"/>\n', columns)
        lines += [f'<attributes class="{owner}">\n', *declared, "</attributes>\n"]
    stream.write("".join([*lines, "<nodes>\n"]).encode())
    cell = ('<attvalue for="{}" value="', '"/>', attribute)
    places = _positions(part, tick) if layout else {}
    for some in part.node_rows():
        names = map(attribute, some.columns["name"])
        rows = zip(some.ids.tolist(), names, _cells(some.kinds, some.columns, nodes, *cell), strict=True)
        text = "".join(
            f'<node id="{node}" label="{name}"><attvalues>{data}</attvalues>{places.get(node, "")}</node>\n'
            for node, name, data in rows
        )
        stream.write(text.encode())
        tick(len(some.ids))
    stream.write(b"</nodes>\n<edges>\n")
    for several in part.edge_rows():
        weights = [f' weight="{weight!r}"' for weight in several.columns.get("weight", ())]
        weights = weights or [""] * len(several.ids)
        ends = (several.ids.tolist(), several.source.tolist(), several.target.tolist())
        cells = _cells(several.kinds, several.columns, edges, *cell)
        text = "".join(
            f'<edge id="{number}" source="{a}" target="{b}"{weight}><attvalues>{data}</attvalues></edge>\n'
            for number, a, b, weight, data in zip(*ends, weights, cells, strict=True)
        )
        stream.write(text.encode())
        tick(len(several.ids))
    stream.write(b"</edges>\n</graph>\n</gexf>\n")


def content(text: str) -> str:
    """Return the text as the content of an element.

    Characters that XML cannot hold become U+FFFD. A carriage return is escaped, because parsers would turn
    it into a line feed.

    Examples:
        >>> content("a < b & \\x00")
        'a &lt; b &amp; �'
    """
    if not _SPECIAL.search(text):
        return text
    text = _FORBIDDEN.sub("\ufffd", text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")


def attribute(text: str) -> str:
    """Return the text as the value of an attribute in double quotes; line breaks and tabs are kept.

    Examples:
        >>> attribute('say "a\\nb"')
        'say &quot;a&#10;b&quot;'
    """
    return content(text).translate(_QUOTED)


def _direction(part: GraphPart) -> str:
    return "directed" if part.tables.directed else "undirected"


def _declarations(line: str, columns: Mapping[str, Column]) -> Iterator[str]:
    """Yield the declarations of the kind and the columns; `line` has places for number, name and type."""
    named = [("kind", "string"), *((name, _TYPES[column.type]) for name, column in columns.items())]
    return (line.format(number, name, kind) for number, (name, kind) in enumerate(named))


def _cells(
    kinds: Sequence[str],
    values: Mapping[str, Sequence[Any]],
    columns: Mapping[str, Column],
    before: str,
    after: str,
    escape: Callable[[str], str],
) -> Iterator[str]:
    """Yield the kind and the columns of each row as XML; `before` has a place for the number of a column."""
    cells = [[f"{before.format(0)}{kind}{after}" for kind in kinds]]
    for number, (name, column) in enumerate(columns.items(), 1):
        if column.type == "text":
            texts: Iterable[str] = map(escape, values[name])
        elif column.type == "ids":
            texts = (" ".join(map(str, value)) for value in values[name])
        else:
            texts = map(repr, values[name])
        head = before.format(number)
        cells.append([f"{head}{text}{after}" for text in texts])
    return map("".join, zip(*cells, strict=True))


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
