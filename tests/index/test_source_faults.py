"""Missing sources, reuse of documents whose id moved between files, and the cost of many sources."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.building import source_comparison
from ketrag_fast.building import sources as build_sources
from ketrag_fast.storage import source_table
from ketrag_fast.storage.source_table import SourceTable
from ketrag_fast.storage.tables import Tables
from tests.support.office_files import archive

OLD = 1_000_000_000_000_000_000
"""A time of change long ago, in nanoseconds."""


def ids(index: Index) -> set[str]:
    return {document.id for document in index.inspect.stored()}


def put(path: Path, records: dict[str, str], changed: int) -> None:
    path.write_text(json.dumps([{"id": name, "text": text} for name, text in records.items()]))
    os.utime(path, ns=(OLD + changed, OLD + changed))


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder that stays."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "o.md").write_text("The Fram sailed north.")
    return tmp_path / "other"


@pytest.mark.parametrize("name", ["notes.v2", "table.csv"])
def test_a_missing_folder_keeps_its_documents(other: Path, tmp_path: Path, name: str) -> None:
    """A dot in the name of a folder does not make it a file."""
    folder = tmp_path / name
    folder.mkdir()
    for letter in "ab":
        (folder / f"{letter}.md").write_text(f"The text of {letter} about ice.")
        (folder / f"{letter}.csv").write_text(f"_id,text\n{letter}1,A row about ships\n")
    Index.build([folder, other], tmp_path / "ix").close()
    folder.rename(tmp_path / "away")
    for _ in range(2):
        with Index.build([], tmp_path / "ix") as index:
            assert ids(index) == {"a.md", "b.md", "a1", "b1", "o.md"}
            (failure,) = index.report.failures
            assert "is missing; its 4 documents stay in the index" in failure.message
    (tmp_path / "away").rename(folder)
    with Index.build([], tmp_path / "ix") as index:
        assert (ids(index), index.report.failures) == ({"a.md", "b.md", "a1", "b1", "o.md"}, ())


def test_a_folder_within_a_folder_of_its_name_keeps_its_documents(other: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ships"
    (folder / "ships").mkdir(parents=True)
    (folder / "ships" / "a.md").write_text("The text of a ship.")
    Index.build([folder, other], tmp_path / "ix").close()
    folder.rename(tmp_path / "away")
    with Index.build([], tmp_path / "ix") as index:
        assert ids(index) == {"ships/a.md", "o.md"}


RECORD = b'{"_id": "r1", "text": "The first ship."}\n'
FILES: dict[str, bytes] = {
    "one.txt": b"A text.",
    "numbered.csv": b"name,text\nr1,The first ship\nr2,The second ship\n",
    "records.jsonl": RECORD,
    "both.zip": archive({"a.txt": b"A crew of ten.", "b.txt": b"A crew of two."}),
    "box.mbox": b"From a Thu Jan  1 00:00:00 2020\nFrom: a@example.org\nSubject: ice\n\nMuch ice.\n",
}


@pytest.mark.parametrize("name", FILES)
def test_the_documents_of_a_deleted_file_are_removed(other: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    with Index.build([tmp_path / name, other], tmp_path / "ix") as index:
        assert len(ids(index)) > 1
    Index.build([], tmp_path / "ix").close()  # nothing has changed
    (tmp_path / name).unlink()
    with Index.build([], tmp_path / "ix") as index:
        assert (ids(index), index.report.failures) == ({"o.md"}, ())
        assert any("is missing; its documents were removed" in one for one in index.report.warnings)
    with Index.build([], tmp_path / "ix") as index:
        assert (ids(index), index.report.failures) == ({"o.md"}, ())
        assert [one for one in index.report.warnings if "were removed" in one] == []


@pytest.mark.parametrize("name", ["numbered.csv", "both.zip", "box.mbox", "a.md"])
def test_the_ids_tell_that_a_deleted_source_was_a_file(other: Path, tmp_path: Path, name: str) -> None:
    """An unbundled index knows nothing of its files."""
    (tmp_path / name).write_bytes({**FILES, "a.md": b"A note about ice."}[name])
    Index.build([tmp_path / name, other], tmp_path / "ix").close()
    with Tables(tmp_path / "ix" / "index.sqlite") as tables:
        tables.drop_known_files()
    (tmp_path / name).unlink()
    with Index.build([], tmp_path / "ix") as index:
        assert ids(index) == {"o.md"}
        assert f"the source {tmp_path / name} is missing; its documents were removed" in index.report.warnings


def test_a_deleted_file_on_a_missing_drive_keeps_its_documents(other: Path, tmp_path: Path) -> None:
    drive = tmp_path / "drive"
    drive.mkdir()
    (drive / "records.jsonl").write_bytes(RECORD)
    Index.build([drive / "records.jsonl", other], tmp_path / "ix").close()
    drive.rename(tmp_path / "away")
    with Index.build([], tmp_path / "ix") as index:
        assert ids(index) == {"r1", "o.md"}
    (tmp_path / "away").rename(drive)
    (drive / "records.jsonl").unlink()
    with Index.build([], tmp_path / "ix") as index:
        assert ids(index) == {"o.md"}


def test_documents_stay_if_the_source_may_have_been_a_folder(other: Path, tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_bytes(RECORD)
    Index.build([tmp_path / "records.jsonl", other], tmp_path / "ix").close()
    with sqlite3.connect(tmp_path / "ix" / "index.sqlite") as db:
        db.execute("DELETE FROM files")  # as in an index of an earlier version
    (tmp_path / "records.jsonl").unlink()
    with Index.build([], tmp_path / "ix") as index:
        assert ids(index) == {"r1", "o.md"}
        (failure,) = index.report.failures
        assert "the file or folder is missing; its document stays in the index" in failure.message


def texts(index: Index) -> dict[str, str]:
    return {document.id: document.text for document in index.inspect.stored()}


def test_a_document_that_moved_to_another_file_and_back_is_read_again(tmp_path: Path) -> None:
    folder, place = tmp_path / "in", tmp_path / "ix"
    folder.mkdir()
    put(folder / "a.json", {"a": "the first"}, 1)
    put(folder / "b.json", {"x": "x of file b"}, 1)
    Index.build(folder, place).close()
    put(folder / "a.json", {"a": "the first", "x": "x of file a"}, 2)
    with Index.build([], place) as index:
        assert texts(index) == {"a": "the first", "x": "x of file a"}
    put(folder / "a.json", {"a": "the first"}, 3)
    with Index.build([], place) as index, Index.build(folder, tmp_path / "fresh") as fresh:
        assert texts(index) == texts(fresh) == {"a": "the first", "x": "x of file b"}
        assert index.digest == fresh.digest


def counting(monkeypatch: pytest.MonkeyPatch, holder: object, name: str) -> list[str]:
    """Return a list that gets an entry for each call of a function."""
    calls: list[str] = []
    own: Callable[..., object] = getattr(holder, name)

    def counted(*args: object, **options: object) -> object:
        calls.append(name)
        return own(*args, **options)

    monkeypatch.setattr(holder, name, counted)
    return calls


def test_the_work_of_a_build_does_not_grow_with_the_square_of_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seals = counting(monkeypatch, source_table, "seal_sources")
    lists = counting(monkeypatch, SourceTable, "sources")
    scans = []

    class Counted(dict):  # type: ignore[type-arg]
        def items(self):  # type: ignore[no-untyped-def]
            scans.append("items")
            return super().items()

    start = source_comparison.SourceComparison.__init__

    def started(self: source_comparison.SourceComparison, known: Any, *others: Any, **options: Any) -> None:
        start(self, Counted(known), *others, **options)

    monkeypatch.setattr(source_comparison.SourceComparison, "__init__", started)
    counts = []
    for number in (4, 12):
        folder = tmp_path / str(number)
        folder.mkdir()
        files = [folder / f"{one}.txt" for one in range(number)]
        for one in files:
            one.write_text(f"A text about {one.name} and ships.")
        seals.clear(), lists.clear(), scans.clear()
        with Index.build(files, folder / "ix", settings=Settings(threads=1)) as index:
            built = len(seals), len(lists)
            index.update(add=[*files[: number // 2], Document("given", "A given text.")])
            assert len(ids(index)) == number + 1
        counts.append((built, len(seals), len(lists), len(scans)))
    assert counts[0] == counts[1]


def test_a_path_is_read_as_part_of_the_first_registered_folder_that_contains_it(tmp_path: Path) -> None:
    inner = tmp_path / "in" / "inner"
    inner.mkdir(parents=True)
    (inner / "a.txt").write_text("A text of the inner folder.")
    (tmp_path / "in" / "b.txt").write_text("A text of the outer folder.")
    registered = {str(inner): 1, str(tmp_path / "in"): 2, str(inner / "a.txt"): 3, str(tmp_path / "gone"): 4}
    assert build_sources._home(registered, str(inner / "a.txt")) == str(inner)
    assert build_sources._home(registered, str(tmp_path / "in" / "b.txt")) == str(tmp_path / "in")
    assert build_sources._home(registered, str(inner)) == str(tmp_path / "in")
    assert build_sources._home(registered, str(tmp_path / "in")) is None
    assert build_sources._home(registered, str(tmp_path / "gone" / "a.txt")) is None
    assert build_sources._home(registered, str(tmp_path / "in2" / "a.txt")) is None


@pytest.mark.parametrize("spec", ["drive/*.md", "Photos [2020]"])
def test_a_pattern_whose_folder_is_missing_keeps_its_documents(tmp_path: Path, spec: str) -> None:
    folder = tmp_path / spec.removesuffix("/*.md")
    folder.mkdir()
    (folder / "a.md").write_text("A text about Fram.")
    (tmp_path / "other.md").write_text("Another text.")
    sources = [str(tmp_path / spec), tmp_path / "other.md"]
    Index.build(sources, tmp_path / "ix").close()
    folder.rename(tmp_path / "away")
    with Index.build([], tmp_path / "ix") as index:
        assert index.report is not None
        assert index.report.documents == 2
        assert [failure.code for failure in index.report.failures] == ["source"]
    (tmp_path / "away").rename(folder)
    (folder / "a.md").unlink()
    with Index.build([], tmp_path / "ix") as index:
        assert index.report is not None
        assert index.report.documents == 1
        assert not index.report.failures


def test_a_source_that_cannot_be_read_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(f"A text about {name}.")
    Index.build([tmp_path / "one", tmp_path / "two"], tmp_path / "ix").close()
    (tmp_path / "two" / "new").mkdir()  # all files are compared because of it
    (tmp_path / "two" / "new" / "three.md").write_text("A text about three.")
    found = source_comparison.find_files

    def find_files(spec: str, settings: Settings) -> object:
        if spec.endswith("one"):
            raise PermissionError(13, "Permission denied", spec)
        return found(spec, settings)

    monkeypatch.setattr(source_comparison, "find_files", find_files)
    with Index.build([], tmp_path / "ix") as index:
        assert index.report is not None
        assert (index.report.added, index.report.documents) == (1, 3)
        (failure,) = index.report.failures
        assert "Permission denied; its document stays" in failure.message
