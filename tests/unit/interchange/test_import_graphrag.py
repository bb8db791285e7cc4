"""GraphRAG's tables of each layout become an index; what an export wrote comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.base.progress import Event
from ketrag_fast.errors import Cancelled, ConfigError, DocumentError, ReadOnly
from ketrag_fast.interchange.exporting import export_graph
from ketrag_fast.interchange.importing import import_index
from ketrag_fast.query.themes.summaries import latest_summaries
from ketrag_fast.storage.layout import Layout
from tests.support.parts import part
from tests.unit.interchange.conftest import DOCUMENTS
from tests.unit.interchange.test_graph_tables import column, named_edges, tables_of

TEXT = "Marie Curie was born in Warsaw. In 1903 she shared the Nobel Prize with Pierre Curie."
UNITS = ["Marie Curie was born in Warsaw. In 1903", "In 1903 she shared the Nobel Prize with Pierre Curie."]


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    arrow, parquet = part("pyarrow", "checks"), part("pyarrow.parquet", "checks")
    folder.mkdir(exist_ok=True)
    parquet.write_table(arrow.Table.from_pylist(rows), folder / f"{name}.parquet")


def layout(folder: Path, version: int) -> Path:
    """The tables of one text, as each version of GraphRAG names them."""
    prefix = "create_final_" if version == 1 else ""
    name = "name" if version == 1 else "title"
    owner: dict[str, Any] = {"document_id": "d1"} if version == 3 else {"document_ids": ["d1"]}
    entities = (
        ("e1", "MARIE CURIE", "PERSON", "A physicist", ["u1", "u2"]),
        ("e2", "WARSAW", "GEO", "A city", ["u1"]),
        ("e3", "PIERRE CURIE", "PERSON", "A physicist", ["u2"]),
    )
    columns: tuple[str, ...] = ("id", name, "type", "description", "text_unit_ids")
    write(folder, f"{prefix}entities", [dict(zip(columns, row, strict=True)) for row in entities])
    relations = (
        ("r1", "MARIE CURIE", "WARSAW", "born in", 8.0, ["u1"]),
        ("r2", "MARIE CURIE", "PIERRE CURIE", "married", 9.0, ["u2"]),
    )
    columns = ("id", "source", "target", "description", "weight", "text_unit_ids")
    write(folder, f"{prefix}relationships", [dict(zip(columns, row, strict=True)) for row in relations])
    units = [{"id": f"u{number}", "text": text, **owner} for number, text in enumerate(UNITS, 1)]
    write(folder, f"{prefix}text_units", units)
    text = "raw_content" if version == 1 else "text"
    write(folder, f"{prefix}documents", [{"id": "d1", "title": "curie.txt", text: TEXT}])
    return folder


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_layout_is_read(tmp_path: Path, version: int) -> None:
    layout(tmp_path / "output", version)
    found = import_index("graphrag", tmp_path, tmp_path / "index")
    assert (found.documents, found.passages, found.skipped, found.notes) == (1, 2, (), ())
    assert (found.entities_taken, found.relations_taken) == (3, 2)
    with Index.open(tmp_path / "index") as index:
        (document,) = index.inspect.stored()
        assert document == Document("curie.txt", TEXT, "curie.txt", {"graphrag_id": "d1"})
        edges = named_edges(tables_of(index, "skeleton"), "description", "weight")
        assert edges == [
            ("MARIE CURIE", "WARSAW", "born in", 8.0),
            ("MARIE CURIE", "PIERRE CURIE", "married", 9.0),
        ]
        assert index.inspect.entity("Warsaw").type == "GEO"


@pytest.mark.parametrize("schema", [2, 3])
def test_an_export_comes_back(index: Index, tmp_path: Path, schema: int) -> None:
    export_graph(index, "graphrag", tmp_path / "out", schema=schema, communities=True)
    found = import_index("graphrag", tmp_path / "out", tmp_path / "again")
    assert found.skipped == ()
    assert found.reports == 0
    assert [row["what"] for row in found.notes] == [
        "extractive reports, which no model has written, are left out"
    ]
    with Index.open(tmp_path / "again") as again:
        assert [(one.id, one.text, one.metadata) for one in again.inspect.stored()] == [
            (one.id, one.text, dict(one.metadata)) for one in DOCUMENTS
        ]
        before, after = tables_of(index, "skeleton"), tables_of(again, "skeleton")
        for name in ("name", "type", "description", "units"):
            assert sorted(map(str, column(after.nodes, name, len(after)))) == sorted(
                map(str, column(before.nodes, name, len(before)))
            )
        assert sorted(named_edges(after, "description", "weight")) == sorted(
            named_edges(before, "description", "weight")
        )
        assert again.retrieve("Who lost the Endurance?", mode="ket").passages[0].document == "endurance"


REPORTS: list[dict[str, Any]] = [
    {"community": 0, "title": "Curie", "summary": "The Curies.", "children": [1, 2], "units": ["u1", "u2"]},
    {"community": 1, "title": "Warsaw", "summary": "Where she was born.", "children": [], "units": ["u1"]},
    {"community": 2, "title": "Nobel", "summary": "", "children": [], "units": ["u2"]},
    {"community": 3, "title": "Lost", "summary": "Of no passage.", "children": [], "units": ["u9"]},
]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_reports_of_communities_are_stored(tmp_path: Path, version: int) -> None:
    folder = layout(tmp_path / "output", version)
    prefix, name = ("create_final_", "id") if version == 1 else ("", "community")
    communities = [
        {
            name: str(row["community"]),
            "children": row["children"],
            "text_unit_ids": [",".join(row["units"])] if version == 1 else row["units"],
        }
        for row in REPORTS
    ]
    write(folder, f"{prefix}communities", communities)
    reports = [{key: row[key] for key in ("community", "title", "summary")} for row in REPORTS]
    reports.append({"community": 4, "title": "Nowhere", "summary": "Of no community."})
    write(folder, f"{prefix}community_reports", reports)
    found = import_index("graphrag", tmp_path, tmp_path / "index")
    assert found.reports == found.to_json()["reports"] == 2
    assert [(row["what"], row["examples"]) for row in found.skipped] == [
        ("reports without a summary", ["Nobel"]),
        ("ids of passages in reports that do not exist", ["u9"]),
        ("reports without a passage", ["Lost"]),
        ("reports without a community", ["Nowhere"]),
    ]
    stored = latest_summaries(Layout(tmp_path / "index").tables)
    assert stored.are_imported
    by_title = {one.summary.title: one for one in stored.summaries}
    assert {title: one.is_wide for title, one in by_title.items()} == {"Curie": True, "Warsaw": False}
    assert by_title["Curie"].sources >= by_title["Warsaw"].sources
    with Index.open(tmp_path / "index") as index:
        (theme,) = index.themes().themes
        assert theme.summary is not None and theme.summary.text == "Where she was born."


def test_smaller_chunks_lose_nothing(tmp_path: Path) -> None:
    layout(tmp_path / "output", 3)
    found = import_index("graphrag", tmp_path, tmp_path / "index", settings=Settings(chunk_tokens=16))
    assert (found.entities_taken, found.relations_taken) == (3, 2)
    with Index.open(tmp_path / "index") as index:
        tables = tables_of(index, "skeleton")
        assert [row[2:] for row in named_edges(tables, "weight")] == [(8.0,), (9.0,)]
        assert index.inspect.entity("Pierre Curie").sources[0].text.endswith("Pierre Curie.")


def test_without_documents_text_units_are_documents(tmp_path: Path) -> None:
    (layout(tmp_path / "output", 3) / "documents.parquet").unlink()
    found = import_index("graphrag", tmp_path, tmp_path / "index")
    assert found.documents == 2
    assert found.notes[0]["count"] == 2
    with Index.open(tmp_path / "index") as index:
        assert [one.text for one in index.inspect.stored()] == UNITS


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("entities", "remove", "no tables of GraphRAG"),
        ("text_units", "remove", "no tables of GraphRAG"),
        ("entities", "truncate", "cannot be read"),
        ("documents", "truncate", "cannot be read"),
        ("relationships", "columns", "no column 'source'"),
        ("text_units", "columns", "no column 'id'"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, name: str, damage: str, said: str) -> None:
    path = layout(tmp_path / "output", 3) / f"{name}.parquet"
    if damage == "remove":
        path.unlink()
    elif damage == "truncate":
        path.write_bytes(path.read_bytes()[:-20])
    else:
        write(path.parent, name, [{"other": 1}])
    with pytest.raises(DocumentError, match=said):
        import_index("graphrag", tmp_path, tmp_path / "index")
    assert [one.name for one in tmp_path.iterdir()] == ["output"]


def test_a_failed_import_leaves_the_old_index(tmp_path: Path) -> None:
    layout(tmp_path / "output", 3)
    import_index("graphrag", tmp_path, tmp_path / "index")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for stage in ("units", "skeleton"):

        def stop(event: Event, stage: str = stage) -> bool:
            return event.stage != stage

        with pytest.raises(Cancelled):
            import_index("graphrag", tmp_path, tmp_path / "index", replace=True, progress=stop)
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    with pytest.raises(ConfigError, match="already exists"):
        import_index("graphrag", tmp_path, tmp_path / "index")
    write(tmp_path / "output", "documents", [{"id": "d1", "title": "other.txt", "text": TEXT}])
    import_index("graphrag", tmp_path, tmp_path / "index", replace=True)
    with Index.open(tmp_path / "index") as index:
        assert [one.id for one in index.inspect.stored()] == ["other.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "index.recording.jsonl", "output"]


def test_only_an_index_is_replaced(tmp_path: Path) -> None:
    layout(tmp_path / "output", 3)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years of work")
    with pytest.raises(ReadOnly, match="other than an index"):
        import_index("graphrag", tmp_path / "output", tmp_path / "home", replace=True)
    assert (tmp_path / "home" / "thesis.txt").read_text() == "years of work"
    with pytest.raises(ConfigError, match="does not exist"):
        import_index("graphrag", tmp_path / "output", tmp_path / "nowhere" / "index")
