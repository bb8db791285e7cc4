"""`grep` and `text` read changed files from the disk while these are not indexed, under the same rights."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import UnknownName
from ketrag_fast.index import freshness


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("---\nteam: north\n---\n# a\n\nOld: a penguin.\n")
    (folder / "b.md").write_text("---\nteam: south\n---\n# b\n\nOld: a penguin.\n")
    (folder / "c.txt").write_text("A penguin stays.\n")
    return folder


@pytest.fixture
def index(notes: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index whose changed files are not indexed before a query."""
    monkeypatch.setattr(freshness, "QUICK", -1.0)
    built = Index.build(notes, notes.parent / "index")
    (notes / "a.md").write_text("---\nteam: north\n---\n# a\n\nNew: a walrus.\nAnd a walrus.\n")
    (notes / "b.md").write_text("---\nteam: south\n---\n# b\n\nNew: a walrus.\n")
    (notes / "d.txt").write_text("No team has this walrus.\n")
    return built


def found(index: Index, pattern: str, **fields: object) -> list[tuple[str, int | None]]:
    matches = index.grep(pattern, **fields)  # type: ignore[arg-type]
    return [(one.document, one.line.number) for one in matches]


def test_lines_are_those_of_the_files(index: Index) -> None:
    assert found(index, "walrus") == [], "nothing was looked up yet"
    assert not index.freshen("auto").updated
    assert found(index, "walrus") == [("a.md", 6), ("a.md", 7), ("b.md", 6), ("d.txt", 1)]
    assert found(index, "penguin") == [("c.txt", 1)]
    assert found(index, "walrus", limit=2) == [("a.md", 6), ("a.md", 7)]
    assert found(index, "walrus|penguin", glob="*.txt") == [("c.txt", 1), ("d.txt", 1)]
    assert sorted(index.grep_counts("walrus").values()) == [1, 1, 2]
    (match,) = index.grep("And a")
    assert (match.lines, match.state, match.path) == ((7, 7), None, str(index.path.parent / "notes" / "a.md"))
    index.freshen("always")
    assert found(index, "walrus") == [("a.md", 6), ("a.md", 7), ("b.md", 6), ("d.txt", 1)]
    assert index.grep("And a") == [match], "the index tells the same"


def test_texts_are_those_of_the_files(index: Index, notes: Path) -> None:
    index.freshen("auto")
    assert "walrus" in index.text(notes / "a.md").text
    assert index.text("a.md:7").text == "And a walrus."
    assert index.text("d.txt").text == "No team has this walrus."
    assert index.text("c.txt").text == "A penguin stays."
    with pytest.raises(UnknownName, match="no line 99"):
        index.text("a.md:99")
    expected = [index.text(one) for one in ("a.md", "a.md:7", "d.txt", "a.md:6-7")]
    index.freshen("always")
    assert [index.text(one) for one in ("a.md", "a.md:7", "d.txt", "a.md:6-7")] == expected


def test_filters_and_rights_hold_for_files(index: Index, notes: Path) -> None:
    index.freshen("auto")
    north = {"team": "north"}
    assert found(index, "walrus", filter=north) == [("a.md", 6), ("a.md", 7)]
    assert found(index, "walrus", allow=north) == [("a.md", 6), ("a.md", 7)]
    for name in ("b.md", "d.txt"):
        with pytest.raises(UnknownName):
            index.text(notes / name, allow=north)
    with Index.open(index.path, settings=Settings(allow="team=north")) as own:
        assert own.freshen("auto").files == ()
        assert found(own, "walrus") == [("a.md", 6), ("a.md", 7)]
        with pytest.raises(UnknownName):
            own.text(notes / "b.md")


def test_a_file_of_a_forbidden_document_stays_forbidden(index: Index, notes: Path) -> None:
    """Its new text claims another team: only an index of it gives it other readers."""
    (notes / "b.md").write_text("---\nteam: north\n---\n# b\n\nNew: a walrus.\n")
    index.freshen("auto")
    assert found(index, "walrus", allow={"team": "north"}) == [("a.md", 6), ("a.md", 7)]
    (notes / "a.md").write_text("---\nteam: south\n---\n# a\n\nNew: a walrus.\n")
    index.freshen("auto")
    assert found(index, "walrus|penguin", allow={"team": "north"}) == []


def test_a_link_out_of_the_source_is_not_read(index: Index, notes: Path) -> None:
    index.freshen("auto")
    secret = notes.parent / "secret.txt"
    secret.write_text("The secret walrus.\n")
    (notes / "d.txt").unlink()
    (notes / "d.txt").symlink_to(secret)  # after it was looked up
    assert "secret" not in " ".join(one.line.text for one in index.grep("walrus"))
