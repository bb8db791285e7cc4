"""CSV files for `neo4j-admin database import`: one for each kind of node and of relationship."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final

from ketrag_fast.interchange.graph_part import GraphPart, Tick
from ketrag_fast.systems.spec.drawing import Column

NAMES: Final = ("nodes-", "relationships-", "README.md")
"""The prefixes of the files of an export."""
_TYPES: Final = {"text": "", "int": ":long", "float": ":double", "ids": ":long[]"}
_README: Final = """# Graph `{graph}` of an index of ketrag-fast

Run this in this folder, with the database stopped:

    neo4j-admin database import full neo4j --overwrite-destination --multiline-fields=true \\
      --array-delimiter=";" \\
      {files}

{nodes:,} nodes, {edges:,} relationships. `units` are the numbers of the passages that a node comes from.

The cells hold names and texts of documents exactly as they are. A spreadsheet may run a cell that begins with
`=`, `+`, `-` or `@` as a formula, so don't open these files in one.
"""


def write(part: GraphPart, folder: Path, tick: Tick) -> None:
    """Write the CSV files, and a README with the command that imports them."""
    tables = part.tables
    files: list[str] = []
    with ExitStack() as stack:
        node_files = _open(stack, folder, "nodes", tables.kinds)
        edge_files = _open(stack, folder, "relationships", tables.relations)
        for kind, stream in node_files.items():
            head = ["id:ID", *(f"{name}{_TYPES[c.type]}" for name, c in tables.nodes.items()), ":LABEL"]
            stream.write((",".join(head) + "\n").encode())
            files.append(f"--nodes=nodes-{kind}.csv")
        for kind, stream in edge_files.items():
            columns = [f"{name}{_TYPES[c.type]}" for name, c in tables.edges.items()]
            stream.write((",".join([":START_ID", ":END_ID", *columns, ":TYPE"]) + "\n").encode())
            files.append(f"--relationships=relationships-{kind}.csv")
        for nodes in part.node_rows():
            ids = [f'"{part.name}-{number}"' for number in nodes.ids.tolist()]
            labels = [f'"{_label(kind)}"' for kind in nodes.kinds]
            _sort(nodes.kinds, [ids, *_cells(nodes.columns, tables.nodes), labels], node_files)
            tick(len(ids))
        for edges in part.edge_rows():
            ends = [
                [f'"{part.name}-{number}"' for number in end.tolist()] for end in (edges.source, edges.target)
            ]
            types = [f'"{kind.upper()}"' for kind in edges.kinds]
            _sort(edges.kinds, [*ends, *_cells(edges.columns, tables.edges), types], edge_files)
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

    Examples:
        >>> quote('say "a",b')
        '"say ""a"",b"'
    """
    return '"' + text.replace("\x00", "\ufffd").replace('"', '""') + '"'


def _open(stack: ExitStack, folder: Path, what: str, kinds: Sequence[str]) -> dict[str, IO[bytes]]:
    return {kind: stack.enter_context((folder / f"{what}-{kind}.csv").open("xb")) for kind in kinds}


def _label(kind: str) -> str:
    return "".join(word.capitalize() for word in kind.split("_"))


def _cells(values: Mapping[str, Sequence[Any]], columns: Mapping[str, Column]) -> list[list[str]]:
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
