"""PDF: reading order, pages, boxes, headings, and what cannot be read is named."""

from __future__ import annotations

import pytest

from tests.support.parts import part
from tests.support.pdf_files import WIDTH, Page, encrypted, pdf, simple
from tests.support.reading import at, read_all, read_one

part("pypdfium2", "documents")

LEFT = [f"left column line {n} with words" for n in range(20)]
RIGHT = [f"right column line {n} with words" for n in range(20)]


def two_columns(*, by_row: bool) -> Page:
    page = Page().text(80, 70, "A title that stands over both of the columns", 14)
    cells = [(60, n, text) for n, text in enumerate(LEFT)] + [(310, n, text) for n, text in enumerate(RIGHT)]
    if by_row:
        cells.sort(key=lambda cell: cell[1])
    for x, n, text in cells:
        page.text(x, 110 + 13 * n, text, 9)
    return page


def words(text: str) -> list[str]:
    return text.split()


def test_columns_are_read_one_after_the_other_however_they_were_drawn() -> None:
    for by_row in (True, False):
        found = read_one("a.pdf", pdf([two_columns(by_row=by_row)]))
        wanted = ["A title that stands over both of the columns", *LEFT, *RIGHT]
        assert words(found.text) == words(" ".join(wanted))
        assert found.title == wanted[0]


def test_a_line_over_both_columns_divides_them() -> None:
    page = Page()
    for n in range(8):
        page.text(60, 80 + 13 * n, LEFT[n], 9).text(310, 80 + 13 * n, RIGHT[n], 9)
    page.text(60, 200, "this line goes over both of the columns and divides the page into two halves", 9)
    for n in range(8, 16):
        page.text(60, 120 + 13 * n, LEFT[n], 9).text(310, 120 + 13 * n, RIGHT[n], 9)
    found = words(read_one("a.pdf", pdf([page])).text)
    middle = "this line goes over both of the columns and divides the page into two halves"
    assert found == words(" ".join([*LEFT[:8], *RIGHT[:8], middle, *LEFT[8:16], *RIGHT[8:16]]))


def test_forms_and_tables_are_read_by_row() -> None:
    page = Page().text(60, 80, "Order form")
    rows = [
        ("Name", "Ann"),
        ("Street", "Main 5"),
        ("Town", "Rye"),
        ("Code", "77"),
        ("Phone", "12345"),
        ("Fax", "-"),
    ]
    for n, (name, value) in enumerate(rows):
        page.text(60, 120 + 14 * n, name).text(300, 120 + 14 * n, value)
    text = read_one("a.pdf", pdf([page])).text
    assert "\n".join(f"{name}\t{value}" for name, value in rows) in text


def test_dots_of_a_table_of_contents_are_tabs() -> None:
    page = Page()
    for n in range(6):
        page.text(60, 80 + 14 * n, f"{n}.1 Chapter {'. ' * 30} {n + 7}")
    assert read_one("a.pdf", pdf([page])).text == "\n".join(f"{n}.1 Chapter\t{n + 7}" for n in range(6))


def test_hyphens_at_line_ends() -> None:
    lines = [
        "The expe-",
        "dition was a well-known one; its well-",
        "known ship and the de-",
        "parture of 1901-",
        "1904",
    ]
    page = Page()
    for n, line in enumerate(lines):
        page.text(60, 100 + 13 * n, line)
    text = " ".join(read_one("a.pdf", pdf([page])).text.split())
    assert "The expedition was a well-known one; its well-known ship and the departure of 1901-1904" in text


def test_a_word_that_a_column_or_page_cuts() -> None:
    first, second = Page(), Page()
    for n in range(10):
        first.text(
            60, 100 + 13 * n, f"line {n} of the first page with some words" if n < 9 else "and then the expe-"
        )
        second.text(
            60, 100 + 13 * n, "dition went south with some more words" if n == 0 else f"line {n} goes on here"
        )
    found = read_one("a.pdf", pdf([first, second]))
    assert "the expedition went south" in found.text
    pages = at(found, "page")
    assert [value for value, _ in pages] == [1, 2]
    assert pages[0][1].endswith("expe")
    assert pages[1][1].startswith("dition")


def test_running_heads_and_page_numbers_go() -> None:
    pages = []
    for number in range(1, 7):
        page = Page().text(60, 40, "Proceedings of the Society" if number % 2 else "A. Author, B. Author", 8)
        page.text(500, 40, f"{number + 16}", 8).text(280, 815, f"- {number + 16} -", 8)
        for n in range(12):
            page.text(60, 100 + 13 * n, f"page {number} says a thing in line {n} that is not said again")
        pages.append(page)
    text = read_one("a.pdf", pdf(pages)).text
    assert "Proceedings" not in text
    assert "Author" not in text
    assert "- 17 -" not in text
    assert all(f"page {number} says a thing in line {n}" in text for number in range(1, 7) for n in range(12))


def test_first_lines_that_differ_stay() -> None:
    pages = [
        Page().text(60, 60, f"{name} chapter begins").text(60, 90, "text of it")
        for name in ("One", "Two", "Six")
    ]
    text = read_one("a.pdf", pdf(pages)).text
    assert all(f"{name} chapter begins" in text for name in ("One", "Two", "Six"))


def test_rotated_text_and_rotated_pages() -> None:
    page = Page().text(30, 500, "a note along the margin", angle=90)
    for n in range(10):
        page.text(60, 100 + 13 * n, f"line {n} of the text that is read first")
    text = read_one("a.pdf", pdf([page])).text
    assert text.split("\n\n")[-1] == "a note along the margin"
    turned = Page(rotate=90)  # a landscape page: its text runs upwards on the sheet
    for n in range(10):
        turned.text(100 + 13 * n, 700, f"line {n} of a landscape page", angle=90)
    found = read_one("a.pdf", pdf([turned]))
    assert words(found.text) == words(" ".join(f"line {n} of a landscape page" for n in range(10)))


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("angle", [0, 90, 180, 270])
def test_text_in_any_direction_on_a_page_of_any_rotation(rotate: int, angle: int) -> None:
    page = Page(rotate=rotate)
    step = {0: (0, 1), 90: (1, 0), 180: (0, -1), 270: (-1, 0)}[angle]
    start = {0: (60, 100), 90: (100, 700), 180: (500, 600), 270: (500, 100)}[angle]
    for n in range(10):
        x, y = start[0] + 13 * n * step[0], start[1] + 13 * n * step[1]
        page.text(x, y, f"line {n} of a page", angle=angle)
    found = read_one("a.pdf", pdf([page]))
    assert words(found.text) == words(" ".join(f"line {n} of a page" for n in range(10)))


def test_outline_becomes_headings() -> None:
    pages = [
        Page().text(60, 80, "1 Results").text(60, 110, "first text here."),
        Page().text(60, 80, "1.2 Risks").text(60, 110, "second text here."),
        Page().text(60, 80, "2 End").text(60, 110, "third text here."),
    ]
    marks = [(0, 0, "1 Results"), (1, 1, "1.2 Risks"), (0, 2, "2 End")]
    found = read_one("a.pdf", pdf(pages, outline=marks, info={"Title": "Yearly report", "Author": "A. B."}))
    assert found.title == "Yearly report"
    assert found.metadata == {"author": "A. B.", "pages": 3}
    stretches = at(found, "heading")
    assert [value for value, _ in stretches] == [["1 Results"], ["1 Results", "1.2 Risks"], ["2 End"]]
    assert stretches[1][1].startswith("1.2 Risks")
    assert "second text here." in stretches[1][1]


def test_large_letters_are_headings_without_an_outline() -> None:
    page = Page().text(60, 60, "The Voyage", 22)
    for part_number, y in ((1, 100), (2, 300)):
        page.text(60, y, f"Part number {part_number}", 15)
        for n in range(6):
            page.text(60, y + 30 + 13 * n, f"text {n} of part {part_number} in small letters goes on and on.")
    found = read_one("a.pdf", pdf([page]))
    assert found.title == "The Voyage"
    assert [value for value, _ in at(found, "heading")] == [["Part number 1"], ["Part number 2"]]


def test_boxes_lie_where_the_text_is() -> None:
    found = read_one("a.pdf", pdf([Page().text(60, 100, "upper words").text(60, 400, "lower words")]))
    boxes = {text: value for value, text in at(found, "box")}
    for text, y in (("upper words", 100), ("lower words", 400)):
        left, top, right, bottom = boxes[text]  # type: ignore[misc]
        assert abs(left - 60) < 2
        assert y - 10 < top < bottom < y + 4
        assert abs(right - (60 + 6 * len(text))) < 3 < WIDTH


def test_pages_that_give_no_text_are_named() -> None:
    scan, blank = Page(image=True), Page()
    documents, failures = read_all("a.pdf", pdf([Page().text(60, 80, "some text"), scan, blank, scan, scan]))
    assert [document.text for document in documents] == ["some text"]
    assert len(failures) == 1
    assert "pages 2, 4-5: pictures without text" in failures[0]
    assert "--ocr" in failures[0]
    documents, failures = read_all("a.pdf", pdf([scan]))
    assert documents == []
    assert "the only page: pictures without text" in failures[0]


def test_fonts_without_a_unicode_map_are_named() -> None:
    font = (
        "/Type /Font /Subtype /Type1 /BaseFont /Courier "
        "/Encoding << /Type /Encoding /Differences [32 " + " ".join(f"/g{n}" for n in range(32, 127)) + "] >>"
    )
    page = Page()
    for n in range(5):
        page.text(60, 80 + 14 * n, "letters that mean nothing to a program")
    documents, failures = read_all("a.pdf", pdf([page], font=font))
    assert documents == []
    assert "no Unicode map" in failures[0]


def test_bad_files() -> None:
    good = simple("some text here")
    for data, why in (
        (encrypted(), "encrypted"),
        (b"%PDF", "not a PDF, or damaged"),
        (pdf([]), "PDF"),
        (good[:200], "not a PDF, or damaged"),
        (simple(""), "no page has text"),
    ):
        documents, failures = read_all("a.pdf", data)
        assert documents == [], why
        assert len(failures) == 1
        assert why in failures[0]
    documents, failures = read_all("a.pdf", pdf([Page().text(60, 80, "some text")], count=1_000_000))
    assert documents == []
    assert failures == ["a.pdf: the PDF has 1,000,000 pages; the maximum is 50,000"]


def test_ligatures_are_letters() -> None:
    font = (
        "/Type /Font /Subtype /Type1 /BaseFont /Courier "
        "/Encoding << /Type /Encoding /BaseEncoding /WinAnsiEncoding /Differences [126 /fi] >>"
    )
    assert read_one("a.pdf", pdf([Page().text(60, 80, "the ~nal word")], font=font)).text == "the final word"


def test_lines_that_are_far_from_the_page_cost_nothing_else() -> None:
    """A matrix may put text anywhere: beyond all numbers, too."""
    for place in ("1e30", "9e37", "-3e38", "1" + "0" * 60):
        page = two_columns(by_row=False)
        page.raw(f"BT /F1 9 Tf 1 0 0 1 {place} 300 Tm (far away text) Tj ET")
        page.raw(f"BT /F1 9 Tf {place} 0 0 {place} 10 10 Tm (huge text) Tj ET")
        documents, _ = read_all("a.pdf", pdf([page]))
        assert len(documents) == 1
        for line in (*LEFT, *RIGHT):
            assert line in " ".join(documents[0].text.split())
