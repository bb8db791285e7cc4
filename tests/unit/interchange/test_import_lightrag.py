"""A working directory that LightRAG wrote becomes an index; damaged ones are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.interchange import BUNDLE, IMPORTED
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import ConfigError, DocumentError
from ketrag_fast.interchange.importing import READERS, ImportReport, import_index
from ketrag_fast.interchange.lightrag_reader import CHUNKS, DOCUMENTS, GRAPH, read_lightrag
from tests.process import ROOT

RECORDED = ROOT / "tests" / "data" / "lightrag"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    target = tmp_path / "storage"
    target.mkdir()
    for name in (DOCUMENTS, CHUNKS, GRAPH):
        shutil.copyfile(RECORDED / name, target / name)
    return target


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ImportReport, Index]]:
    path = tmp_path_factory.mktemp("lightrag") / "index"
    report = import_index("lightrag", RECORDED, path)
    with Index.open(path) as index:
        yield report, index


def test_the_command_offers_every_format() -> None:
    assert (BUNDLE, *READERS) == IMPORTED


def test_everything_is_taken_over(imported: tuple[ImportReport, Index]) -> None:
    report, index = imported
    assert (report.documents, report.passages) == (2, 4)
    assert (report.entities, report.entities_taken) == (6, 6)
    assert (report.relations, report.relations_taken) == (5, 5)
    assert report.skipped == ()
    assert [row["what"] for row in report.notes] == ["keywords of relations are not kept"]
    texts = json.loads((RECORDED / DOCUMENTS).read_text())
    stored = {one.id: one for one in index.inspect.stored()}
    assert {name: row["content"] for name, row in texts.items()} == {n: one.text for n, one in stored.items()}
    assert stored["doc-fram"].title == stored["doc-fram"].metadata["file_path"] == "fram.txt"
    fram = index.inspect.entity("Fram")
    assert (fram.type, fram.description) == ("ARTIFACT", "Fram is mentioned here.")
    assert {(r.source, r.target, r.weight) for r in fram.relations} == {
        ("FRIDTJOF NANSEN", "FRAM", 1.0),
        ("FRAM", "COLIN ARCHER", 1.0),
        ("FRAM", "ROALD AMUNDSEN", 1.0),
    }
    assert {span.document for span in fram.sources} == {"doc-fram", "doc-maud"}


def test_the_modes_of_the_skeleton_work(imported: tuple[ImportReport, Index]) -> None:
    index = imported[1]
    assert {"bm25", "text", "walk", "keyword", "skeleton", "ket"} <= set(index.modes)
    for mode in index.modes:
        context = index.retrieve("Who built the Fram?", mode=mode, budget=400)
        assert any("Colin Archer" in passage.text for passage in context.passages), mode


def test_documents_can_be_added_later(folder: Path, tmp_path: Path) -> None:
    import_index("lightrag", folder, tmp_path / "index")
    (tmp_path / "gjoa.txt").write_text("Roald Amundsen sailed the Gjoa through the Northwest Passage.")
    with Index.open(tmp_path / "index") as index:
        report = index.update(add=tmp_path / "gjoa.txt")
        assert (report.documents, report.added) == (3, 1)
        assert len(index.inspect.entity("Fram").relations) == 3
        assert any("Gjoa" in p.text for p in index.retrieve("the Gjoa", mode="bm25").passages)


def test_the_recording_rebuilds_the_index(folder: Path, tmp_path: Path) -> None:
    report = import_index("lightrag", folder, tmp_path / "index")
    with Index.open(tmp_path / "index") as index:
        documents, digest = list(index.inspect.stored()), index.digest
    settings = Settings(llm=f"replay:{report.recording}", core_ratio=1.0)
    with Index.build(documents, tmp_path / "again", settings=settings) as again:
        assert again.digest == digest


def test_a_workspace_below_is_found(folder: Path, tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    folder.rename(above / "one")
    assert len(read_lightrag(above).entities) == 6
    shutil.copytree(above / "one", above / "two")
    with pytest.raises(DocumentError, match="2 workspaces: one, two"):
        read_lightrag(above)


def change(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (DOCUMENTS, None, DOCUMENTS),
        (CHUNKS, None, CHUNKS),
        (GRAPH, None, "working directory of LightRAG"),
        (DOCUMENTS, "{", "not JSON"),
        (DOCUMENTS, "[" * 100_000, "not JSON"),
        (DOCUMENTS, "[1]", "holds a list"),
        (CHUNKS, '{"a": 1}', "'a'"),
        (DOCUMENTS, "{}", "no document"),
        (GRAPH, "<graphml><graph><node", "not XML"),
        (
            GRAPH,
            '<!DOCTYPE g [<!ENTITY a "b"><!ENTITY c "&a;&a;&a;">]><graphml>&c;</graphml>',
            "entity declarations",
        ),
        (GRAPH, '<!DOCTYPE g [<!ENTITY a SYSTEM "file:///etc/passwd">]><g>&a;</g>', "entity declarations"),
    ],
)
def test_bad_files_are_refused(
    folder: Path, tmp_path: Path, name: str, content: str | None, said: str
) -> None:
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    with pytest.raises(DocumentError) as found:
        import_index("lightrag", folder, tmp_path / "index")
    assert said in f"{found.value} {found.value.hint}"
    assert [path.name for path in tmp_path.iterdir()] == ["storage"]


def test_what_leads_nowhere_is_listed(folder: Path, tmp_path: Path) -> None:
    change(folder, GRAPH, "doc-fram-chunk-000&lt;SEP&gt;doc-maud-chunk-000", "chunk-gone")
    change(
        folder, GRAPH, "doc-fram-chunk-000&lt;SEP&gt;doc-fram-chunk-001", "gone&lt;SEP&gt;doc-fram-chunk-000"
    )
    change(folder, GRAPH, '<data key="d0">Larvik</data>', '<data key="d0">...</data>')
    change(folder, CHUNKS, '"full_doc_id": "doc-maud"', '"full_doc_id": "doc-gone"')
    found = import_index("lightrag", folder, tmp_path / "index")
    counts = {row["what"]: (row["count"], row["examples"]) for row in found.skipped}
    assert counts["chunks of documents that do not exist"][0] == 2
    assert counts["entities without a passage"][1][0] == "Fram"
    assert counts["entities whose name is unusable"] == (1, ["..."])
    assert counts["ids of passages in entities that do not exist"][0] >= 2
    assert counts["relations without a passage"][0] >= 1
    with Index.open(tmp_path / "index") as index:
        assert index.inspect.entity("Fridtjof Nansen").description


def test_several_descriptions_are_several_lines(folder: Path, tmp_path: Path) -> None:
    long = "word " * 900
    change(folder, GRAPH, "Maud is mentioned here.", f"One ship.&lt;SEP&gt;Two masts.&lt;SEP&gt;{long}")
    found = import_index("lightrag", folder, tmp_path / "index")
    assert "descriptions cut to 2,000 characters" in {row["what"] for row in found.notes}
    with Index.open(tmp_path / "index") as index:
        lines = index.inspect.entity("Maud").description.split("\n")
    assert lines[:2] == ["One ship.", "Two masts."]


def test_a_name_that_is_not_in_the_text_is_kept(folder: Path, tmp_path: Path) -> None:
    change(folder, GRAPH, '<data key="d0">Larvik</data>', '<data key="d0">NORWEGIAN HARBOUR</data>')
    import_index("lightrag", folder, tmp_path / "index", settings=Settings(chunk_tokens=20))
    with Index.open(tmp_path / "index") as index:
        assert len(index.inspect.arrays()["units"]["chunk_tokens"]) > 4
        entity = index.inspect.entity("Norwegian harbour")
        assert len(entity.chunks) == 1
        units = index.inspect.arrays()["skeleton"]["entity_units_indices"]
        assert len(units) > 6


def test_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "index"
    argv = ["import", "lightrag", str(folder), "-i", str(target)]
    assert main(argv) == 0
    said = capsys.readouterr()
    assert "6 of 6 entities" in said.out
    assert "keywords of relations" in said.err
    assert main(argv) == 2
    assert "--replace" in capsys.readouterr().err
    change(folder, CHUNKS, '"full_doc_id": "doc-maud"', '"full_doc_id": "doc-gone"')
    assert main([*argv, "--replace", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "ketrag/import/1"
    assert found["skipped"][0] == {
        "what": "chunks of documents that do not exist",
        "count": 2,
        "examples": ["doc-maud-chunk-000", "doc-maud-chunk-001"],
    }


def test_the_methods_of_an_index(folder: Path, tmp_path: Path) -> None:
    with Index.from_lightrag(folder, tmp_path / "index") as index:
        assert index.inspect.entity("Fram").type == "ARTIFACT"
        report = index.export("jsonl", tmp_path / "fram.jsonl", neighbourhood_of="Fram")
        assert report.nodes == 4
        index.export("graphrag", tmp_path / "tables")
    with pytest.raises(ConfigError, match="already exists"):
        Index.from_lightrag(folder, tmp_path / "index")
    with Index.from_graphrag(tmp_path / "tables", tmp_path / "index", replace=True) as again:
        assert len(again.inspect.entity("Fram").relations) == 3


def test_an_unknown_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'neo4j'") as found:
        import_index("neo4j", tmp_path, tmp_path / "index")
    assert "lightrag" in str(found.value.hint)
