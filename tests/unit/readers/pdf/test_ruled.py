"""Tables of a PDF with drawn rules: what is between rules is one cell."""

from __future__ import annotations

from itertools import pairwise

from tests.support.parts import part
from tests.support.pdf_files import HEIGHT, Page, pdf
from tests.support.reading import read_one

part("pypdfium2", "documents")

XS = (60, 160, 300, 440)
YS = (100, 130, 180, 230)


def _rule(page: Page, x: float, y: float, x2: float, y2: float) -> None:
    """Draw a rule as a thin box; y counts from the top."""
    page.raw(f"{x} {HEIGHT - y2} {max(x2 - x, 0.5)} {max(y2 - y, 0.5)} re f")


def _ruled(rows: tuple[float, ...] = YS) -> Page:
    page = Page()
    for y in rows:
        _rule(page, XS[0], y, XS[-1], y)
    for x in XS:
        for top, bottom in pairwise(rows):
            _rule(page, x, top, x, bottom)
    return page


def _fill(page: Page) -> None:
    for x, head in zip(XS, ("Property", "What is assessed", "How"), strict=False):
        page.text(x + 4, 118, head, 8)
    for row, top in enumerate(YS[1:3]):
        page.text(XS[0] + 4, top + 20, f"Kind {row}", 8)
        for number, text in enumerate(("stability of scores", "over the years")):
            page.text(XS[1] + 4, top + 14 + 12 * number, text, 8)
        for number, text in enumerate(("- by two tests", "- by hand", "- by kappa")):
            page.text(XS[2] + 4, top + 14 + 12 * number, text, 8)


def _text(page: Page) -> str:
    return read_one("a.pdf", pdf([page])).text


def test_the_lines_between_rules_are_one_cell() -> None:
    page = _ruled()
    _fill(page)
    page.text(60, 60, "Measures of the properties of instruments in trials", 10)
    page.text(60, 260, "Below the table", 10)
    assert _text(page).splitlines() == [
        "Measures of the properties of instruments in trials",
        "",
        "Property\tWhat is assessed\tHow",
        "Kind 0\tstability of scores over the years\t- by two tests - by hand - by kappa",
        "Kind 1\tstability of scores over the years\t- by two tests - by hand - by kappa",
        "",
        "Below the table",
    ]


def test_open_sides_and_labels_without_rules() -> None:
    page = Page()
    for y in range(100, 240, 20):
        _rule(page, 60 if y in (100, 120, 220) else 160, y, 440, y)
    for x in (160, 300):
        _rule(page, x, 100, x, 220)
    for row in range(6):
        for x, text in ((64, "name" if row == 0 else f"row {row}"), (164, f"{row}1"), (304, f"{row}2")):
            page.text(x, 114 + 20 * row, text, 8)
    lines = _text(page).splitlines()
    assert lines == ["name\t01\t02", *(f"row {row}\t{row}1\t{row}2" for row in range(1, 6))]


def test_a_frame_without_rules_between_its_rows_is_read_by_its_lines() -> None:
    page = _ruled(rows=(100, 120, 240))
    for row in range(6):
        for x, text in zip(XS, (f"item {row}", f"{row}12", f"{row}34"), strict=False):
            page.text(x + 4, 114 + 20 * row, text, 8)
    assert _text(page).splitlines()[-1] == "item 5\t512\t534"


def test_words_across_rules_are_no_table() -> None:
    page = _ruled()
    for row in range(8):
        page.text(
            62, 112 + 14 * row, "the sledges were left with the coal and the tins of meat on the ice", 8
        )
    assert "\t" not in _text(page)


def test_a_page_of_many_rules_is_read_in_time() -> None:
    page = Page()
    for number in range(2000):
        x, y = 50 + number % 300, 90 + 7 * number % 500
        _rule(page, x, y, x + 10, y)
        _rule(page, x, y, x, y + 10)
    page.text(60, 60, "some words", 10)
    assert "some words" in _text(page)
