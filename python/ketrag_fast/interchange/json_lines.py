"""JSON lines: a header, then an object for each node and edge, and optionally document, chunk and unit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Final

from ketrag_fast.interchange.graph_part import GraphPart, Tick
from ketrag_fast.interchange.passages import Passages

SCHEMA: Final = "ketrag/graph/1"
# Line separators of Unicode, at which some readers of lines would cut an object.
_SEPARATORS: Final = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def write(part: GraphPart, stream: IO[bytes], passages: Passages | None, tick: Tick) -> None:
    """Write the nodes and edges; with `passages`, also the documents, chunks and units that they are from."""
    head = {"nodes": len(part.node_ids), "edges": len(part.edge_ids), "directed": part.tables.directed}
    _put(stream, [{"schema": SCHEMA, "graph": part.name, **head}])
    for nodes in part.node_rows():
        ids = zip(nodes.ids.tolist(), nodes.kinds, strict=True)
        own = [{"node": number, "kind": kind} for number, kind in ids]
        _put(stream, _rows(own, nodes.columns))
        tick(len(own))
    for edges in part.edge_rows():
        ends = zip(edges.ids.tolist(), edges.source.tolist(), edges.target.tolist(), edges.kinds, strict=True)
        own = [{"edge": n, "source": a, "target": b, "kind": kind} for n, a, b, kind in ends]
        _put(stream, _rows(own, edges.columns))
        tick(len(own))
    if passages is not None:
        for rows in passages.json_rows():
            _put(stream, rows)
            tick(len(rows))


def _rows(own: Sequence[dict[str, Any]], columns: Mapping[str, Sequence[Any]]) -> Iterator[Mapping[str, Any]]:
    for number, row in enumerate(own):
        yield {**row, **{name: values[number] for name, values in columns.items()}}


def _put(stream: IO[bytes], rows: Iterable[Mapping[str, Any]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False).translate(_SEPARATORS) for row in rows)
    stream.write("".join(f"{line}\n" for line in lines).encode())
