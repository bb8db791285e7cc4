from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import BackendError
from ketrag_fast.models.extraction.graphrag import record_graphrag
from ketrag_fast.models.extraction.recording import Recording
from ketrag_fast.models.extraction.records import EntityRecord, RelationRecord
from tests.support.parts import part

PASSAGE = "Marie Curie was born in Warsaw.\nText: she read.\n######\n"
PASSAGE += "In 1903 she shared the Nobel Prize with Pierre."


@pytest.mark.parametrize("names", [("entities", "relationships", "text_units"), None])
def test_tables_become_a_recording(
    tmp_path: Path, names: tuple[str, str, str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    arrow = part("pyarrow", "checks")
    parquet = part("pyarrow.parquet", "checks")
    old = names is None
    names = names or ("create_final_entities", "create_final_relationships", "create_final_text_units")
    folder = tmp_path / "root" / "output" / "artifacts"
    folder.mkdir(parents=True)
    label = "name" if old else "title"
    entities = [
        {
            "id": "1",
            label: "MARIE CURIE",
            "type": "PERSON",
            "description": "x",
            "text_unit_ids": ["u1", "u2"],
        },
        {"id": "2", label: "WARSAW", "type": "GEO", "description": None, "text_unit_ids": ["u1", "gone"]},
        {"id": "3", label: None, "type": "GEO", "description": "y", "text_unit_ids": ["u2"]},
    ]
    relations = [
        {
            "source": "MARIE CURIE",
            "target": "WARSAW",
            "description": "d",
            "weight": 9.0,
            "text_unit_ids": ["u1", "u2"],
        },
        {"source": "WARSAW", "target": "WARSAW", "description": "d", "weight": 1.0, "text_unit_ids": ["u2"]},
    ]
    units = [
        {"id": "u1", "text": PASSAGE},
        {"id": "u2", "text": "Curie again."},
        {"id": "u3", "text": "None."},
    ]
    for name, rows in zip(names, (entities, relations, units), strict=True):
        parquet.write_table(arrow.Table.from_pylist(rows), folder / f"{name}.parquet")
    target = tmp_path / "r.jsonl"
    command = ["recording", "from-graphrag", str(tmp_path / "root"), "--output", str(target)]
    assert main([*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [said[name] for name in ("passages", "entities", "relations", "dropped")] == [3, 3, 2, 2]
    assert main(command) == 2
    recording = Recording.open(target)
    first = recording.extraction_for("d", 0, 9, "", PASSAGE)
    assert first is not None
    assert first.entities[1] == EntityRecord("WARSAW", "GEO", "")
    assert first.relations == (RelationRecord("MARIE CURIE", "WARSAW", "d", 4.5),)
    (folder / f"{names[0]}.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(BackendError, match="cannot be read"):
        record_graphrag(tmp_path / "root", tmp_path / "s.jsonl")


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="no tables"):
        record_graphrag(tmp_path, tmp_path / "r.jsonl")
    with pytest.raises(BackendError, match="no such folder"):
        record_graphrag(tmp_path / "none", tmp_path / "r.jsonl")
    assert not (tmp_path / "r.jsonl").exists()
