"""Documents come and go: the index is that of a build from nothing over those that are there."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.building.unchanged import REMOVED
from ketrag_fast.errors import IndexMissing, InputError
from ketrag_fast.storage.tables import Tables
from tests import small_model

WORDS = (
    *("river", "stone", "market", "winter", "bridge", "library", "painter", "theory", "harbour", "ship"),
    *("Amundsen", "Shackleton", "Oslo", "ice"),
)


def text(seed: str) -> str:
    """Some sentences of their own."""
    dice = random.Random(seed)
    return " ".join(" ".join(dice.choices(WORDS, k=9)).capitalize() + "." for _ in range(dice.randint(2, 9)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eight documents, two of them below."""
    base = tmp_path / "notes"
    (base / "old").mkdir(parents=True)
    for name in ("a", "b", "c", "d", "e", "f", "old/g", "old/h"):
        (base / f"{name}.md").write_text(f"# {name}\n\n{text(name)}\n", "utf-8")
    return base


def fresh(tmp_path: Path, sources: object, settings: Settings | None = None) -> str:
    """The digest of a build from nothing."""
    place = tmp_path / f"fresh-{len(list(tmp_path.iterdir()))}"
    with Index.build(sources, place, settings=settings) as index:  # type: ignore[arg-type]
        return index.digest


def ids(index: Index) -> list[str]:
    return [one.document for one in index.inspect.documents()]


def test_removed_documents_stay_away_until_they_are_added(folder: Path, tmp_path: Path) -> None:
    with Index.build(folder, tmp_path / "ix") as index:
        report = index.update(remove=["b.md", "old/*"])
        assert (report.removed, report.documents, report.failures) == (3, 5, ())
        assert ids(index) == ["a.md", "c.md", "d.md", "e.md", "f.md"]
    # The next build reads the folder again, and passes over them.
    with Index.build([], tmp_path / "ix") as index:
        assert index.report is not None and not index.report.changed
        assert any("skipped 3" in warning for warning in index.report.warnings)
        with Tables(tmp_path / "ix" / "index.sqlite", read_only=True) as tables:
            assert [(note.document, note.code, note.message) for note in tables.notes_of_files()] == [
                (name, REMOVED, "1") for name in ("b.md", "old/g.md", "old/h.md")
            ]
        back = index.update(add=folder / "old" / "g.md")
        assert (back.added, ids(index)[-1]) == (1, "old/g.md")
        assert index.update(add=folder).added == 2
        assert index.digest == fresh(tmp_path, folder)


def test_add_reads_no_other_source(folder: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.md"
    more.write_text(f"# more\n\n{text('more')}", "utf-8")
    with Index.build(folder, tmp_path / "ix") as index:
        (folder / "a.md").unlink()
        (folder / "b.md").write_text("changed altogether", "utf-8")
        report = index.update(add=more)
        assert (report.added, report.updated, report.removed) == (1, 0, 0)
        assert "a.md" in ids(index)
    with Index.build([], tmp_path / "ix") as index:
        assert index.report is not None
        assert (index.report.updated, index.report.removed) == (1, 1)


def test_what_is_not_there_is_listed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "ix")
    assert main(["index", str(folder), "-i", place]) == 0
    assert main(["remove", "-i", place, "a.md", "nothing.md", "x*"]) == 3
    out, err = capsys.readouterr()
    assert "1 removed" in out and "nothing.md" in err and "x*" in err
    assert main(["remove", "-i", str(tmp_path / "none"), "a.md"]) == 4
    with pytest.raises(IndexMissing):
        Index.open(tmp_path / "none")


def test_everything_that_failed_is_reported_together(folder: Path, tmp_path: Path) -> None:
    (folder / "rows.jsonl").write_text('{"text": "One row of ice."}\n{"text": 1\n', "utf-8")
    with Index.build(folder, tmp_path / "ix") as index:
        first = [(one.document, one.code) for one in index.report.failures] if index.report else []
        assert [name for name, _ in first] == ["rows.jsonl:2"]
        report = index.update(add=folder, remove=["nothing.md", "a.md"])
        named = [one.document for one in report.failures]
        assert named == ["rows.jsonl:2", "nothing.md"] and report.removed == 1, report.failures


def test_a_dry_run_changes_nothing(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "ix")
    assert main(["index", str(folder), "-i", place]) == 0
    with Index.open(place) as index:
        before = index.digest
    (folder / "new.md").write_text("A harbour in winter.", "utf-8")
    capsys.readouterr()
    assert main(["add", "--dry-run", "-i", place, str(folder)]) == 0
    assert "9 documents (1 added, 0 changed, 0 removed; 20 characters to read" in capsys.readouterr().out
    assert main(["remove", "--dry-run", "-i", place, "old/*"]) == 0
    assert "6 documents (0 added, 0 changed, 2 removed" in capsys.readouterr().out
    with Index.open(place) as index:
        assert (index.digest, len(ids(index))) == (before, 8)
    assert main(["documents", "-i", place, "old"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["old/g.md", "old/h.md"]


def everything_in(folder: Path) -> bytes:
    """All bytes of all files, and their names."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return b"".join(path.name.encode() + path.read_bytes() for path in files)


def test_nothing_is_left_of_what_is_purged(tmp_path: Path) -> None:
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    notes = tmp_path / "notes"
    notes.mkdir()
    secret = "Zwirbelwind keeps the Xanadukian ledger. Zwirbelwind married Brockelmannova in Qopparia."
    (notes / "zwirbel-note.md").write_text(secret, "utf-8")
    for name in ("a", "b", "c"):
        (notes / f"{name}.md").write_text(text(name), "utf-8")
    words = ("Zwirbelwind", "zwirbelwind", "Xanadukian", "xanadukian", "Brockelmannova", "zwirbel-note")
    settings = Settings(embedder=f"native:{model}", llm="heuristic", modes="all")
    place = tmp_path / "ix"
    with Index.build(notes, place, settings=settings) as index:
        held = everything_in(place)
        assert all(word.encode() in held for word in words)
        vectors = kept_vectors(place)
        index.update(remove="zwirbel-note.md", purge=True)
        left = everything_in(place)
        assert [word for word in words if word.encode() in left] == []
        assert 0 < kept_vectors(place) < vectors
        assert not (place / "work").exists() or not list((place / "work").iterdir())
        digest = index.digest
        # It stays away although its file is there, and nothing is embedded for a build of the rest.
        with Index.build([], place, settings=settings) as again:
            assert again.report is not None
            assert (again.digest, again.report.usage.embedding_tokens) == (digest, 0)
            assert any("skipped 1" in warning for warning in again.report.warnings)
        assert index.update(add=notes).added == 1
    (notes / "zwirbel-note.md").unlink()
    assert fresh(tmp_path, notes, settings) == digest


def kept_vectors(place: Path) -> int:
    """Rows of the cache of vectors."""
    with sqlite3.connect(place / "index.sqlite") as db:
        return int(db.execute("SELECT count(*) FROM vectors").fetchone()[0])


@pytest.mark.parametrize("where", [{}, "{}", {"$and": [{}]}, {"year": {"$nin": []}}, "year=1 or year!=1"])
def test_a_removal_of_every_document_by_a_filter_is_an_error(tmp_path: Path, where: Any) -> None:
    made = [Document(f"d{i}", text(str(i)), "", {"year": 1900 + i}) for i in range(3)]
    with Index.build(made, tmp_path / "ix") as index:
        with pytest.raises(InputError, match="holds for every document") as caught:
            index.update(where=where)
        assert "'*'" in str(caught.value.hint)
        with pytest.raises(InputError, match="holds for every document"):
            index.preview(where=where)
        assert ids(index) == ["d0", "d1", "d2"]
        assert index.update(remove="*").removed == 3


def test_removal_by_metadata(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [Document(f"d{i}", text(str(i)), "", {"year": 1900 + i}) for i in range(10)]
    place = tmp_path / "ix"
    with Index.build(made, place) as index:
        assert main(["remove", "-i", str(place), "--filter", "year<1903 or year=1909", "--dry-run"]) == 0
        assert "4 removed" in capsys.readouterr().out
        assert main(["remove", "-i", str(place), "--filter", "year<1903 or year=1909"]) == 0
        index.refresh()
        assert ids(index) == [f"d{i}" for i in range(3, 9)]
        assert index.update(remove="d3", where={"year": 1904}).removed == 2
        assert index.digest == fresh(tmp_path, made[5:9])
    assert main(["remove", "-i", str(place), "--filter", "{}"]) == 2
    assert "every document" in capsys.readouterr().err
    assert main(["remove", "-i", str(place), "--filter", "colour=red"]) == 2
    assert "known fields: year" in capsys.readouterr().err
    assert main(["remove", "-i", str(place)]) == 2
