"""Every format holds the whole graph, as other programs read it."""

from __future__ import annotations

import csv
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from ketrag_fast import Index
from ketrag_fast.errors import ConfigError
from ketrag_fast.interchange.exporting import Exported, export_graph
from ketrag_fast.systems.spec.drawing import GraphTables
from tests.unit.interchange.conftest import HOSTILE
from tests.unit.interchange.test_graph_tables import GRAPHS, column, tables_of

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def nodes_of(tables: GraphTables) -> list[dict[str, Any]]:
    columns = {name: column(tables.nodes, name, len(tables)) for name in tables.nodes}
    return [
        {"kind": tables.kinds[kind], **{name: values[at] for name, values in columns.items()}}
        for at, kind in enumerate(tables.kind.tolist())
    ]


def edges_of(tables: GraphTables) -> list[dict[str, Any]]:
    count = len(tables.source)
    columns = {name: column(tables.edges, name, count) for name in tables.edges}
    ends = zip(tables.source.tolist(), tables.target.tolist(), tables.relation.tolist(), strict=True)
    return [
        {
            "source": a,
            "target": b,
            "kind": tables.relations[kind],
            **{name: values[at] for name, values in columns.items()},
        }
        for at, (a, b, kind) in enumerate(ends)
    ]


def as_xml(row: dict[str, Any]) -> dict[str, Any]:
    """A row as XML can hold it."""
    out = {}
    for name, value in row.items():
        if isinstance(value, str):
            value = _FORBIDDEN.sub("\ufffd", value)
        out[name] = " ".join(map(str, value)) if isinstance(value, list) else value
    return out


def as_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """A row as a value that can be sorted, without what readers leave out because it is empty."""
    return tuple(sorted((name, repr(value)) for name, value in row.items() if value not in ("", None)))


@pytest.mark.parametrize("name", GRAPHS)
def test_networkx_reads_graphml(index: Index, target: Path, name: str) -> None:
    tables = tables_of(index, name)
    found = export_graph(index, "graphml", target, graph=name)
    assert (found.nodes, found.edges, found.bytes) == (
        len(tables),
        len(tables.source),
        target.stat().st_size,
    )
    graph = nx.read_graphml(target)
    assert graph.is_directed() == tables.directed
    assert [as_key(graph.nodes[str(at)]) for at in range(len(tables))] == [
        as_key(as_xml(row)) for row in nodes_of(tables)
    ]
    read = [as_key({**data, "ends": sorted((int(a), int(b)))}) for a, b, data in graph.edges(data=True)]
    wanted = []
    for row in map(as_xml, edges_of(tables)):
        ends = sorted((row.pop("source"), row.pop("target")))
        wanted.append(as_key({**row, "ends": ends}))
    assert sorted(read) == sorted(wanted)


@pytest.mark.parametrize("name", GRAPHS)
def test_networkx_reads_gexf(index: Index, target: Path, name: str) -> None:
    tables = tables_of(index, name)
    export_graph(index, "gexf", target, graph=name)
    graph = nx.read_gexf(target)
    assert graph.is_directed() == tables.directed
    assert graph.number_of_edges() == len(tables.source)
    for at, row in enumerate(nodes_of(tables)):
        row["label"] = row.pop("name")
        assert as_key(graph.nodes[str(at)]) == as_key(as_xml(row))
    weights = sorted(data["weight"] for _, _, data in graph.edges(data=True) if "weight" in data)
    assert weights == sorted(row["weight"] for row in edges_of(tables) if "weight" in row)


def test_gexf_has_positions_where_a_layout_is_computed(index: Index, target: Path, tmp_path: Path) -> None:
    export_graph(index, "gexf", target, layout=True)
    graph = nx.read_gexf(target)
    places = {node: own["viz"]["position"] for node, own in graph.nodes(data=True)}
    assert len({(place["x"], place["y"]) for place in places.values()}) == len(places)
    assert all(-1000 <= place[axis] <= 1000 for place in places.values() for axis in ("x", "y"))
    export_graph(index, "gexf", tmp_path / "again", layout=True)
    assert target.read_bytes() == (tmp_path / "again").read_bytes()
    export_graph(index, "gexf", tmp_path / "part", layout=True, neighbourhood_of="Fram")
    assert "viz:position" in (tmp_path / "part").read_text("utf-8")
    with pytest.raises(ConfigError, match="positions are written by the format gexf"):
        export_graph(index, "graphml", tmp_path / "none", layout=True)


def in_a_cell(text: str) -> str:
    """The text of a cell, with an apostrophe where a spreadsheet would run it."""
    return ("'" if text[:1] in tuple("=+-@\t\r\n\0") else "") + text.replace("\0", "\ufffd")


@pytest.mark.parametrize("name", GRAPHS)
def test_csv_cells_are_the_values(index: Index, target: Path, name: str) -> None:
    tables = tables_of(index, name)
    export_graph(index, "neo4j", target, graph=name)
    heads = {"nodes": ("id:ID", ":LABEL"), "relationships": (":START_ID", ":TYPE")}
    rows: dict[str, list[dict[str, str]]] = {"nodes": [], "relationships": []}
    for what, kinds in (("nodes", tables.kinds), ("relationships", tables.relations)):
        for kind in kinds:
            with (target / f"{what}-{kind}.csv").open(encoding="utf-8", newline="") as file:
                read = csv.DictReader(file, strict=True)
                assert read.fieldnames is not None
                assert (read.fieldnames[0], read.fieldnames[-1]) == heads[what]
                rows[what] += read
    wanted = nodes_of(tables)
    assert len(rows["nodes"]) == len(wanted)
    assert len({row["id:ID"] for row in rows["nodes"]}) == len(wanted)
    for row in rows["nodes"]:
        own = wanted[int(row["id:ID"].removeprefix(f"{name}-"))]
        assert row["name"] == in_a_cell(own["name"])
        assert row[":LABEL"].casefold() == own["kind"].replace("_", "")
        assert row["units:long[]"] == ";".join(map(str, own["units"]))
        assert row.get("description", "") == in_a_cell(own.get("description", ""))
    ends = [(row[":START_ID"], row[":END_ID"], row[":TYPE"].lower()) for row in rows["relationships"]]
    assert sorted(ends) == sorted(
        (f"{name}-{row['source']}", f"{name}-{row['target']}", row["kind"]) for row in edges_of(tables)
    )
    readme = (target / "README.md").read_text("utf-8")
    assert {path.name for path in target.glob("*.csv")} == set(re.findall(r"=(\S+\.csv)", readme))


@pytest.mark.parametrize("name", GRAPHS)
def test_json_lines_are_the_rows(index: Index, target: Path, name: str) -> None:
    tables = tables_of(index, name)
    export_graph(index, "jsonl", target, graph=name)
    text = target.read_text("utf-8")
    assert text.splitlines() == text.split("\n")[:-1]
    head, *rows = map(json.loads, text.splitlines())
    assert head == {
        "schema": "ketrag/graph/1",
        "graph": name,
        "nodes": len(tables),
        "edges": len(tables.source),
        "directed": tables.directed,
    }
    assert rows[: len(tables)] == [{"node": at, **row} for at, row in enumerate(nodes_of(tables))]
    assert rows[len(tables) :] == [{"edge": at, **row} for at, row in enumerate(edges_of(tables))]


def test_json_lines_can_hold_the_documents(index: Index, target: Path) -> None:
    export_graph(index, "jsonl", target, documents=True)
    rows = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    documents = {row["document"]: row for row in rows if "id" in row}
    units = [row for row in rows if "unit" in row]
    chunks = {row["chunk"]: row for row in rows if "tokens" in row and "unit" not in row}
    stored = list(index.inspect.stored())
    assert [row["id"] for row in documents.values()] == [one.id for one in stored]
    assert documents[0]["metadata"] == {"team": "polar", "year": 1893, "cites": ["maud"]}
    assert documents[3]["text"] == next(one.text for one in stored if one.id.startswith("="))
    for unit in units:
        assert documents[unit["document"]]["text"][unit["start"] : unit["end"]] == unit["text"]
        assert chunks[unit["chunk"]]["document"] == unit["document"]
    assert HOSTILE[:10] in "".join(unit["text"] for unit in units)


def test_a_neighbourhood_is_what_is_near(index: Index, target: Path) -> None:
    tables = tables_of(index, "skeleton")
    graph = nx.Graph(zip(tables.source.tolist(), tables.target.tolist(), strict=True))
    names = column(tables.nodes, "name", len(tables))
    centre = names.index("FRIDTJOF NANSEN")
    sizes = []
    for hops in range(4):
        found = export_graph(
            index, "graphml", target, neighbourhood_of="fridtjof  nansen", hops=hops, replace=True
        )
        near = nx.single_source_shortest_path_length(graph, centre, cutoff=hops)
        assert {int(node) for node in nx.read_graphml(target)} == set(near)
        assert found.edges == graph.subgraph(near).number_of_edges()
        sizes.append(found.nodes)
    assert sizes[0] == 1
    assert all(a <= b for a, b in pairwise(sizes))
    assert sizes[1] < len(tables)


def test_a_query_leaves_the_nodes_of_its_passages(index: Index, target: Path) -> None:
    found = export_graph(index, "jsonl", target, query="Who lost the Endurance?", documents=True)
    rows = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    passages = index.retrieve("Who lost the Endurance?").passages
    units = {passage.unit for passage in passages}
    assert found.nodes == sum("node" in row for row in rows) > 0
    assert all(units & set(row["units"]) for row in rows if "node" in row)
    held = {row["unit"] for row in rows if "unit" in row}
    assert held == {unit for row in rows for unit in row.get("units", ())}


def test_the_report_is_json(index: Index, target: Path) -> None:
    found = export_graph(index, "graphml", target)
    assert found == Exported(
        "graphml", "skeleton", str(target), found.nodes, found.edges, target.stat().st_size
    )
    assert found.to_json()["schema"] == "ketrag/export/1"
