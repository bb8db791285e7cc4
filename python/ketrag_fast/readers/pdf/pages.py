"""Read the pages of a PDF: the core calls PDFium for each page and finds its paragraphs and tables."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from ketrag_fast._core import PdfPages
from ketrag_fast.readers.pdf.scanned import recognise_page

LAYOUT = 1
"""Raise it when the crate ketrag-layout gives another text: files are then read again."""
_Box = tuple[float, float, float, float]


class Paragraph(NamedTuple):
    """A paragraph of a page. Boxes are left, top, right, bottom in points.

    `box` is on the page as its text is written, `shown` on the page as it is displayed. `open`: it may go on
    in the next column; `soft`: it ends inside a word.
    """

    text: str
    size: float
    box: _Box
    shown: _Box
    column: int
    rows: int
    open: bool
    soft: bool


def empty_pages(raw: Any) -> PdfPages:
    """Return no pages, to which those of a document can be added."""
    return PdfPages([_address(getattr(raw, name)) for name in PdfPages.functions()])


def read_pages(
    document: Any, numbers: Iterable[int], raw: Any, pdfium: Any, ocr: str | None
) -> tuple[PdfPages, list[int]]:
    """Return pages of an open document, and the numbers of damaged ones, which are empty.

    `raw` is pypdfium2.raw, `pdfium` is pypdfium2. The text of pictures is recognised if `ocr` names
    languages.
    """
    pages = empty_pages(raw)
    broken: list[int] = []
    with suppress(pdfium.PdfiumError):
        document.init_forms()  # draws the fields that have no stored appearance
    for number in numbers:
        try:
            _add_page(pages, document, number, raw, ocr)
        except pdfium.PdfiumError:
            broken.append(number + 1)
            pages.add_recognised(0.0, 0.0, [])
    return pages, broken


def _add_page(pages: PdfPages, document: Any, number: int, raw: Any, ocr: str | None) -> None:
    page = document[number]
    try:
        if _is_filled_in(page, raw):
            raw.FPDFPage_Flatten(page.raw, raw.FLAT_NORMALDISPLAY)
            page.close()
            page = document[number]
        text_page = page.get_textpage()
        try:
            width, height = page.get_size()
            handles = _address(page.raw), _address(text_page.raw)
            state = pages.add(*handles, width, height, page.get_rotation())
        finally:
            text_page.close()
        if ocr and state == "scanned":
            pages.pop()
            pages.add_recognised(width, height, recognise_page(page, ocr))
    finally:
        page.close()


def _is_filled_in(page: Any, raw: Any) -> bool:
    """Return whether text was added to a page: fields of a form, typed text, or stamps."""
    written = (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP)
    for number in range(raw.FPDFPage_GetAnnotCount(page.raw)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, number)
        if annotation:
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            raw.FPDFPage_CloseAnnot(annotation)
            if kind in written:
                return True
    return False


def paragraphs_of(pages: PdfPages) -> list[list[Paragraph]]:
    """Return the paragraphs of each page, without running heads and page numbers."""
    return [[Paragraph._make(fields) for fields in own] for own in pages.paragraphs()]


def _address(value: Any) -> int:
    return ctypes.cast(value, ctypes.c_void_p).value or 0
