"""Pages whose text was recognised: the coordinates are those of another program."""

from __future__ import annotations

import math

import pytest

from ketrag_fast.readers.pdf.pages import empty_pages, paragraphs_of
from tests.support.parts import part

part("pypdfium2", "documents")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e300, -3e9])
def test_words_far_from_the_page_cost_nothing_else(number: float) -> None:
    import pypdfium2.raw

    pages = empty_pages(pypdfium2.raw)
    near = [(10.0, [(50.0, 20.0 * at, 90.0, 20.0 * at + 10.0, "near")]) for at in range(1, 10)]
    far = [(10.0, [(number, 300.0, number, 310.0, "far"), (50.0, number, 90.0, number, "away")])]
    pages.add_recognised(600.0, 800.0, [*near, *far])
    (found,) = paragraphs_of(pages)
    text = " ".join(paragraph.text for paragraph in found)
    assert text.split().count("near") == 9
    assert {"far", "away"} <= set(text.split())
    assert all(abs(edge) <= 1e6 for paragraph in found for edge in paragraph.box)
