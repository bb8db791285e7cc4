"""Faults that were put into the code on purpose and that no other test noticed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.query import search
from ketrag_fast.query.search import Snippets

OLD = 1_000_000_000_000_000_000
"""A time of change long ago, in nanoseconds."""
ENGLISH = "The crew of the ship saw the ice in the morning and they were very glad that it was not so cold. "
GERMAN = "Die Mannschaft des Schiffes sah am Morgen das Eis und war sehr froh, dass es nicht so kalt war. "


def visible(index: Index) -> set[str]:
    return {one.document for one in index.inspect.documents()}


def test_every_section_of_an_allowed_document_must_match(tmp_path: Path) -> None:
    """The language is detected for each section: one in another language hides the whole document."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name, parts in {
        "both": (ENGLISH, GERMAN),
        "last": (GERMAN, ENGLISH),
        "one": (ENGLISH, ENGLISH),
    }.items():
        text = "\n\n".join(f"## Part {n}\n\n{part * 15}" for n, part in enumerate(parts))
        (folder / f"{name}.md").write_text(f"# {name}\n\n{text}\n")
    with Index.build(folder, tmp_path / "index") as index:
        assert visible(index) == {"both.md", "last.md", "one.md"}
        with index.allowed("language=en") as allowed:
            assert visible(allowed) == {"one.md"}
        with index.allowed("language=de") as allowed:
            assert visible(allowed) == set()


@pytest.mark.parametrize("first", ["lang=en", "draft=false"])
def test_all_conditions_hold_after_a_refresh(tmp_path: Path, first: str) -> None:
    """An index that is opened with one condition and restricted by a second one follows changes with both."""
    second = {"lang=en": "draft=false", "draft=false": "lang=en"}[first]

    def document(name: str, lang: str, draft: bool) -> Document:
        return Document(name, f"The ship {name} sailed.", "", {"lang": lang, "draft": draft})

    before = [document("a", "en", False), document("b", "en", True), document("c", "de", False)]
    later = [document("d", "en", False), document("e", "en", True), document("f", "de", False)]
    with (
        Index.build(before, tmp_path / "index") as whole,
        Index.open(tmp_path / "index", settings=Settings(allow=first)) as opened,
        opened.allowed(second) as both,
    ):
        assert visible(both) == {"a"}
        whole.update(add=later)
        assert both.refresh() and visible(both) == {"a", "d"}
        found = both.retrieve("Which ship sailed?", mode="bm25", budget=2_000)
        assert {one.document for one in found.passages} == {"a", "d"}


@pytest.mark.parametrize("seconds", [-3_600, 3_600])
def test_another_file_of_the_same_size_is_read(tmp_path: Path, seconds: int) -> None:
    """A file that is put back from a backup is older than the one that was read."""
    folder = tmp_path / "in"
    folder.mkdir()
    mail = "From: a@b.example\nSubject: ships\n\nThe {} sailed south.\n"
    path = folder / "a.eml"
    path.write_text(mail.format("Fram"))
    os.utime(path, ns=(OLD, OLD))
    Index.build(folder, tmp_path / "index").close()
    path.write_text(mail.format("Maud"))
    os.utime(path, ns=(OLD + seconds * 10**9,) * 2)
    with Index.build(folder, tmp_path / "index") as index:
        (found,) = index.retrieve("What sailed south?", mode="bm25").passages
        assert "Maud" in found.text


@pytest.fixture(scope="module")
def snippets(tmp_path_factory: pytest.TempPathFactory) -> Snippets:
    index = Index.build([Document("a", "The walrus swam.")], tmp_path_factory.mktemp("snippets") / "index")
    return Snippets(index._opened, "walrus")


def test_a_second_line_is_shown_below_a_short_one(snippets: Snippets) -> None:
    for length, count in ((search._ENOUGH - 1, 2), (search._ENOUGH, 1)):
        first = "walrus " + "x" * (length - 7)
        assert len(snippets.lines(f"{first}\nThe second line.", None)) == count
    # A second line with a keyword is shown below a line of any length.
    assert len(snippets.lines("walrus " + "x" * 90 + "\nAnother walrus.", None)) == 2


def test_long_lines_are_cut_into_sentences() -> None:
    for length, count in ((search._LONG, 1), (search._LONG + 1, 2)):
        line = "One sentence. " + "x" * (length - 14)
        assert len(line) == length and len(search._pieces(line)) == count
