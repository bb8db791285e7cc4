"""Headings of PDFs without an outline: filings have large letters on their cover only."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ketrag_fast.readers.pdf.pages import Paragraph
from ketrag_fast.readers.pdf.reader import may_head
from ketrag_fast.types import Document
from tests.support.parts import part
from tests.support.pdf_files import Page, pdf
from tests.support.reading import read_one

part("pypdfium2", "documents")


def _body(page: Page, number: int) -> None:
    for line in range(12):
        page.text(
            60, 300 + 14 * line, f"The ice of {'abcdefghij'[number]} and the snow of row {line} lasted.", 10
        )


def _filing(labels: Sequence[Sequence[tuple[int, str]]], cover: str = "UNITED SHIPS, INC.") -> Document:
    """A cover in large letters, and a page for each group of (left, label) in small letters."""
    pages = [Page().text(60, 100, "FORM 10-S", 20).text(60, 160, cover, 14)]
    for number, group in enumerate(labels):
        page = Page()
        for left, text in group:
            page.text(left, 120, text, 10)
        _body(page, number)
        pages.append(page)
    return read_one("a.pdf", pdf(pages))


def _paths(document: Document) -> list[list[str]]:
    return [list(one.value) for one in document.locators if one.kind == "heading"]


def test_labels_are_headings_where_large_letters_are_on_the_cover_only() -> None:
    labels = ["PART I", "Item 1. Ships", "Note 1 - Sledges", "Item 2.", "PART II. MORE", "Item 1A. Dangers"]
    groups = [[(60, label)] for label in labels]
    groups[3].append((200, "Crews and dogs"))
    groups += [[(60, "Item 3 of the report is about ice")], [(60, "Note 4 ends a sentence.")], []]
    found = _paths(_filing(groups))
    assert [path for path in found if path[0].startswith("PART")] == [
        ["PART I"],
        ["PART I", "Item 1. Ships"],
        ["PART I", "Item 1. Ships", "Note 1 - Sledges"],
        ["PART I", "Item 2. Crews and dogs"],
        ["PART II. MORE"],
        ["PART II. MORE", "Item 1A. Dangers"],
    ]


@pytest.mark.parametrize("mark", ["\u2612", "\u2610", "\u2022", "\u25ba", "\uf0fe"])
def test_a_bullet_or_a_box_begins_no_heading(mark: str) -> None:
    box = (60.0, 100.0, 300.0, 112.0)
    text = "QUARTERLY REPORT PURSUANT TO SECTION 13"
    assert may_head(Paragraph(text, 12.0, box, box, 0, 1, False, False))
    assert not may_head(Paragraph(f"{mark} {text}", 12.0, box, box, 0, 1, False, False))


def test_large_letters_stay_without_labels() -> None:
    assert _paths(_filing([[] for _ in range(9)])) == [["UNITED SHIPS, INC."]]


def test_a_title_without_letters_is_none() -> None:
    page = Page().text(60, 100, "Ships of the South", 20)
    _body(page, 0)
    assert (
        read_one("a.pdf", pdf([page], info={"Title": "0000320193-22-000070"})).title == "Ships of the South"
    )
