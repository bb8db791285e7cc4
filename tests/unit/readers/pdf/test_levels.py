"""Superscripts and subscripts of PDFs: exponents, marks of notes, formulas; and text that is not drawn."""

from __future__ import annotations

import pytest

from tests.support.pdf_files import HEIGHT, Page, pdf
from tests.support.reading import read_all, read_one


def line(*parts: tuple[str, float], turn: int = 0) -> Page:
    """A line of Courier: (text, rise) in parts, those with a rise in letters of 7 instead of 10 points."""
    operators = []
    for text, rise in parts:
        size = 7 if rise else 10
        operators.append(f"/F1 {size} Tf {rise} Ts ({text}) Tj")
    return Page([f"BT 1 0 0 1 60 {HEIGHT - 100} Tm {' '.join(operators)} ET"], rotate=turn)


@pytest.mark.parametrize("turn", [0, 90, 270])
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([("holds 10", 0), ("6", 4), (" litres of it", 0)], "holds 10^6 litres of it"),
        ([("a fee", 0), ("1", 4), (" since 2019", 0), ("12", 4), (" is", 0)], "a fee[1] since 2019[12] is"),
        ([("of H", 0), ("2", -2), ("O and CO", 0), ("2", -2), ("", 0)], "of H2O and CO2"),
        ([("e", 0), ("-kt", 4), (" here", 0)], "e^-kt here"),
        ([("the 4", 0), ("th", 4), (" of", 0)], "the 4th of"),
        ([("with x", 0), ("i", -2), ("2", 4), (" and", 0)], "with x_i^2 and"),
        ([("add 2", 0), ("1", 4), ("/", 0), ("2", -1), (" cups", 0)], "add 2 1/2 cups"),
        ([("2 a", 0), ("2", 4), ("b", 0), ("3", 4), ("c + d", 0)], "2 a^2b^3c + d"),
        ([("1", 4), ("See the map", 0)], "1 See the map"),
        ([("in L", 0), ("A", 2), ("TeX 2", 0)], "in LATeX 2"),
    ],
)
def test_levels(parts: list[tuple[str, float]], expected: str, turn: int) -> None:
    assert read_one("a.pdf", pdf([line(*parts, turn=turn)])).text == expected


def test_small_letters_on_the_same_line_are_not_exponents() -> None:
    page = Page().text(60, 100, "Chapter 10").text(126, 100, "small", 7)
    page.text(60, 140, "Total 10").text(200, 138, "6", 7)
    assert read_one("a.pdf", pdf([page])).text.split() == ["Chapter", "10", "small", "Total", "10", "6"]


def test_text_that_is_not_drawn_is_left_out_and_reported() -> None:
    page = Page().text(60, 100, "The herring is here.")
    page.raw("3 Tr").text(60, 130, "hidden instruction, longer than the visible text of the page").raw("0 Tr")
    documents, failures = read_all("a.pdf", pdf([page]))
    assert [one.text for one in documents] == ["The herring is here."]
    assert failures == ["a.pdf: 10 words that nobody sees on the only page"]


def test_recognised_text_behind_a_picture_is_read() -> None:
    page = Page(image=True).raw("3 Tr").text(60, 200, "recognised text of the scan").raw("0 Tr")
    page.text(60, 400, "Stamp of the archive")
    text = read_one("a.pdf", pdf([page])).text
    assert "recognised text of the scan" in text and "Stamp of the archive" in text
