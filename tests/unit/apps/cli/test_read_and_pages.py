"""`ketrag read`, and the pages of `--html` whose links open the sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.context_page import address, link_citations, page
from ketrag_fast.types import Answer, Citation, Context, Passage
from tests.process import command
from tests.support.office_files import archive, docx, paragraph, pptx, shape


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    slides = [shape(["Ice"], "title") + shape(["Pack ice."]), shape(["End"], "title")]
    (tmp_path / "talk.pptx").write_bytes(pptx(slides))
    (tmp_path / "broken.docx").write_bytes(docx(paragraph("x"))[:-30])
    return tmp_path


def test_read_for_people(folder: Path) -> None:
    done = command("read", "talk.pptx", cwd=folder)
    assert done.code == 0
    assert done.out.splitlines() == [
        "== talk.pptx  (19 characters)",
        "title: The Talk",
        "author: Ann Author",
        "date: 2024-05-06T07:08:09Z",
        "slides: 2",
        "-- slide 1, § Ice",
        "Ice",
        "",
        "Pack ice.",
        "-- slide 2, § End",
        "End",
        "",
    ]
    assert "... and 15 more characters" in command("read", "talk.pptx", "--characters", "4", cwd=folder).out


def test_read_as_json(folder: Path) -> None:
    done = command("read", ".", "--json", cwd=folder)
    assert done.code == 3
    data = json.loads(done.out)
    assert data["schema"] == "ketrag/read/1"
    (made,) = data["documents"]
    assert [
        made["text"][one["start"] : one["end"]] for one in made["locators"] if one["kind"] == "slide"
    ] == [
        "Ice\n\nPack ice.",
        "End",
    ]
    assert data["failures"][0]["document"] == "broken.docx"


def test_read_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0\1\2")
    assert command("read", "nowhere", cwd=tmp_path).code == 1
    done = command("read", "a.bin", cwd=tmp_path)
    assert done.code == 1
    assert "no file of a known format" in done.err


def test_files_of_documents(tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "a.md").write_text("The Fram was strong.")
    (source / "all.zip").write_bytes(archive({"x/b.txt": "The Maud was slow."}))
    (source / "rows.csv").write_text("text\nThe Nimrod was old.\n")
    names = ["deep/a.md", "all.zip/x/b.txt", "rows.csv#2", "given"]
    with Index.build([source, Document("given", "The Quest was small.")], tmp_path / "ix") as index:
        assert index.inspect.files(names) == {
            "deep/a.md": source / "deep" / "a.md",
            "all.zip/x/b.txt": source / "all.zip",
            "rows.csv#2": source / "rows.csv",
        }
        (source / "rows.csv").unlink()
        assert set(index.inspect.files(names)) == {"deep/a.md", "all.zip/x/b.txt"}
    with Index.build([str(tmp_path / "in" / "**" / "*.md")], tmp_path / "ix2") as index:
        assert index.inspect.files(["deep/a.md"]) == {"deep/a.md": source / "deep" / "a.md"}


def passage(text: str, **location: object) -> Passage:
    number = location.get("page")
    page_number = number if isinstance(number, int) else None
    return Passage(
        1, "chunk", 0, 0, "d", "", 0, len(text), 1.0, 3, "walk", text, page_number, location=location
    )  # fmt: skip


def test_addresses(tmp_path: Path) -> None:
    pdf, web, word = tmp_path / "a b.pdf", tmp_path / "a.html", tmp_path / "a.docx"
    assert address(pdf, passage("x", page=12)).endswith("/a%20b.pdf#page=12")
    found = address(web, passage("one <b> three four five six seven\neight"))
    assert found.endswith("#:~:text=one%20%3Cb%3E%20three%20four%20five%20six")
    assert address(word, passage("x")).endswith("/a.docx")


def test_the_page_of_an_answer(tmp_path: Path) -> None:
    first = passage("He died <here>.", page=3, heading=["Life"])
    context = Context("Where?", "walk", 100, 5, "text", [first])
    answer = Answer("Where?", "At <Rye> [1] and [7].", context, [Citation(1, first)])
    assert link_citations(answer) == 'At &lt;Rye&gt; <a href="#p1">[1]</a> and [7].'
    made = page(context, {"d": tmp_path / 'x"y.pdf'}, answer)
    assert "x%22y.pdf#page=3" in made
    assert "p. 3, § Life" in made
    assert "<here>" not in made
    assert "<script" not in made


def test_ask_writes_a_page(folder: Path) -> None:
    assert command("index", "talk.pptx", cwd=folder).code == 0
    done = command("ask", "Which ice?", "--html", "out.html", cwd=folder)
    assert done.code == 0, done.err
    made = (folder / "out.html").read_text("utf-8")
    assert (folder / "talk.pptx").as_uri() in made
    assert command("ask", "Which ice?", "--html", "no/such/out.html", cwd=folder).code == 2
