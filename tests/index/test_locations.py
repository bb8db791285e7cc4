"""Pages and headings of passages: stored with documents, kept by generations, printed by every command."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ketrag_fast import Document, Index, Locator, Settings
from ketrag_fast.storage.checksum import content_of
from ketrag_fast.storage.tables import Tables
from ketrag_fast.types.locations import (
    KINDS,
    describe_location,
    from_rows,
    location_of,
    sort_locators,
    to_text,
)
from tests.process import command
from tests.support.office_files import docx, paragraph, pptx, shape

PAGES = ["The Endurance was built at Sandefjord. " * 8, "Frank Wild led the men on the island. " * 8]


def located() -> Document:
    text = "\n\n".join(page.strip() for page in PAGES)
    cut = len(PAGES[0].strip())
    marks = (
        Locator(0, cut, "page", 1),
        Locator(cut + 2, len(text), "page", 2),
        Locator(cut + 2, len(text), "heading", ["3", "3.2 Men"]),
        Locator(cut + 2, len(text), "box", [1.0, 2.0, 3.0, 4.0]),
    )
    return Document("report.pdf", text, "Report", {}, marks)


def test_passages_say_where_they_stand(tmp_path: Path) -> None:
    plain = Document("plain.txt", "Ernest Shackleton sailed in the Endurance.")
    with Index.build([plain, located()], tmp_path / "ix", settings=Settings(chunk_tokens=60)) as index:
        found = index.retrieve("Who led the men on the island?", mode="bm25").passages[0]
        assert (found.document, found.page) == ("report.pdf", 2)
        assert found.location == {"page": 2, "heading": ["3", "3.2 Men"], "box": [1.0, 2.0, 3.0, 4.0]}
        data = json.loads(json.dumps(found.to_json()))
        assert data["page"] == 2
        assert data["location"]["heading"] == ["3", "3.2 Men"]
        other = next(
            p for p in index.retrieve("Shackleton", mode="bm25").passages if p.document == "plain.txt"
        )
        assert (other.page, other.location) == (None, {})


def test_the_command_prints_them(tmp_path: Path) -> None:
    (tmp_path / "talk.pptx").write_bytes(pptx([shape(["Ice"], "title") + shape(["The Fram was strong."])]))
    text = "# Guide\n\nIntro.\n\n## Ships\n\nThe Maud lay in the harbour.\n"
    (tmp_path / "guide.md").write_text(text)
    done = command("index", "talk.pptx", "guide.md", cwd=tmp_path)
    assert done.code == 0, done.err
    out = command("retrieve", "Which ship was strong?", "--mode", "bm25", cwd=tmp_path).out
    assert "talk.pptx:0-25  slide 1, § Ice  The Talk" in out
    out = command("ask", "Where lay the Maud?", "--mode", "bm25", cwd=tmp_path).out
    assert "§ Ships" in out
    out = command("retrieve", "Where lay the Maud?", "--mode", "bm25", "--json", cwd=tmp_path).out
    assert json.loads(out)["passages"][0]["location"] == {
        "heading": ["Ships"],
        "lines": [3, 7],
    }


def test_plain_documents_are_stored_as_before(tmp_path: Path) -> None:
    plain = Document("a", "text", "title", {"k": 1})
    assert content_of(plain) == content_of(Document("a", "text", "title", {"k": 1}, ()))
    assert content_of(plain) != content_of(
        Document("a", "text", "title", {"k": 1}, (Locator(0, 1, "page", 1),))
    )
    with Index.build([plain], tmp_path / "ix") as index:
        assert not [name for name in index.inspect.arrays()["units"] if name.startswith("location")]


def test_changed_locators_are_a_changed_document(tmp_path: Path) -> None:
    first = located()
    other = Document(first.id, first.text, first.title, {}, first.locators[:1])
    with Index.build([first], tmp_path / "ix") as index:
        assert index.retrieve("island", mode="bm25").passages[-1].location
    with Index.build([other], tmp_path / "ix") as index:
        assert index.report is not None
        assert index.report.updated == 1
    with Tables(tmp_path / "ix" / "index.sqlite") as tables:
        assert next(tables.documents()).locators == first.locators[:1]
        assert tables.altered() == {}
    with sqlite3.connect(tmp_path / "ix" / "index.sqlite") as db:
        db.execute("""UPDATE locators SET data = '[[0,1,"page",9]]'""")
    with Tables(tmp_path / "ix" / "index.sqlite", read_only=True) as tables:
        assert list(tables.altered().values()) == ["report.pdf"]


@pytest.mark.parametrize(
    "bad",
    [Locator(0, 99, "page", 1), Locator(-1, 2, "page", 1), Locator(2, 1, "page", 1), Locator(0, 1, "a b", 1)],
)
def test_locators_outside_of_the_text_are_refused(tmp_path: Path, bad: Locator) -> None:
    with Index.build(
        [Document("a", "text", "", {}, (bad,)), Document("b", "text")], tmp_path / "ix"
    ) as index:
        assert index.report is not None
        assert [failure.document for failure in index.report.failures] == ["a"]


def plain_location(locators: list[Locator], start: int, end: int) -> dict[str, object]:
    """The rules again, one kind after the other, for every locator that touches the stretch."""
    found: dict[str, object] = {}
    for kind in KINDS:
        own = [one for one in sort_locators(locators) if one.kind == kind]
        touching = [
            one for one in own if one.start < max(end, start + 1) and (one.end > start or one.start == start)
        ]
        if not touching or kind == "box":
            continue
        holding = [one for one in touching if one.start <= start]
        best = touching[0]
        if not holding and kind == "heading" and 2 * (best.start - start) > end - start:
            continue  # most of the stretch is above the first heading
        if holding:
            best = holding[0]
            for one in holding:
                if (one.end - one.start, -one.start) < (best.end - best.start, -best.start):
                    best = one
        found[kind] = best.value
        if kind in ("page", "slide", "line"):
            last = max(one.value for one in touching)
            if last > best.value:
                found[kind + "s"] = [best.value, last]
    return found


MARKS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(0, 40),
        st.sampled_from(["page", "slide", "heading", "line"]),
        st.integers(1, 9),
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(MARKS, st.integers(0, 40), st.integers(0, 40))
def test_location_of_a_stretch(rows: list[tuple[int, int, str, int]], a: int, b: int) -> None:
    marks = [Locator(min(x, y), max(x, y), kind, value) for x, y, kind, value in rows]
    start, end = sorted((a, b))
    assert location_of(sort_locators(marks), start, end) == plain_location(marks, start, end)
    assert from_rows(json.loads(to_text(marks) or "[]")) == sort_locators(marks)


def test_in_words() -> None:
    assert (
        describe_location({"page": 3, "pages": [3, 5], "heading": ["A", "B"], "box": [1, 2, 3, 4]})
        == "pp. 3-5, § A › B"
    )
    assert describe_location({"sheet": "Sums", "cell": "A2:C2"}) == "sheet Sums, A2:C2"
    assert (
        describe_location({"symbol": ["Ship", "sail"], "line": 4, "lines": [4, 9]}) == "Ship.sail, lines 4-9"
    )
    assert describe_location({}) == ""


def test_docx_pages_and_headings_of_a_long_document(tmp_path: Path) -> None:
    body = ""
    for n in range(1, 30):
        body += paragraph(f"Section {n}", "Ueber1") + paragraph(
            f"The vessel {n} met pack ice number {n}. " * 12
        )
        body += "<w:p><w:r><w:lastRenderedPageBreak/></w:r></w:p>"
    (tmp_path / "long.docx").write_bytes(docx(body))
    with Index.build(tmp_path / "long.docx", tmp_path / "ix") as index:
        for passage in index.retrieve("vessel 17 pack ice number 17", mode="bm25", top=3).passages:
            number = passage.text.partition("pack ice number ")[2].split(".")[0]
            assert passage.location["heading"] == [f"Section {number}"]
            assert passage.page == int(number)
