from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import BackendError
from ketrag_fast.models.extraction.graphrag import passage_of, record_graphrag
from ketrag_fast.models.extraction.recording import Recording
from ketrag_fast.models.extraction.records import EntityRecord, RelationRecord
from tests.support.parts import part

PASSAGE = "Marie Curie was born in Warsaw.\nText: she read.\n######\n"
PASSAGE += "In 1903 she shared the Nobel Prize with Pierre."
REPLY = (
    '("entity"<|>MARIE CURIE<|>PERSON<|>A physicist)\n##\n("entity"<|>WARSAW<|>GEO<|>A city)\n##\n'
    '("relationship"<|>MARIE CURIE<|>WARSAW<|>was born in<|>8)<|COMPLETE|>'
)
MORE = '("entity"<|>PIERRE<|>PERSON<|>A husband)<|COMPLETE|>'


def prompt(passage: str) -> str:
    return (
        "-Goal-\nGiven a text ...\nText:\nan example\n------\noutput:\n"
        f"######################\n-Real Data-\n######################\nEntity_types: person\n"
        f"Text: {passage}\n"
        "######################\nOutput:"
    )


def cache(folder: Path) -> Path:
    """Entries as graphrag wrote them: with a plain prompt, and with the messages of a talk."""
    inner = folder / "cache" / "entity_extraction"
    inner.mkdir(parents=True)
    plain = {"result": REPLY, "input": prompt(PASSAGE), "parameters": {"model": "m"}}
    talk = {
        "result": {"choices": [{"message": {"content": MORE}}]},
        "input": {
            "messages": [{"role": "user", "content": prompt(PASSAGE)}, {"content": "MANY were missed"}]
        },
    }
    lost = {"result": MORE, "input": "MANY entities were missed in the last extraction."}
    other = {"result": "a summary", "input": prompt("of something")}
    for number, entry in enumerate((plain, talk, lost, other, [1])):
        (inner / f"chat-{number}").write_text(json.dumps(entry))
    (inner / "broken").write_text("{")
    return folder


def test_the_passage_is_found_in_a_prompt() -> None:
    assert passage_of(prompt(PASSAGE)) == PASSAGE
    assert passage_of(prompt("x").replace("Text:", "text:").replace("Output", "output")) == "x"
    assert passage_of("no prompt") is None


def test_a_cache_becomes_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "r.jsonl"
    folder = cache(tmp_path / "root")
    assert main(["recording", "from-graphrag", str(folder), "--output", str(target), "--json"]) == 3
    said = json.loads(capsys.readouterr().out)
    assert (said["origin"], said["passages"], said["entities"], said["relations"]) == ("cache", 1, 3, 1)
    assert (said["skipped"], said["dropped"]) == (1, 0)
    found = Recording.open(target).extraction_for("d", 0, 9, "", PASSAGE)
    assert found is not None
    assert found.entities[2] == EntityRecord("PIERRE", "PERSON", "A husband")
    assert found.relations == (RelationRecord("MARIE CURIE", "WARSAW", "was born in", 8.0),)
    assert main(["recording", "from-graphrag", str(folder), "--output", str(target)]) == 2


@pytest.mark.parametrize("names", [("entities", "relationships", "text_units"), None])
def test_tables_become_a_recording(tmp_path: Path, names: tuple[str, str, str] | None) -> None:
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
    found = record_graphrag(tmp_path / "root", target)
    assert (found.origin, found.passages, found.entities, found.relations, found.dropped) == (
        "tables",
        3,
        3,
        2,
        2,
    )
    recording = Recording.open(target)
    first = recording.extraction_for("d", 0, 9, "", PASSAGE)
    assert first is not None
    assert first.entities[1] == EntityRecord("WARSAW", "GEO", "")
    assert first.relations == (RelationRecord("MARIE CURIE", "WARSAW", "d", 4.5),)
    (folder / f"{names[0]}.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(BackendError, match="cannot be read"):
        record_graphrag(tmp_path / "root", tmp_path / "s.jsonl")


def test_a_folder_with_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="neither"):
        record_graphrag(tmp_path, tmp_path / "r.jsonl")
    with pytest.raises(BackendError, match="no such folder"):
        record_graphrag(tmp_path / "none", tmp_path / "r.jsonl")
    assert not (tmp_path / "r.jsonl").exists()
