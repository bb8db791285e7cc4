"""What a change would do and take, without doing it; held against what it then took."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from tests import small_model
from tests.support.chat_rules import ChatEndpoint, read_by_rules

NAMES = ("Amundsen", "Shackleton", "Nansen", "Frank Wild", "Tom Crean")


def text(seed: str) -> str:
    dice = random.Random(seed)
    return " ".join(
        f"{dice.choice(NAMES)} met {dice.choice(NAMES)} by w{dice.randrange(40)} w{dice.randrange(40)}."
        for _ in range(8)
    )


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    base = tmp_path / "notes"
    base.mkdir()
    for number in range(12):
        (base / f"n{number}.md").write_text(text(str(number)), "utf-8")
    return base


def said(capsys: pytest.CaptureFixture[str], *argv: object, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*map(str, argv), "--dry-run", "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_build_is_foreseen(notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "ix"
    assert main(["index", str(notes), "-i", str(place)]) == 0
    (notes / "n1.md").unlink()
    (notes / "n2.md").write_text(text("changed"), "utf-8")
    (notes / "new.md").write_text(text("new"), "utf-8")
    before = sorted((p.name, p.stat().st_mtime_ns) for p in place.rglob("*.npy"))
    found = said(capsys, "index", "-i", place)
    assert found["documents"] == {"total": 12, "added": 1, "removed": 1, "updated": 1}
    assert found["characters"] == len(text("changed")) + len(text("new"))
    cost = found["cost"]
    assert (cost["embedding_tokens"], cost["calls"], cost["embedding"]) == (0, 0, 0.0)
    assert cost["seconds"] > 0 and cost["usd"]["total"] == 0.0
    found = said(capsys, "index", notes / "n3.md", "-i", place, "--replace")
    assert (found["documents"]["total"], found["documents"]["removed"]) == (1, 11)
    assert sorted((p.name, p.stat().st_mtime_ns) for p in place.rglob("*.npy")) == before
    with Index.open(place) as index:
        assert (index.generation, index.inspect.document_count) == (1, 12)
    (notes / "n1.md").write_text(text("1"), "utf-8")
    (notes / "n2.md").write_text(text("2"), "utf-8")
    (notes / "new.md").rename(tmp_path / "new.md")
    assert said(capsys, "index", "-i", place)["cost"]["seconds"] == 0
    assert main(["index", "-i", str(place), "--dry-run"]) == 0
    assert capsys.readouterr().out.count("\n") == 1, "what changes nothing takes no time"
    other = said(capsys, "index", "-i", place, "--modes", "bm25")["cost"]
    assert other["seconds"] is None and "modes" in other["note"]
    (tmp_path / "new.md").rename(notes / "new.md")
    assert main(["index", "-i", str(place), "--dry-run"]) == 0
    assert "it would take up to" in capsys.readouterr().out
    assert main(["index", "-i", str(place), "--dry-run", "--modes", "+knn"]) == 0
    found = capsys.readouterr()
    assert found.out.endswith("\n  it would take an unknown time\n"), (
        "no model is used: nothing else is unknown"
    )
    assert "no complete build" in found.err
    assert main(["index", str(notes), "-i", str(tmp_path / "none"), "--dry-run"]) == 4
    assert "ketrag estimate" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_tokens_of_new_documents(notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    place = tmp_path / "ix"
    with Index.build(notes, place, settings=Settings(embedder=f"native:{model}")) as index:
        more = [tmp_path / f"more{number}.md" for number in range(6)]
        for path in more:
            path.write_text(" ".join(text(f"{path.name}{part}") for part in range(6)), "utf-8")
        cost = said(capsys, "add", "-i", place, *more)["cost"]
        assert said(capsys, "remove", "-i", place, "n1.md")["cost"]["embedding_tokens"] == 0
        assert said(capsys, "add", "-i", place, notes)["cost"]["seconds"] == 0  # nothing would change
        usage = index.update(add=more).usage
    assert 0.7 < cost["embedding_tokens"] / usage.embedding_tokens < 1.4
    assert 0 < cost["embedding"] < cost["seconds"]
    # A merged index remembers no complete build, and says so.
    Index.merge([place], tmp_path / "m").close()
    found = said(capsys, "remove", "-i", tmp_path / "m", "n1.md")["cost"]
    assert (found["embedding_tokens"], found["seconds"]) == (0, None)
    assert "no complete build" in found["note"]
    (tmp_path / "other.md").write_text(text("other"), "utf-8")
    found = said(capsys, "add", "-i", tmp_path / "m", tmp_path / "other.md")["cost"]
    assert (found["embedding_tokens"], found["seconds"], found["usd"]["total"]) == (None, None, "unknown")
    assert main(["add", "-i", str(tmp_path / "m"), str(tmp_path / "other.md"), "--dry-run"]) == 0
    wanted = "it would take an unknown time, an unknown number of tokens to embed, an unknown sum of USD\n"
    assert capsys.readouterr().out.endswith(wanted)


@pytest.mark.usefixtures("loopback")
def test_calls_of_a_model(notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "ix"
    with ChatEndpoint(read_by_rules) as server:
        llm = server.spec
        settings = Settings(llm=llm, core_ratio=1.0)
        with Index.build(notes, place, settings=settings) as index:
            assert index.report is not None and index.report.usage.calls == 12
        new = tmp_path / "new.md"
        new.write_text(text("new"), "utf-8")
        calls = len(server.asked)
        without = said(capsys, "add", "-i", place, new)["cost"]
        assert without["calls"] == 0 and without["core_chunks"] in (1, 2)
        assert "pending" in without["note"]
        cost = said(capsys, "add", "-i", place, new, "--llm", llm)["cost"]
        assert cost["calls"] in (1, 2) and cost["tokens_in"] > 0 and cost["usd"]["llm"] == "unknown"
        assert len(server.asked) == calls
