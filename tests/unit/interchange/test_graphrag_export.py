"""The Parquet tables have the columns of graphrag, and their references lead somewhere.

`SCHEMAS` are the final columns in `graphrag/data_model/schemas.py` of graphrag 3.3.0 and 2.7.0. benches/
interchange.py has graphrag's own loaders read an export, because the package is too large for the tests.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Index
from ketrag_fast.interchange.communities import EXTRACTIVE
from ketrag_fast.interchange.exporting import export_graph
from tests.support.parts import part
from tests.unit.interchange.test_graph_tables import GRAPHS, column, tables_of

_GROUP = "id human_readable_id community level parent children title"
_COLUMNS = {
    "entities": "id human_readable_id title type description text_unit_ids frequency degree",
    "relationships": "id human_readable_id source target description weight combined_degree text_unit_ids",
    "communities": f"{_GROUP} entity_ids relationship_ids text_unit_ids period size",
    "community_reports": (
        f"{_GROUP} summary full_content rank rating_explanation findings full_content_json period size"
    ),
    "text_units": (
        "id human_readable_id text n_tokens document_id entity_ids relationship_ids covariate_ids"
    ),
    "documents": "id human_readable_id title text text_unit_ids creation_date raw_data",
}
SCHEMAS = {name: columns.split() for name, columns in _COLUMNS.items()}


def read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    parquet = part("pyarrow.parquet", "checks")
    tables = {path.stem: parquet.read_table(path) for path in sorted(folder.iterdir())}
    for name, table in tables.items():
        wanted = SCHEMAS[name]
        if "x" in table.column_names:
            wanted = [*wanted, "x", "y"]
        assert len(table.column_names) == len(wanted)
    return {name: table.to_pylist() for name, table in tables.items()}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_tables_fit_together(index: Index, target: Path, name: str) -> None:
    tables = tables_of(index, name)
    export_graph(index, "graphrag", target, graph=name, communities=True)
    found = read(target)
    for table, rows in found.items():
        assert [list(row) for row in rows] == [SCHEMAS[table]] * len(rows)
        ids = [row["id"] for row in rows]
        assert len(set(ids)) == len(ids)
        assert {uuid.UUID(one).version for one in ids} <= {8}
    entities = {row["title"]: row for row in found["entities"]}
    assert len(entities) == len(tables)
    units = {row["id"]: row for row in found["text_units"]}
    documents = {row["id"]: row for row in found["documents"]}
    degrees = np.bincount(tables.source, minlength=len(tables))
    degrees += np.bincount(tables.target, minlength=len(tables))
    own = column(tables.nodes, "units", len(tables))
    for row in found["entities"]:
        number = row["human_readable_id"]
        assert [units[one]["human_readable_id"] for one in row["text_unit_ids"]] == own[number]
        assert row["degree"] == degrees[number]
        assert row["frequency"] == len(own[number])
        assert all(row["id"] in units[one]["entity_ids"] for one in row["text_unit_ids"])
    for row in found["relationships"]:
        ends = entities[row["source"]], entities[row["target"]]
        number = row["human_readable_id"]
        assert [end["human_readable_id"] for end in ends] == [tables.source[number], tables.target[number]]
        assert row["combined_degree"] == sum(end["degree"] for end in ends)
        assert all(row["id"] in units[one]["relationship_ids"] for one in row["text_unit_ids"])
    for row in found["text_units"]:
        assert row["text"] in documents[row["document_id"]]["text"]
        assert row["id"] in documents[row["document_id"]]["text_unit_ids"]
    assert sum(len(row["text_unit_ids"]) for row in documents.values()) == len(units)
    assert json.loads(found["documents"][0]["raw_data"])["team"] == "polar"


def test_communities_have_levels_and_members(index: Index, target: Path) -> None:
    export_graph(index, "graphrag", target, graph="noderag", communities=True)
    found = read(target)
    communities = {row["community"]: row for row in found["communities"]}
    entities = {row["id"]: row["title"] for row in found["entities"]}
    edges = {row["id"]: row for row in found["relationships"]}
    assert max(row["level"] for row in communities.values()) > 0
    assert len(found["community_reports"]) == len(communities)
    for row in communities.values():
        titles = {entities[one] for one in row["entity_ids"]}
        assert row["size"] == len(titles) == len(row["entity_ids"])
        assert (row["parent"] < 0) == (row["level"] == 0)
        if row["parent"] >= 0:
            above = communities[row["parent"]]
            assert row["community"] in above["children"]
            assert set(row["entity_ids"]) <= set(above["entity_ids"])
        wanted = {one for one, edge in edges.items() if {edge["source"], edge["target"]} <= titles}
        assert set(row["relationship_ids"]) == wanted
    for report in found["community_reports"]:
        own = communities[report["community"]]
        assert (report["level"], report["parent"], report["size"]) == (
            own["level"],
            own["parent"],
            own["size"],
        )
        assert report["rating_explanation"] == EXTRACTIVE
        assert 0 < report["rank"] <= 10
        assert json.loads(report["full_content_json"])["findings"] == report["findings"]
        assert all(finding["summary"] in report["full_content"] for finding in report["findings"])


def test_stored_communities_are_those_of_the_index(index: Index, target: Path) -> None:
    export_graph(index, "graphrag", target, graph="noderag")
    labels = tables_of(index, "noderag").communities
    assert labels is not None
    found = read(target)
    number = {row["id"]: row["human_readable_id"] for row in found["entities"]}
    for row in found["communities"]:
        members = [number[one] for one in row["entity_ids"]]
        assert len({int(labels[one]) for one in members}) == 1
        assert len(members) == int((labels == labels[members[0]]).sum())
    listed = sum(row["size"] for row in found["communities"])
    assert listed == int((labels != 2**32 - 1).sum())


def test_without_communities_their_tables_are_left_out(index: Index, target: Path) -> None:
    export_graph(index, "graphrag", target)
    assert sorted(read(target)) == ["documents", "entities", "relationships", "text_units"]


def test_the_older_layout(index: Index, target: Path) -> None:
    export_graph(index, "graphrag", target, schema=2)
    found = read(target)
    assert list(found["entities"][0]) == [*SCHEMAS["entities"], "x", "y"]
    assert list(found["text_units"][0])[4] == "document_ids"
    assert list(found["documents"][0])[-1] == "metadata"
    documents = {row["id"] for row in found["documents"]}
    assert all(set(row["document_ids"]) <= documents for row in found["text_units"])


def test_a_part_has_only_its_passages(index: Index, target: Path) -> None:
    export_graph(index, "graphrag", target, neighbourhood_of="Ernest Shackleton")
    found = read(target)
    used = {one for row in (*found["entities"], *found["relationships"]) for one in row["text_unit_ids"]}
    assert {row["id"] for row in found["text_units"]} == used
    assert [row["title"] for row in found["documents"]] == ["Endurance"]


def test_ids_depend_on_the_content_alone(index: Index, target: Path) -> None:
    export_graph(index, "graphrag", target)
    export_graph(index, "graphrag", target.with_name("part"), neighbourhood_of="Fram")
    whole, some = read(target), read(target.with_name("part"))
    for name in ("entities", "relationships", "text_units", "documents"):
        assert {row["id"] for row in some[name]} <= {row["id"] for row in whole[name]}
