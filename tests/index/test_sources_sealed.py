"""Rows of registered sources have checksums: an altered path is never read in the place of the right one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.index.health import examine
from tests.support.faults import run_sql


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An index of one of two folders whose names differ in one bit."""
    for name, text in (("docsA", "The right harbour."), ("docsC", "Another harbour.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(text)
    Index.build(tmp_path / "docsA", tmp_path / "ix").close()
    return tmp_path


def flip(place: Path) -> None:
    """One bit of the path, in the row and not in the index over it, as it happens on a disk."""
    path = place / "ix" / "index.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    # A row holds label and path; which of the places is the path in the row is seen by what SQLite reads.
    ends = [at for at in range(len(data)) if data.startswith(b"docsA", at)]
    for end in ends:
        path.write_bytes(data[: end + 4] + bytes([data[end + 4] ^ 2]) + data[end + 5 :])
        with closing(sqlite3.connect(path)) as db:
            (spec,) = db.execute("SELECT spec FROM sources NOT INDEXED").fetchone()
        if spec.endswith("docsC"):
            return
    raise AssertionError("no bit of the path was found")


@pytest.mark.parametrize("way", ["rebuild", "again", "add", "merge"])
def test_a_flipped_bit_in_a_path_is_found(place: Path, way: str) -> None:
    flip(place)
    before = [finding.error for finding in examine(place / "ix") if finding.error is not None]
    assert before and isinstance(before[0], IndexDamaged)
    with pytest.raises(IndexDamaged, match=r"sources are altered: 1 \(") as error:
        if way == "rebuild":
            Index.build([], place / "ix", rebuild=True)
        elif way == "again":
            Index.build([], place / "ix")
        elif way == "add":
            with Index.open(place / "ix") as index:
                index.update(add=place / "docsC")
        else:
            Index.merge([place / "ix"], place / "merged")
    assert error.value.hint is not None and "--replace" in error.value.hint
    with Index.open(place / "ix") as index:  # what is published is as it was
        assert "right harbour" in index.retrieve("harbour", mode="bm25").text


def test_naming_the_sources_again_repairs_it(place: Path) -> None:
    flip(place)
    assert (
        main(["index", str(place / "docsA"), "-i", str(place / "ix"), "--replace", "--progress", "none"]) == 0
    )
    with Index.open(place / "ix") as index:
        assert "right harbour" in index.retrieve("harbour", mode="bm25").text
        assert index.inspect.document_count == 1
    assert not [finding for finding in examine(place / "ix") if finding.error is not None]
    Index.build([], place / "ix").close()


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE sources SET label = 'x'",
        "UPDATE sources SET kind = 'documents'",
        "UPDATE sources SET spec = CAST(x'ff61c3' AS TEXT)",
        "UPDATE source_seals SET seal = 'x'",
        "DELETE FROM source_seals",
        "UPDATE source_seals SET number = 7",
        "INSERT INTO source_seals VALUES (9, 'x')",
        "INSERT INTO sources VALUES (2, 'path', 'x', '/etc')",
    ],
)
def test_every_way_to_alter_a_row(place: Path, harm: str) -> None:
    run_sql(place / "ix", harm)
    with pytest.raises(IndexDamaged, match="sources are altered"):
        Index.build([], place / "ix")
    Index.build(place / "docsA", place / "ix", replace=True).close()
    assert not [finding for finding in examine(place / "ix") if finding.error is not None]


def test_an_index_without_checksums_of_its_sources_is_damaged(place: Path) -> None:
    run_sql(place / "ix", "DROP TABLE source_seals")
    assert [finding for finding in examine(place / "ix") if finding.error is not None]
    with pytest.raises(IndexDamaged, match="source_seals"):
        Index.build([], place / "ix")


def test_sources_of_parts_and_of_purged_documents_have_theirs(place: Path) -> None:
    with Index.build([Document("d", "A harbour.", "D"), place / "docsC"], place / "ix") as index:
        index.update(remove="d", purge=True)
        part = index.allowed({"$not": {}})
        assert not [finding for finding in examine(part._state.folder) if finding.error is not None]
    Index.build(place / "docsC", place / "other").close()
    Index.merge([place / "ix", place / "other"], place / "merged", prefer="first").close()
    Index.build([], place / "merged").close()
    for name in ("ix", "merged"):
        assert not [finding for finding in examine(place / name) if finding.error is not None]
