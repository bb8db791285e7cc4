"""Tables of a PDF: each value is in the row and the column where the page shows it."""

from __future__ import annotations

from tests.support.parts import part
from tests.support.pdf_files import Page, pdf
from tests.support.reading import read_one

part("pypdfium2", "documents")

ROWS = [
    ("Cash and equivalents", "22,884", "13,931"),
    ("Short-term investments", "", "90,826"),
    ("Inventories", "4,268", ""),
    ("Other current assets", "18,003", "(16,924)"),
]


def _text(*pages: Page) -> str:
    return read_one("a.pdf", pdf(list(pages))).text


def _right(page: Page, right: float, y: float, text: str, size: float = 10) -> None:
    """Write text that ends at `right`."""
    page.text(right - 0.6 * size * len(text), y, text, size)


def _balance(page: Page, top: float, sign: str = "$") -> None:
    for number, (label, first, second) in enumerate(ROWS):
        y = top + 16 * number
        page.text(60, y, label, 10)
        for right, value in ((380, first), (480, second)):
            if value:
                _right(page, right, y, value)
                if sign and number == 0:
                    page.text(right - 60, y, sign, 10)


def test_a_currency_sign_belongs_to_the_value_after_it() -> None:
    page = Page()
    _balance(page, 100)
    assert _text(page).splitlines()[0] == "Cash and equivalents\t$22,884\t$13,931"


def test_an_empty_cell_keeps_its_column() -> None:
    page = Page()
    _balance(page, 100)
    assert _text(page).splitlines()[1:] == [
        "Short-term investments\t\t90,826",
        "Inventories\t4,268",
        "Other current assets\t18,003\t(16,924)",
    ]


def test_the_lines_of_a_label_are_one_row() -> None:
    page = Page()
    _balance(page, 100)
    page.text(60, 164, "Common stock, of which 16,095,378 and", 10)
    page.text(60, 176, "16,426,786 shares were issued", 10)
    _right(page, 380, 176, "62,115")
    _right(page, 480, 176, "57,365")
    expected = "Common stock, of which 16,095,378 and 16,426,786 shares were issued\t62,115\t57,365"
    assert _text(page).splitlines()[-1] == expected


def test_a_heading_over_columns_is_above_the_first_of_them() -> None:
    page = Page()
    page.text(350, 70, "Months Ended", 10)
    page.text(350, 84, "2022", 10)
    page.text(450, 84, "2021", 10)
    _balance(page, 100)
    assert _text(page).splitlines()[:2] == ["\tMonths Ended", "\t2022\t2021"]


def test_tables_with_other_columns_do_not_share_columns() -> None:
    page = Page()
    _balance(page, 100, sign="")
    for number in range(4):
        y = 300 + 16 * number
        page.text(60, y, f"Part {number}", 10)
        for column in range(4):
            _right(page, 200 + 80 * column, y, f"{number}{column}")
    lines = _text(page).splitlines()
    assert lines[0] == "Cash and equivalents\t22,884\t13,931"
    assert lines[-1] == "Part 3\t30\t31\t32\t33"


def test_words_of_letters_of_one_width_are_not_cells() -> None:
    page = Page()
    for number in range(6):
        page.text(60, 80 + 12 * number, f"if found[{number}] is None: return {number}", 9)
    assert "\t" not in _text(page)


def test_page_numbers_below_the_text_are_removed_at_any_height() -> None:
    pages = []
    for number in range(6):
        page = Page()
        for line in range(4 + 5 * number):
            page.text(60, 80 + 14 * line, f"Ice and snow of {'abcdefgh'[number]} row {line} on the way", 10)
        page.text(200, 100 + 14 * (4 + 5 * number), f"Report of the voyage | {number + 3}", 10)
        pages.append(page)
    assert "Report" not in _text(*pages)


def test_a_number_that_does_not_grow_with_the_pages_stays() -> None:
    pages = []
    for number in (17, 4, 11, 5):
        page = Page()
        page.text(60, 80, f"Ships lost in the ice of {'abcd'[number % 4]}", 10)
        page.text(60, 400, f"{number}", 10)
        pages.append(page)
    text = _text(*pages)
    assert all(f"{number}" in text for number in (17, 4, 11, 5))


def test_items_and_repeated_lines_in_large_letters_are_no_headings() -> None:
    pages = []
    for number in range(8):
        page = Page()
        page.text(60, 140, "Annual report of the company", 16)
        page.text(60, 180, f"Chapter {'abcdefgh'[number]}", 16)
        page.text(60, 220, "- take care of the sledges", 16)
        for line in range(10):
            page.text(60, 260 + 14 * line, f"The ice of {'abcdefgh'[number]} and the snow of row {line}", 10)
        pages.append(page)
    document = read_one("a.pdf", pdf(pages))
    names = {name for one in document.locators if one.kind == "heading" for name in one.value}
    assert names == {f"Chapter {letter}" for letter in "abcdefgh"} - {document.title}
