"""A table that goes on on the next page has the heads of its columns there, too."""

from __future__ import annotations

from tests.support.parts import part
from tests.support.pdf_files import Page, pdf
from tests.support.reading import read_one

part("pypdfium2", "documents")

HEADS = ("Ship", "Left", "Men")


def _page(first: int, heads: tuple[str, ...] = (), xs: tuple[int, ...] = (60, 260, 400)) -> Page:
    page = Page()
    for x, head in zip(xs, heads, strict=False):
        page.text(x, 130, head, 10)
    for row in range(30):
        for x, text in zip(
            xs, (f"Vessel {first + row}", f"{1800 + first + row}", f"{first * 30 + row}"), strict=True
        ):
            page.text(x, 150 + 18 * row, text, 10)
    return page


def _pages(*pages: Page) -> list[str]:
    document = read_one("a.pdf", pdf(list(pages)))
    return [document.text[one.start : one.end] for one in document.locators if one.kind == "page"]


def test_rows_on_later_pages_have_the_heads() -> None:
    found = _pages(_page(0, HEADS), _page(30), _page(60))
    assert [page.split("\n")[:2] for page in found] == [
        ["Ship\tLeft\tMen", f"Vessel {number}\t{1800 + number}\t{number * 30}"] for number in (0, 30, 60)
    ]
    assert [page.count("Ship") for page in found] == [1, 1, 1]


def test_a_page_with_heads_keeps_its_own() -> None:
    found = _pages(_page(0, HEADS), _page(30, ("Boat", "Built", "Crew")), _page(60))
    assert [page.split("\n")[0] for page in found] == ["Ship\tLeft\tMen", *["Boat\tBuilt\tCrew"] * 2]


def test_a_table_with_other_columns_gets_no_heads() -> None:
    found = _pages(_page(0, HEADS), _page(30, xs=(60, 180, 500)))
    assert found[1].startswith("Vessel 30\t1830\t900")


def test_text_between_the_tables_ends_them() -> None:
    above = _page(30).text(60, 120, "Other ships of the same years, which were lost", 10)
    found = _pages(_page(0, HEADS), above)
    assert "Ship\t" not in found[1]
