"""Shards that were built apart become the index of one build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import (
    ConfigError,
)
from tests.support.merging import build, document


def folder(base: Path) -> Path:
    """Files of one document and of many, below one another."""
    (base / "deep").mkdir(parents=True)
    for name in ("zebra.md", "deep/alpha.md", "deep/mu.md", "beta.txt"):
        (base / name).write_text(document(name).text, "utf-8")
    (base / "page.html").write_text("<title>Page</title><p>Tom Crean met Nansen.</p>", "utf-8")
    (base / "walk.py").write_text('def walk() -> None:\n    """Goes."""\n', "utf-8")
    (base / "rows.csv").write_text("id,text\nc1,A river\nc2,A stone\n", "utf-8")
    (base / "zip.txt").symlink_to(base / "beta.txt")
    rows = [{"_id": f"row{n}", "title": "", "text": document(f"row{n}").text} for n in (3, 1, 2, 11, 7, 5)]
    (base / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (base / "bad.jsonl").write_text('{"_id": "ok", "text": "A ship in winter."}\n{"_id": 3\n', "utf-8")
    return base


@pytest.mark.parametrize("count", [1, 2, 5])
def test_shards_together_are_one_build(tmp_path: Path, count: int) -> None:
    """Whatever the order of the sources: it is in the shards as in the whole."""
    notes, other = folder(tmp_path / "notes"), tmp_path / "a-file.md"
    other.write_text("The Fram came home. Nansen was there.", "utf-8")
    given = [document(f"given{n}") for n in (4, 2, 9, 1)]
    sources = [notes, other, *given]
    wanted = build(tmp_path / "whole", sources)
    for number in range(1, count + 1):
        build(tmp_path / f"s{number}", sources, Settings(shard=f"{number}/{count}"))
        # It is remembered, and nothing changes when it is built again.
        with Index.build([], tmp_path / f"s{number}") as again:
            assert again.report is not None and not again.report.changed
            said = [text for text in again.report.warnings if "outside shard" in text]
            assert len(said) == (count > 1)
    places = [tmp_path / f"s{number}" for number in range(1, count + 1)]
    with Index.merge(reversed(places), tmp_path / "m") as merged:
        assert merged.digest == wanted
        assert merged.stats()["settings"]["shard"] is None
        assert [failure.document for failure in merged.report.failures] == ["bad.jsonl:2"]  # type: ignore[union-attr]
    with Index.build([], tmp_path / "m") as again:  # its sources are read again, and are the same
        assert again.digest == wanted


@pytest.mark.parametrize("count", [1, 2, 3])
def test_shards_without_documents_change_nothing(tmp_path: Path, count: int) -> None:
    """Wherever they come: merged first, last or between the others."""
    documents = [document(f"d{number}") for number in range(count)]
    wanted = build(tmp_path / "whole", documents)
    places = [tmp_path / f"s{number}" for number in range(1, 6)]
    for number, place in enumerate(places, 1):
        build(place, documents, Settings(shard=f"{number}/5"))
    for turn in range(5):
        with Index.merge([*places[turn:], *places[:turn]], tmp_path / f"m{turn}") as merged:
            assert merged.digest == wanted


def test_a_merge_that_lacks_a_shard_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = folder(tmp_path / "notes")
    (notes / "bad.jsonl").unlink()
    places = [str(tmp_path / f"s{number}") for number in range(4)]
    for number, place in enumerate(places, 1):
        assert main(["index", str(notes), "-i", place, "--shard", f"{number}/4"]) == 0
    capsys.readouterr()
    assert main(["merge", places[3], places[0], "-i", str(tmp_path / "half")]) == 0
    assert "shard 2/4, 3/4 is missing" in capsys.readouterr().err
    with Index.open(tmp_path / "half") as half:
        assert half.stats()["settings"]["shard"] == "1,4/4"
    assert main(["merge", *places[1:3], str(tmp_path / "half"), "-i", str(tmp_path / "all"), "--json"]) == 0
    assert "index is incomplete" not in capsys.readouterr().err
    with Index.open(tmp_path / "all") as merged:
        assert merged.digest == build(tmp_path / "whole", notes)
    build(tmp_path / "plain", notes)
    with pytest.raises(ConfigError, match="not shards of one build"):
        Index.merge([places[0], tmp_path / "plain"], tmp_path / "no")
    assert main(["index", str(notes), "-i", str(tmp_path / "x"), "--shard", "1/3"]) == 0
    with pytest.raises(ConfigError, match=r"shard 1/4; .* shard 1/3"):
        Index.merge([places[0], tmp_path / "x"], tmp_path / "no")


@pytest.mark.parametrize(
    "text", ["0/3", "4/3", "1", "1/0", "-1/3", "a/b", "1/3/5", "1,/3", "1/99999999", "²/3"]
)
def test_shards_that_make_no_sense(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="0 < I <= N"):
        Settings(shard=text)
    assert main(["index", ".", f"--shard={text}"]) == 2
