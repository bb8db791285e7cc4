"""The core lays out pages as the oracle in Python does: the same paragraphs, boxes and columns."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest
from tests.oracles.pdf_layout import paragraphs_of_pdf
from tests.support.papers import WAYS, Sheet, Words, document, form, paper, plain, with_heads
from tests.support.parts import part
from tests.support.pdf_files import HEIGHT, Page, pdf

part("pypdfium2", "documents")

TEXT = (
    "The ice was well-known, and the ship - built for it - was stuck. Of the sledges (five of them) none were"
    "\u00ad lost: 12 men left in 1914, 3,500 miles away; a half-known coast. Cash $ 12 (34) % n/a lay"
    " there at 5.6 %."
)


def _paragraphs(data: bytes) -> list[list[tuple[Any, ...]]]:
    import pypdfium2
    import pypdfium2.raw as raw

    from ketrag_fast.readers.pdf.pages import paragraphs_of, read_pages

    document = pypdfium2.PdfDocument(io.BytesIO(data))
    pages, broken, _ = read_pages(document, range(len(document)), raw, pypdfium2, None)
    document.close()
    assert broken == []
    return [[tuple(own) for own in page] for page in paragraphs_of(pages)]


def _expected(data: bytes) -> list[list[tuple[Any, ...]]]:
    return [
        [
            (own.text, own.size, tuple(own.box), tuple(box), own.column, own.rows, own.open, own.soft)
            for own, box in page
        ]
        for page in paragraphs_of_pdf(data)
    ]


def _table(chance: random.Random) -> Page:
    """Return a page of numbers and labels at columns, with rules on some."""
    page = Page()
    xs = sorted(chance.sample(range(60, 520, 45), chance.randint(2, 5)))
    ys = [90 + at * chance.choice((11, 12, 24)) for at in range(chance.randint(3, 12))]
    words = TEXT.split()
    for y in ys:
        for number, x in enumerate(xs):
            if chance.random() < 0.2:
                continue
            label = " ".join(chance.choices(words, k=chance.randint(1, 3)))
            value = chance.choice(("$", "12", "(3,456)", "n/a", "-", "7 %", label, "1 . . . . 5"))
            page.text(x, y, label if number == 0 else value, chance.choice((8, 8, 8, 10)))
    if chance.random() < 0.5:
        for y in [y - 10 for y in ys] + [ys[-1] + 4]:
            page.raw(f"{xs[0] - 4} {HEIGHT - y} {xs[-1] - xs[0] + 60} 0.5 re f")
        for x in [*(x - 4 for x in xs), xs[-1] + 56]:
            page.raw(f"{x} {HEIGHT - ys[-1] - 4} 0.5 {ys[-1] - ys[0] + 14} re f")
    # The oracle does not repeat the heads of a table that goes on on the next page.
    below = (
        f"Below the table is a line of text, with the number {chance.random()} inside, too long for a cell"
    )
    page.text(60, 700, below, 8)
    page.text(60, 40, f"Report of the voyage {chance.randint(1, 3)}", 9)
    page.text(300, 800, str(chance.randint(1, 9)), 9)
    return page


@pytest.mark.parametrize("seed", range(8))
def test_papers_and_forms(seed: int) -> None:
    chance = random.Random(seed)
    words = Words(TEXT.encode("cp1252", "ignore").decode("cp1252"))
    sheets: list[Sheet] = []
    for way in WAYS:
        sheets += [paper(words, way, chance, side=seed % 2 == 0), form(words, way, chance)]
    sheets += [paper(words, "by row", chance, columns=3), plain(words, "words apart", chance)]
    with_heads(sheets, "On the Voyage South")
    data = document(sheets)
    assert _paragraphs(data) == _expected(data)


@pytest.mark.parametrize("seed", range(12))
def test_tables(seed: int) -> None:
    chance = random.Random(seed)
    data = pdf([_table(chance) for _ in range(12)])
    assert _paragraphs(data) == _expected(data)


# Seeds 36 and 38 have small text next to the end of large text that is written in another direction.
@pytest.mark.parametrize("seed", [*range(6), 36, 38])
def test_turned_and_odd_matrices(seed: int) -> None:
    """Matrices give any size, angle and place, also infinite ones."""
    chance = random.Random(seed)
    pages = []
    for _ in range(12):
        page = Page()
        numbers = ["1", "0", "-1", "0.7", "-0.7", "12", "1e9", "9" * 41, "0.001"]
        for line in TEXT.split(". "):
            matrix = " ".join(chance.choices(numbers, weights=[6, 6, 1, 1, 1, 1, 0.2, 0.2, 0.3], k=4))
            text = line.encode("ascii", "ignore").decode().replace("(", "").replace(")", "")
            place = f"{chance.randint(50, 500)} {chance.randint(50, 700)}"
            page.raw(f"BT /F1 {chance.choice((1, 9, 10))} Tf {matrix} {place} Tm ({text}) Tj ET")
        pages.append(page)
    data = pdf(pages)
    assert _paragraphs(data) == _expected(data)
