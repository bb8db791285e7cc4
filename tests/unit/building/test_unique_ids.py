"""Ids of files that several sources have under the same relative path."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from tests.process import command

SETTINGS = Settings(threads=1)


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    """Three folders with readme.md: two have the same name."""
    found = [tmp_path / "a" / "docs", tmp_path / "b" / "docs", tmp_path / "manuals"]
    for place in found:
        put(place / "readme.md", f"The text of {place.parent.name} {place.name}.")
        put(place / "guide" / f"{place.parent.name}.md", f"The guide of {place.parent.name}.")
    return found


def ids(index: Index) -> dict[str, str]:
    assert index.report is None or index.report.failures == ()
    return {document.id: document.text for document in index.inspect.stored()}


def test_the_shortest_end_of_the_path_that_tells_them_apart(places: list[Path], tmp_path: Path) -> None:
    with Index.build(places, tmp_path / "ix", settings=SETTINGS) as index:
        found = ids(index)
        assert sorted(name for name in found if "readme" in name) == [
            "b/docs/readme.md",
            "manuals/readme.md",
            "readme.md",
        ]
        assert found["readme.md"] == "The text of a docs."
        assert found["b/docs/readme.md"] == "The text of b docs."
        assert {"guide/a.md", "guide/b.md"} <= found.keys()  # nothing else is renamed
        assert index.inspect.files(["b/docs/readme.md"]) == {"b/docs/readme.md": places[1] / "readme.md"}
        digest = index.digest
        with Index.build([], tmp_path / "ix", settings=SETTINGS) as again:
            assert again.report is not None
            assert not again.report.changed
    with Index.build(places[0], tmp_path / "one", settings=SETTINGS) as index:
        index.update(add=places[1:])
        assert ids(index) == found
        assert index.digest == digest


def test_rows_and_parts_of_files(tmp_path: Path) -> None:
    first, second = (put(tmp_path / name / "rows.csv", f"name,n\n{name},1\n") for name in "ab")
    with Index.build([first, second], tmp_path / "ix", settings=SETTINGS) as index:
        assert sorted(ids(index)) == ["b/rows.csv#2", "rows.csv#2"]
        second.unlink()
        with Index.build([], tmp_path / "ix", settings=SETTINGS) as again:
            assert sorted(ids(again)) == ["rows.csv#2"]


def test_a_folder_inside_that_has_the_same_name(tmp_path: Path) -> None:
    put(tmp_path / "a" / "x.md", "one")
    put(tmp_path / "docs" / "x.md", "two")
    put(tmp_path / "docs" / "docs" / "x.md", "three")
    with Index.build([tmp_path / "a", tmp_path / "docs"], tmp_path / "ix", settings=SETTINGS) as index:
        found = ids(index)
        assert found["x.md"] == "one"
        assert found["docs/x.md"] == "three"
        assert sorted(found.values()) == ["one", "three", "two"]


def test_a_file_of_a_source_that_is_away(places: list[Path], tmp_path: Path) -> None:
    with Index.build(places[:2], tmp_path / "ix", settings=SETTINGS) as index:
        before = ids(index)
    places[0].rename(tmp_path / "away")
    again = command("index", "-i", "ix", "--json", cwd=tmp_path)
    assert again.code == 3  # the folder is missing, and its documents stay
    with Index.open(tmp_path / "ix") as index:
        assert ids(index) == before


def test_read_names_them_as_a_build_does(places: list[Path], tmp_path: Path) -> None:
    from ketrag_fast.index.building import read_sources

    found = [item.id for item in read_sources(places, SETTINGS)]  # type: ignore[union-attr]
    with Index.build(places, tmp_path / "ix", settings=SETTINGS) as index:
        assert sorted(found) == sorted(ids(index))


def test_deleted_files_of_a_pattern_with_brackets(tmp_path: Path) -> None:
    """The pattern is not the name of a folder that is away: its documents are removed."""
    for name in "abc":
        put(tmp_path / "docs" / f"{name}.md", f"The text {name}.")
    sources = [str(tmp_path / "docs" / "[ab].md"), str(tmp_path / "docs" / "c.md")]
    with Index.build(sources, tmp_path / "ix", settings=SETTINGS) as index:
        assert sorted(ids(index)) == ["a.md", "b.md", "c.md"]
    (tmp_path / "docs" / "a.md").unlink()
    (tmp_path / "docs" / "b.md").unlink()
    with Index.build([], tmp_path / "ix", settings=SETTINGS) as index:
        assert sorted(ids(index)) == ["c.md"]
