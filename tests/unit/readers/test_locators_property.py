"""Every word of a made document stands, by its locators, exactly where it was put."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ketrag_fast.types import Document
from ketrag_fast.types.locations import is_mark, location_of
from tests.support.office_files import docx, epub, odt, paragraph, pptx, shape
from tests.support.parts import part
from tests.support.pdf_files import Page, pdf
from tests.support.reading import read_one


@dataclass(frozen=True)
class Section:
    """A heading of a level with paragraphs of some words; all words differ."""

    level: int
    number: int
    words: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"Heading{self.number}x"

    def paragraphs(self) -> list[str]:
        return [
            " ".join(f"w{self.number}p{p}n{n}." for n in range(count)) for p, count in enumerate(self.words)
        ]


def _sections(rows: list[tuple[int, list[int]]]) -> list[Section]:
    return [Section(level, number, tuple(words)) for number, (level, words) in enumerate(rows)]


SECTIONS = st.lists(
    st.tuples(st.integers(1, 3), st.lists(st.integers(1, 9), min_size=1, max_size=3)), min_size=1, max_size=8
).map(_sections)


def paths(sections: list[Section]) -> list[list[str]]:
    """The headings above each section, itself among them."""
    found, above = [], []
    for section in sections:
        above = [one for one in above if one.level < section.level] + [section]
        found.append([one.name for one in above])
    return found


def check(document: Document, sections: list[Section], **places: list[int]) -> None:
    """Every word has its path of headings, and the number that `places` give its section."""
    for number, (section, path) in enumerate(zip(sections, paths(sections), strict=True)):
        wanted = path[1:] if path[0] == document.title else path
        for word in " ".join(section.paragraphs()).split():
            start = document.text.index(word)
            found = location_of(document.locators, start, start + len(word))
            assert found.get("heading", []) == wanted
            for kind, numbers in places.items():
                assert found[kind] == numbers[number]
        for one in document.locators:
            if one.kind == "heading":
                assert document.text[one.start : one.end].lstrip("#=- \n").startswith(one.value[-1])


MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SECTIONS)
def test_markdown(sections: list[Section]) -> None:
    parts = []
    for one in sections:
        parts += ["#" * one.level + " " + one.name, *one.paragraphs()]
    check(read_one("a.md", "\n\n".join(parts).encode()), sections)


@MANY
@given(SECTIONS)
def test_html(sections: list[Section]) -> None:
    part("resiliparse", "documents")
    body = ""
    for one in sections:
        texts = "".join(f"<p>{text}</p>" for text in one.paragraphs())
        body += f"<h{one.level}>{one.name}</h{one.level}>{texts}"
    found = read_one(
        "a.html", f"<html><title>t</title><main><article>{body}</article></main></html>".encode()
    )
    check(found, sections)


@MANY
@given(SECTIONS)
def test_epub(sections: list[Section]) -> None:
    part("resiliparse", "documents")
    chapters = [
        f"<h{one.level}>{one.name}</h{one.level}>" + "".join(f"<p>{text}</p>" for text in one.paragraphs())
        for one in sections
    ]
    found = read_one("a.epub", epub(chapters))
    check(found, sections, part=[f"OPS/text/c{n}.xhtml" for n in range(1, len(sections) + 1)])  # type: ignore[arg-type]


@MANY
@given(SECTIONS)
def test_docx_and_odt(sections: list[Section]) -> None:
    word = text = ""
    for number, one in enumerate(sections):
        word += "<w:p><w:r><w:lastRenderedPageBreak/></w:r></w:p>" if number else ""
        level = f'<w:pPr><w:outlineLvl w:val="{one.level - 1}"/></w:pPr>'
        word += f"<w:p>{level}<w:r><w:t>{one.name}</w:t></w:r></w:p>"
        word += "".join(paragraph(text) for text in one.paragraphs())
        text += f'<text:h text:outline-level="{one.level}">{one.name}</text:h>'
        text += "".join(f"<text:p>{own}</text:p>" for own in one.paragraphs())
    pages = {"page": list(range(1, len(sections) + 1))} if len(sections) > 1 else {}
    check(read_one("a.docx", docx(word)), sections, **pages)
    check(read_one("a.odt", odt(text)), sections)


@MANY
@given(SECTIONS)
def test_pptx(sections: list[Section]) -> None:
    slides = [shape([one.name], "title") + shape(one.paragraphs()) for one in sections]
    flat = [Section(1, one.number, one.words) for one in sections]
    check(read_one("a.pptx", pptx(slides)), flat, slide=list(range(1, len(sections) + 1)))


@MANY
@given(SECTIONS, st.booleans())
def test_pdf(sections: list[Section], columns: bool) -> None:
    part("pypdfium2", "documents")
    pages, marks = [], []
    for number, one in enumerate(sections):
        page = Page().text(60, 80, one.name, 14)
        for n, text in enumerate(one.paragraphs()):
            page.text(60, 120 + 30 * n, text, 8)
        pages.append(page)
        marks.append((one.level, number, one.name))
    found = read_one("a.pdf", pdf(pages, outline=marks, info={"Title": "The title"}))
    check(found, sections, page=list(range(1, len(sections) + 1)))
    for one in found.locators:
        if one.kind == "box":
            left, top, right, bottom = one.value
            assert 55 < left < right < 595
            assert 60 < top < bottom < 300


@pytest.mark.parametrize("name", ["a.md", "a.txt"])
def test_texts_are_as_they_were(name: str) -> None:
    text = "# A\r\n\r\ntext\u2028more\x0b\n\n## B\r\nend"
    found = read_one(name, text.encode())
    assert found.text == text
    for one in found.locators:
        assert found.text[one.start : one.end] == (text if is_mark(one) else "## B\r\nend")
