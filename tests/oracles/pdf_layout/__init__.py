"""The layout of PDF pages in Python: an oracle for the crate `ketrag-layout`, which does the same.

It reads PDFium through ctypes, with one call for each number. It knows no superscripts and subscripts, so the
pages that it is given have none: `tests/unit/readers/pdf/test_levels.py` checks those.
"""

from __future__ import annotations

from tests.oracles.pdf_layout.columns import rows_of
from tests.oracles.pdf_layout.lines import PageLines, lines_of
from tests.oracles.pdf_layout.paragraphs import Paragraph, compounds, paragraphs_of
from tests.oracles.pdf_layout.repeated import remove_repeated_lines


def paragraphs_of_pdf(data: bytes) -> list[list[tuple[Paragraph, list[float]]]]:
    """Return the paragraphs of each page, each with its box on the displayed page."""
    import pypdfium2
    import pypdfium2.raw as raw

    document = pypdfium2.PdfDocument(data)
    pages: list[PageLines] = []
    for page in document:
        pages.append(lines_of(raw, page))
        page.close()
    document.close()
    remove_repeated_lines(pages)
    rows = [rows_of(page) for page in pages]
    known = compounds(row for own in rows for row in own)
    return [
        [(paragraph, page.displayed(paragraph.box)) for paragraph in paragraphs_of(own, known)]
        for page, own in zip(pages, rows, strict=True)
    ]
