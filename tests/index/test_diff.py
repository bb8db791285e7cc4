"""What differs between two indexes, or generations of one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import ConfigError, IndexMissing, ModeUnavailable
from ketrag_fast.index.difference import IndexDifference

TEXTS = {
    "fram": "The Fram was built by Colin Archer. Fridtjof Nansen sailed the Fram to the north.",
    "nansen": "Fridtjof Nansen was born in Oslo.\n\nFridtjof Nansen crossed Greenland with Otto Sverdrup.",
    "oslo": "Oslo is a town in Norway. Roald Amundsen lived near Oslo.",
    "wild": "Frank Wild died at Klerksdorp. Ernest Shackleton trusted Frank Wild.",
}
DOCUMENTS = [Document(name, text, name.title(), {"year": 1900}) for name, text in TEXTS.items()]
RULES = Settings(llm="heuristic", core_ratio=1.0)


def build(place: Path, documents: list[Document], settings: Settings = RULES) -> Path:
    Index.build(documents, place, settings=settings, replace=place.exists()).close()
    return place


def diff(
    before: Path, after: Path, questions: Sequence[str] = (), settings: Settings | None = None
) -> IndexDifference:
    with Index.open(before, settings=settings) as one, Index.open(after, settings=settings) as other:
        return one.inspect.diff(other, questions)


def test_equal_indexes_do_not_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = build(tmp_path / "a", DOCUMENTS), build(tmp_path / "b", DOCUMENTS)
    found = diff(one, other, questions=["Who built the Fram?"])
    assert found.same
    assert not (found.documents or found.entities or found.relations or found.rankings or found.stages)
    assert (found.settings, found.models, found.sizes, found.questions) == ((), (), (), 1)
    assert main(["bench", "diff", str(one), str(other)]) == 0
    assert capsys.readouterr().out == "the indexes are equal byte for byte\n"


def test_documents_entities_and_relations(tmp_path: Path) -> None:
    one = build(tmp_path / "a", DOCUMENTS)
    changed = [
        DOCUMENTS[0],
        replace(
            DOCUMENTS[1], text="Fridtjof Nansen was born in Oslo. Hjalmar Johansen went with Fridtjof Nansen."
        ),
        replace(DOCUMENTS[2], metadata={"year": 1901}),
        Document("new", "Tom Crean met Frank Bickerton.", "New"),
    ]
    found = diff(one, build(tmp_path / "b", changed))
    assert (found.documents.added, found.documents.removed) == (("new",), ("wild",))
    assert found.documents.changed == ("nansen", "oslo")
    assert {"HJALMAR JOHANSEN", "TOM CREAN", "FRANK BICKERTON"} <= set(found.entities.added)
    assert {"OTTO SVERDRUP", "ERNEST SHACKLETON"} <= set(found.entities.removed)
    assert any("FRANK BICKERTON" in pair for pair in found.relations.added)
    assert any("ERNEST SHACKLETON" in pair for pair in found.relations.removed)
    assert not found.reordered
    assert ("documents", 4, 4) not in found.sizes
    back = diff(tmp_path / "b", one)
    assert (back.entities.added, back.entities.removed) == (found.entities.removed, found.entities.added)


def test_a_title_alone_and_an_order_alone(tmp_path: Path) -> None:
    one = build(tmp_path / "a", DOCUMENTS)
    titled = diff(one, build(tmp_path / "b", [replace(DOCUMENTS[0], title="Ship"), *DOCUMENTS[1:]]))
    assert titled.documents.changed == ("fram",)
    turned = diff(one, build(tmp_path / "c", DOCUMENTS[::-1]))
    assert turned.reordered and not turned.documents and not turned.same


@pytest.mark.parametrize("overlap", [0, 3])
def test_documents_that_are_cut_otherwise_are_the_same(tmp_path: Path, overlap: int) -> None:
    one = build(tmp_path / "a", DOCUMENTS, Settings())
    cut = Settings(chunk_tokens=9, overlap=overlap, cut="windows")
    found = diff(one, build(tmp_path / "b", DOCUMENTS, cut))
    assert not found.documents and not found.same
    assert ("chunk_tokens", 200, 9) in found.settings
    less = [*DOCUMENTS[:3], replace(DOCUMENTS[3], text=DOCUMENTS[3].text[:-2])]
    assert diff(one, build(tmp_path / "c", less, cut)).documents.changed == ("wild",)


def test_generations_of_one_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = build(tmp_path / "ix", DOCUMENTS)
    with Index.open(place) as index:
        index.update(remove="wild")
    file = tmp_path / "q.jsonl"
    questions = ["Who trusted Frank Wild?", "Where was Fridtjof Nansen born?"]
    file.write_text("".join(json.dumps({"_id": str(n), "text": q}) + "\n" for n, q in enumerate(questions)))
    argv = [
        "bench",
        "diff",
        str(place / "gen-000001"),
        str(place),
        "--questions",
        str(file),
        "--mode",
        "bm25",
    ]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "documents: 0 added, 1 removed, 0 changed\n  - wild\n" in out
    assert "    - wild:0-" in out
    assert main([*argv, "--top", "1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["same"], data["questions"], len(data["rankings"])) == (False, 2, 1)
    assert data["rankings"][0]["question"] == questions[0]
    assert data["rankings"][0]["shared"] == 0.0
    assert data["documents"]["removed"] == ["wild"]
    # A generation answers questions, and nothing can be built in it.
    with Index.open(place / "gen-000001") as old:
        assert old.retrieve(questions[0], mode="bm25").passages[0].document == "wild"
        assert not old.refresh()
        with pytest.raises(IndexMissing):
            old.update(remove="oslo")
    assert not (place / "gen-000001" / "work").exists()


def test_what_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = build(tmp_path / "a", DOCUMENTS, Settings(modes="bm25"))
    with pytest.raises(IndexMissing):
        diff(one, tmp_path / "nothing")
    with pytest.raises(ModeUnavailable):
        diff(one, one, questions=["Who?"], settings=Settings(mode="ket"))
    assert main(["bench", "diff", str(one), str(one), "--questions", str(tmp_path / "no")]) == 1
    (tmp_path / "bad").write_text("no json\n")
    assert main(["bench", "diff", str(one), str(one), "--questions", str(tmp_path / "bad")]) == 1
    assert "line 1 is not JSON" in capsys.readouterr().err
    with pytest.raises(ConfigError):
        diff(one, one, settings=Settings(chunk_tokens=50))
