"""Sections: they cover their document, each with the headings above it; no unit goes on in the next one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast import Document, Index, Locator, Settings
from ketrag_fast.readers.plain_text import about_markdown
from ketrag_fast.systems.spec.documents import SHORT, parts_of
from tests.support.parts import part
from tests.support.reading import read_one


def named(title: str, text: str) -> Document:
    found, metadata, locators = about_markdown(text)
    return Document(title, text, found or title, metadata, tuple(locators))


LONG = "\n\n".join(
    f"{'#' * level} {name}\n\n" + f"The {name.lower()} sailed to port {name.lower()}. " * 9
    for level, name in ((1, "Fleet"), (2, "Fram"), (3, "Crew"), (2, "Maud"), (2, "Aurora"))
)


def test_titles_are_the_headings_with_what_stands_above_in_brackets() -> None:
    document = named("a.md", LONG)
    parts = parts_of(document.text, document.title, document.locators)
    assert [one.title for one in parts] == [
        "Fleet",
        "Fram (Fleet)",
        "Crew (Fleet › Fram)",
        "Maud (Fleet)",
        "Aurora (Fleet)",
    ]
    assert "".join(LONG[one.start : one.end] for one in parts) == LONG
    assert all(LONG[one.start : one.end].startswith("#") for one in parts)


def test_short_documents_and_those_without_headings_stay_whole() -> None:
    marks = [Locator(0, 9, "heading", ["A"]), Locator(9, 20, "heading", ["B"])]
    assert len(parts_of("x" * (SHORT - 1), "t", marks)) == 1
    assert len(parts_of("x" * 5000, "t", [Locator(0, 2500, "page", 1), Locator(2500, 5000, "page", 2)])) == 1


def test_headings_with_nothing_below_them_go_with_the_next() -> None:
    text = "## A\n\n### B\n\n" + "words " * 300 + "\n\n## C\n\nshort\n\n## D\n\n" + "words " * 100
    found, _, locators = about_markdown(f"# T\n\n{text}")
    parts = parts_of(f"# T\n\n{text}", found, locators)
    assert [one.title for one in parts] == ["B (T › A)", "D (T)"]
    assert sum(one.end - one.start for one in parts) == len(text) + 5


def test_short_sections_of_one_parent_share_a_unit() -> None:
    text = "## Ships\n\n" + "".join(f"### Ship {n}\n\n{'It sailed north. ' * 8}\n\n" for n in range(12))
    found, _, locators = about_markdown(f"# T\n\n{text}")
    parts = parts_of(f"# T\n\n{text}", found, locators)
    assert {one.title for one in parts} == {"Ships (T)"}
    assert all(one.end - one.start <= 400 for one in parts)
    assert len(parts) == 6


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3000), st.sampled_from("abc")), max_size=12))
def test_parts_cover_the_text_once(rows: list[tuple[int, int, str]]) -> None:
    text = "word " * 600
    marks = [Locator(min(a, b), max(a, b), "symbol", [name, name * 2]) for a, b, name in rows]
    parts = parts_of(text, "t", marks)
    assert parts[0].start == 0
    assert parts[-1].end == len(text)
    assert all(a.end == b.start for a, b in pairwise(parts))
    assert all(one.start < one.end for one in parts)


def test_units_stay_in_their_section_and_their_offsets_in_the_document(tmp_path: Path) -> None:
    plain = Document("plain", "The Nimrod was small. " * 40, "Nimrod")
    documents = [plain, named("a.md", LONG), Document("z", "The Quest was the last ship.")]
    texts = {document.id: document.text for document in documents}
    parts = parts_of(LONG, documents[1].title, documents[1].locators)
    with Index.build(documents, tmp_path / "ix", settings=Settings(llm="heuristic")) as index:
        assert index.stats()["counts"]["documents"] == 3
        for mode in ("walk", "bm25", "text"):
            found = index.retrieve(
                "Which port did the Crew of the Maud sail to?", mode=mode, budget=5000
            ).passages
            assert {passage.document for passage in found} >= {"a.md"}
            for passage in found:
                assert texts[passage.document][passage.start : passage.end] == passage.text
                if passage.document == "a.md":
                    own = next(one for one in parts if one.start <= passage.start < one.end)
                    assert passage.end <= own.end
                    assert passage.title == own.title
        for span in index.inspect.entity("maud").sources:
            assert texts[span.document][span.start : span.end] == span.text
    with Index.build(documents, tmp_path / "other", settings=Settings(llm="heuristic", threads=2)) as again:
        assert again.digest == index.report.digest  # type: ignore[union-attr]


def test_windows_of_the_papers_are_not_cut_at_headings(tmp_path: Path) -> None:
    with Index.build([named("a.md", LONG)], tmp_path / "ix", settings=Settings(cut="windows")) as index:
        assert {passage.title for passage in index.retrieve("Maud", mode="bm25").passages} == {"Fleet"}


def test_functions_are_units(tmp_path: Path) -> None:
    part("tree_sitter_python", "code")
    code = "import os\n\n\n" + "\n\n".join(
        f"class Ship{n}:\n"
        + "".join(f"    def sail{n}{m}(self):\n        return 'port {n} {m}' * 12\n\n" for m in range(4))
        for n in range(6)
    )
    document = read_one("ships.py", code.encode())
    with Index.build([document], tmp_path / "ix") as index:
        found = index.retrieve("sail32 port", mode="bm25", top=1).passages[0]
        assert "def sail32" in found.text
        assert found.location["symbol"][0] == "Ship3"
        assert code[found.start : found.end] == found.text
