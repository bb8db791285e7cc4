"""Text as people see it: bitmap fonts of TeX, right-to-left lines, hyphens, and unseen words."""

from __future__ import annotations

import random

from tests.support.pdf_files import Page, pdf, simple
from tests.support.reading import at, read_all, read_one

PROSE = (
    "The heart of the issue can be shown with a simple example of the survival data",
    "which the station has measured since the first of the ships came to this coast",
)
COURIER = "/Type /Font /Subtype /Type1 /BaseFont /Courier"


def bitmap_font() -> str:
    """A Type 3 font whose glyphs have the names that dvips gives them."""
    names = " ".join(f"/a{code}" for code in range(11, 127))
    glyphs = " ".join(f"/a{code} 4 0 R" for code in range(11, 127))
    widths = " ".join("600" for _ in range(11, 127))
    return (
        "/Type /Font /Subtype /Type3 /FontBBox [0 0 600 700] /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 11"
        f" /LastChar 126 /Widths [{widths}] /CharProcs << {glyphs} >> /Encoding << /Type /Encoding"
        f" /Differences [11 {names}] >>"
    )


def test_bitmap_fonts_of_tex_are_read() -> None:
    page = Page()
    for number, line in enumerate((*PROSE, "in di\\033erent o\\016ces, 2\\0253 months")):
        page.raw(f"BT /F1 10 Tf 1 0 0 1 60 {760 - 14 * number} Tm ({line}) Tj ET")
    found = read_one("a.pdf", pdf([page], font=bitmap_font()))
    text = " ".join(found.text.split())
    assert text == f"{PROSE[0]} {PROSE[1]} in different offices, 2–3 months"


def test_letters_that_stand_for_others_are_not_read() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    for seed in range(5):
        mixed = "".join(random.Random(seed).sample(letters, 26))
        table = str.maketrans(letters + letters.upper(), mixed + mixed.upper())
        page = Page()
        for number, line in enumerate(PROSE * 2):
            page.raw(f"BT /F1 10 Tf 1 0 0 1 60 {760 - 14 * number} Tm ({line.translate(table)}) Tj ET")
        documents, failures = read_all("a.pdf", pdf([page], font=bitmap_font()))
        assert documents == []
        (failure,) = failures
        assert failure.startswith("a.pdf: the only page: unreadable letters: their fonts have no Unicode map")
        assert "--ocr eng recognises them" in failure


def test_the_words_of_hebrew_lines_are_in_reading_order() -> None:
    font = f"{COURIER} /Encoding << /Differences [97 {' '.join(f'/afii{57664 + n}' for n in range(26))}] >>"
    page = Page()
    for line, words in enumerate((("abc", "def", "ghij"), ("klm", "2024", "nop"))):
        right = 500
        for word in words:
            drawn = word if word.isdigit() else word[::-1]
            right -= 6 * len(word)
            page.text(right, 100 + 14 * line, drawn)
            right -= 6
    text = " ".join(read_one("a.pdf", pdf([page], font=font)).text.split())
    expected = "abc def ghij klm 2024 nop".translate({97 + n: 0x5D0 + n for n in range(26)})
    assert text == expected


def test_hyphens_that_belong_to_the_word() -> None:
    lines = "on the well-\nknown quay the self-\nservice pump and the AB-\n12 valve of Meyer-\nLund, 2019-\n"
    lines += "2021, soft-\nware"
    text = " ".join(read_one("a.pdf", simple(lines)).text.split())
    assert text == (
        "on the well-known quay the self-service pump and the AB-12 valve of Meyer-Lund, 2019-2021, software"
    )


def test_words_that_nobody_sees_are_left_out_and_reported() -> None:
    page = Page().text(60, 100, "Visible line about herring.")
    page.raw("1 1 1 rg").text(60, 130, "WHITE secret").raw("0 g").text(60, 150, "tiny secret", 0.5)
    page.text(700, 170, "outside")
    documents, failures = read_all("a.pdf", pdf([page]))
    assert [one.text for one in documents] == ["Visible line about herring."]
    assert failures == ["a.pdf: 5 words that nobody sees on the only page"]


def test_white_text_on_a_dark_box_is_seen() -> None:
    page = Page().raw("0 0 0.5 rg 50 700 400 60 re f 50 600 400 60 re f 50 500 400 60 re f")
    page.raw("50 400 400 60 re f 50 300 400 60 re f 1 1 1 rg").text(60, 110, "Head of the table").raw("0 g")
    for number in range(4):
        page.text(60, 560 + 14 * number, f"Row {number} of the table")
    assert "Head of the table" in read_one("a.pdf", pdf([page])).text
    whole = Page().raw("0 0 0.2 rg 0 0 595 842 re f 1 1 1 rg").text(60, 100, "White on a dark page.")
    assert read_one("a.pdf", pdf([whole])).text == "White on a dark page."


def test_a_watermark_is_not_the_title() -> None:
    page = Page().text(60, 100, "Annual report", 18)
    for number in range(20):
        page.text(60, 140 + 14 * number, f"Line {number} of the report about the harbour.")
    page.raw("BT /F1 60 Tf 0.7 0.7 -0.7 0.7 200 300 Tm (DRAFT) Tj ET")
    assert read_one("a.pdf", pdf([page])).title == "Annual report"


def test_a_running_head_is_never_the_whole_page() -> None:
    pages = [Page(rotate=turn).text(60, 60, "The only line of the page") for turn in (0, 0, 0, 180)]
    found = read_one("a.pdf", pdf(pages))
    assert [number for number, _ in at(found, "page")] == [1, 2, 3, 4]
    body = [Page().text(60, 60, "Running head") for _ in range(4)]
    for number, page in enumerate(body):
        page.text(60, 300, f"Text of page {'abcd'[number]}.")
    assert "Running head" not in read_one("a.pdf", pdf(body)).text


def test_a_stretched_line_is_not_a_table() -> None:
    page = Page().text(60, 100, "The first line of the paragraph is as wide as the column of the text.")
    page.text(60, 113, "leo. Praesent").text(170, 113, "feugiat sapien aliquet odio. Inte-")
    page.text(60, 126, "ger vitae justo.").text(180, 126, "Aliquam vestibulum fringilla lorem.")
    text = read_one("a.pdf", pdf([page])).text
    assert "\t" not in text
    assert "leo. Praesent feugiat sapien aliquet odio. Integer vitae justo. Aliquam" in " ".join(text.split())
