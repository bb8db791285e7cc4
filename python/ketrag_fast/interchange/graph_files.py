"""Files of graphs: GraphML, GEXF 1.2, JSON lines, and CSV files for `neo4j-admin database import`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from ketrag_fast.interchange.graph_part import GraphPart, Passages, Tick
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


# ---------------------------------------------------------------- JSON lines

_SCHEMA: Final = "ketrag/graph/1"
# Line separators of Unicode, at which some readers of lines would cut an object.
_SEPARATORS: Final = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def write_json_lines(part: GraphPart, stream: IO[bytes], passages: Passages | None, tick: Tick) -> None:
    """Write the nodes and edges; with `passages`, also the documents, chunks and units that they are from."""
    head = {"nodes": len(part.node_ids), "edges": len(part.edge_ids), "directed": part.tables.directed}
    _put_json_line(stream, [{"schema": _SCHEMA, "graph": part.name, **head}])
    for nodes in part.node_rows():
        ids = zip(nodes.ids.tolist(), nodes.kinds, strict=True)
        own = [{"node": number, "kind": kind} for number, kind in ids]
        _put_json_line(stream, _json_rows(own, nodes.columns))
        tick(len(own))
    for edges in part.edge_rows():
        ends = zip(edges.ids.tolist(), edges.source.tolist(), edges.target.tolist(), edges.kinds, strict=True)
        own = [{"edge": n, "source": a, "target": b, "kind": kind} for n, a, b, kind in ends]
        _put_json_line(stream, _json_rows(own, edges.columns))
        tick(len(own))
    if passages is not None:
        for rows in passages.json_rows():
            _put_json_line(stream, rows)
            tick(len(rows))


def _json_rows(
    own: Sequence[dict[str, Any]], columns: Mapping[str, Sequence[Any]]
) -> Iterator[Mapping[str, Any]]:
    for number, row in enumerate(own):
        yield {**row, **{name: values[number] for name, values in columns.items()}}


def _put_json_line(stream: IO[bytes], rows: Iterable[Mapping[str, Any]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False).translate(_SEPARATORS) for row in rows)
    stream.write("".join(f"{line}\n" for line in lines).encode())


# ---------------------------------------------------------------- Neo4j

NEO4J_FILES: Final = ("nodes-", "relationships-", "README.md")
"""The prefixes of the files of an export."""
_CSV_TYPES: Final = {"text": "", "int": ":long", "float": ":double", "ids": ":long[]"}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings of texts that spreadsheets take for formulas, also in full-width forms."""
_README: Final = """# Graph `{graph}` of an index of ketrag-fast

Run this in this folder, with the database stopped:

    neo4j-admin database import full neo4j --overwrite-destination --multiline-fields=true \\
      --array-delimiter=";" \\
      {files}

{nodes:,} nodes, {edges:,} relationships. `units` are the numbers of the passages that a node comes from.

A text that begins with `=`, `+`, `-`, `@`, a tab or a line end has an apostrophe before it, because a
spreadsheet would run it as a formula. All other cells hold names and texts of documents as they are.
"""


def write_neo4j(part: GraphPart, folder: Path, tick: Tick) -> None:
    """Write the CSV files, and a README with the command that imports them."""
    tables = part.tables
    files: list[str] = []
    with ExitStack() as stack:
        node_files = _open(stack, folder, "nodes", tables.kinds)
        edge_files = _open(stack, folder, "relationships", tables.relations)
        for kind, stream in node_files.items():
            head = ["id:ID", *(f"{name}{_CSV_TYPES[c.type]}" for name, c in tables.nodes.items()), ":LABEL"]
            stream.write((",".join(head) + "\n").encode())
            files.append(f"--nodes=nodes-{kind}.csv")
        for kind, stream in edge_files.items():
            columns = [f"{name}{_CSV_TYPES[c.type]}" for name, c in tables.edges.items()]
            stream.write((",".join([":START_ID", ":END_ID", *columns, ":TYPE"]) + "\n").encode())
            files.append(f"--relationships=relationships-{kind}.csv")
        for nodes in part.node_rows():
            ids = [f'"{part.name}-{number}"' for number in nodes.ids.tolist()]
            labels = [f'"{_label(kind)}"' for kind in nodes.kinds]
            _sort(nodes.kinds, [ids, *_csv_cells(nodes.columns, tables.nodes), labels], node_files)
            tick(len(ids))
        for edges in part.edge_rows():
            ends = [
                [f'"{part.name}-{number}"' for number in end.tolist()] for end in (edges.source, edges.target)
            ]
            types = [f'"{kind.upper()}"' for kind in edges.kinds]
            _sort(edges.kinds, [*ends, *_csv_cells(edges.columns, tables.edges), types], edge_files)
            tick(len(types))
    text = _README.format(
        graph=part.name,
        files=" \\\n      ".join(files),
        nodes=len(part.node_ids),
        edges=len(part.edge_ids),
    )
    (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")


def quote(text: str) -> str:
    """Return a text as one cell: in quotes, with inner quotes doubled. NUL, which Neo4j refuses, is replaced.

    A text that a spreadsheet would run as a formula gets an apostrophe before it (OWASP, "CSV injection").

    Examples:
        >>> quote('say "a",b')
        '"say ""a"",b"'
        >>> quote("=1+1")
        '"\'=1+1"'
    """
    text = f"'{text}" if text.startswith(_FORMULA) else text
    return '"' + text.replace("\x00", "\ufffd").replace('"', '""') + '"'


def _open(stack: ExitStack, folder: Path, what: str, kinds: Sequence[str]) -> dict[str, IO[bytes]]:
    return {kind: stack.enter_context((folder / f"{what}-{kind}.csv").open("xb")) for kind in kinds}


def _label(kind: str) -> str:
    return "".join(word.capitalize() for word in kind.split("_"))


def _csv_cells(values: Mapping[str, Sequence[Any]], columns: Mapping[str, Column]) -> list[list[str]]:
    out = []
    for name, column in columns.items():
        if column.type == "text":
            out.append([quote(value) for value in values[name]])
        elif column.type == "ids":
            out.append([";".join(map(str, value)) for value in values[name]])
        else:
            out.append([repr(value) for value in values[name]])
    return out


def _sort(kinds: Sequence[str], cells: Sequence[Sequence[str]], files: Mapping[str, IO[bytes]]) -> None:
    """Write each row into the file of its kind."""
    rows: dict[str, list[str]] = {}
    for kind, row in zip(kinds, zip(*cells, strict=True), strict=True):
        rows.setdefault(kind, []).append(",".join(row))
    for kind, lines in rows.items():
        files[kind].write(("\n".join(lines) + "\n").encode())
