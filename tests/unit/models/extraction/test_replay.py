from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.errors import BackendError, ConfigError
from ketrag_fast.models.extraction.recording import Recording, RecordingWriter
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord

TEXT = "Marie Curie was born in Warsaw. Later she moved to Paris and met Pierre."
WARSAW, PARIS = EntityRecord("Warsaw", "place", "a &lt; b"), EntityRecord("Paris")
BORN = RelationRecord("Marie Curie", "Warsaw", "born", 8.0)
MOVED = RelationRecord("Marie Curie", "Paris", "moved", 0.5)
WHOLE = Extraction((EntityRecord("Marie Curie", "person", "x"), WARSAW, PARIS), (BORN, MOVED), 2)


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    path = tmp_path / "r.jsonl"
    with RecordingWriter(path, {"model": "m"}) as writer:
        writer.write("a.md", 0, len(TEXT), WHOLE)
        writer.write("b.md", 10, 20, Extraction())
    return path


def test_a_unit_of_the_same_span_gets_what_was_written(ours: Path) -> None:
    recording = Recording.open(ours)
    assert len(recording) == 2
    assert recording.extraction_for("a.md", 0, len(TEXT), "", "whatever") == WHOLE
    assert recording.extraction_for("b.md", 10, 20, "", "x") == Extraction()


def test_any_other_unit_gets_the_items_that_it_names(ours: Path) -> None:
    recording = Recording.open(ours)
    second = recording.extraction_for("a.md", 32, len(TEXT), "", TEXT[32:])
    assert second == Extraction((PARIS,), (MOVED,), 2)
    titled = recording.extraction_for("a.md", 32, len(TEXT), "Marie Curie", TEXT[32:])
    assert titled is not None
    assert (len(titled.entities), titled.relations) == (2, (BORN, MOVED))


@pytest.mark.parametrize(("start", "end"), [(0, 10), (20, 30), (21, 21)])
def test_what_does_not_overlap_is_missing(ours: Path, start: int, end: int) -> None:
    recording = Recording.open(ours)
    assert recording.extraction_for("b.md", start, end, "", "x") is None
    assert recording.extraction_for("c.md", 0, 9, "", "x") is None
    assert recording.extraction_for("b.md", 19, 21, "", "x") == Extraction()


def test_the_fingerprint_is_the_content(ours: Path, tmp_path: Path) -> None:
    moved = tmp_path / "other.jsonl"
    moved.write_bytes(ours.read_bytes())
    assert Recording.open(moved).fingerprint == Recording.open(ours).fingerprint
    moved.write_bytes(ours.read_bytes() + b"\n")
    assert Recording.open(moved).fingerprint != Recording.open(ours).fingerprint


def test_hipporags_layout(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "o.jsonl",
        {
            "corpus-id": "7",
            "entities": ["Marie Curie", "Warsaw", "Rome", 5, "x" * 10_000],
            "triples": [
                ["Marie Curie", "born in", "Warsaw"],
                ["Marie Curie", "met"],
                ["a", "b", "c", "d"],
                ["Warsaw", "is", "warsaw"],
                ["Marie Curie", "liked", "the sea"],
                ["Rome", "is in", "Italy"],
                "no triple",
            ],
        },
    )
    recording = Recording.open(path)
    found = recording.extraction_for("7", 0, len(TEXT), "", TEXT)
    assert found == Extraction(
        (EntityRecord("Marie Curie"), EntityRecord("Warsaw")),
        (
            RelationRecord("Marie Curie", "Warsaw", "Marie Curie born in Warsaw", 1.0),
            RelationRecord("Marie Curie", "the sea", "Marie Curie liked the sea", 1.0),
        ),
        5,
    )
    assert recording.extraction_for("8", 0, 1, "", TEXT) is None


def test_passages_known_by_their_text(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    long = f"{TEXT} {TEXT.replace('Paris', 'London')}"
    with RecordingWriter(path) as writer:
        writer.write_text(long, WHOLE)
        writer.write_text(
            "彼は東京で話した。それから京都へ行って、友だちに会った。", Extraction((EntityRecord("京都"),))
        )
    recording = Recording.open(path)
    assert recording.extraction_for("any", 0, 9, "", long) == WHOLE
    part = recording.extraction_for("any", 5, 60, "", TEXT)
    assert part is not None
    assert [e.name for e in part.entities] == ["Marie Curie", "Warsaw", "Paris"]
    assert recording.extraction_for("any", 5, 60, "", "それから京都へ行って、友だちに会った。") == Extraction(
        (EntityRecord("京都"),)
    )
    assert recording.extraction_for("any", 5, 60, "", "Something else was born in Warsaw.") is None


def test_malformed_lines_are_skipped_and_the_rest_serves(tmp_path: Path) -> None:
    good = {"document": "a", "start": 0, "end": 9, "entities": [], "relations": []}
    path = lines(
        tmp_path / "m.jsonl",
        "{",
        "[1]",
        "[" * 100_000,
        {**good, "start": -1},
        {**good, "end": True},
        {**good, "entities": None},
        {**good, "document": None},
        {"corpus-id": [], "entities": [], "triples": []},
        {**good, "entities": [["a"], None, [1, 2, 3], ["é", "t", "d"]], "dropped": "many"},
        "",
    )
    recording = Recording.open(path)
    assert len(recording) == 1
    found = recording.extraction_for("a", 0, 9, "", "")
    assert found == Extraction((EntityRecord("1", "2", "3"), EntityRecord("é", "t", "d")), (), 2)


def test_of_two_records_of_a_span_the_later_holds_and_overlaps_are_told_once(tmp_path: Path) -> None:
    def row(start: int, end: int, *names: str) -> dict[str, Any]:
        entities = [[name, "", ""] for name in names]
        return {"document": "a", "start": start, "end": end, "entities": entities, "relations": []}

    path = lines(tmp_path / "d.jsonl", row(0, 9, "Rome"), row(0, 9, "Paris", "Warsaw"), row(5, 20, "Warsaw"))
    recording = Recording.open(path)
    assert len(recording) == 2
    found = recording.extraction_for("a", 4, 12, "", "Paris, Rome, Warsaw")
    assert found is not None
    assert [e.name for e in found.entities] == ["Paris", "Warsaw"]


def test_no_recording_says_so(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="cannot be read"):
        Recording.open(tmp_path / "none.jsonl")
    with pytest.raises(BackendError, match="line 1"):
        Recording.open(lines(tmp_path / "x.jsonl", "hello"))
    with pytest.raises(BackendError, match="unsupported recording schema"):
        Recording.open(lines(tmp_path / "y.jsonl", {"schema": "ketrag/recording/9"}))
    assert len(Recording.open(lines(tmp_path / "z.jsonl", {"schema": "ketrag/recording/1"}))) == 0


def test_a_recording_is_not_written_over(ours: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="exists"):
        RecordingWriter(ours)
    with pytest.raises(ConfigError, match="no such folder"):
        RecordingWriter(tmp_path / "none" / "r.jsonl")
    with pytest.raises(RuntimeError), RecordingWriter(ours, replace=True) as writer:
        writer.write("a", 0, 1, Extraction())
        raise RuntimeError
    assert len(Recording.open(ours)) == 2


def test_the_recorded_extraction_of_a_real_model(passages: Path) -> None:
    folder = passages
    recording = Recording.open(folder / "openie.gpt-3.5-turbo-1106.jsonl")
    entities = relations = dropped = 0
    for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines():
        passage = json.loads(line)
        found = recording.extraction_for(
            passage["_id"], 0, len(passage["text"]), passage["title"], passage["text"]
        )
        assert found is not None
        entities += len(found.entities)
        relations += len(found.relations)
        dropped += found.dropped
    lines = (folder / "openie.gpt-3.5-turbo-1106.jsonl").read_text("utf-8").splitlines()
    declared = sum(len(json.loads(line)["triples"]) for line in lines)
    assert (entities, relations, dropped) == (1_207, 1_146, 12)
    assert relations <= declared - dropped
