"""Read the pages of a PDF: the core calls PDFium for each page and finds its paragraphs and tables."""

from __future__ import annotations

import ctypes
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import groupby
from typing import Any, Final, NamedTuple

from ketrag_fast._core import PdfPages
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.ocr import RecognisedWord, recognise
from ketrag_fast.readers.pdf.fields import Field, placed_texts, take_fields
from ketrag_fast.readers.pdf.inside import Remark, remarks_of
from ketrag_fast.readers.protocol import SourceFile, import_optional

LAYOUT = 3
"""Version of the crate ketrag-layout: increase it when its text changes, so that files are read again."""
_Box = tuple[float, float, float, float]
Part = tuple[bytes, list[int], list[Remark]]
"""Packed pages, the numbers of damaged ones, and the comments on the pages."""


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
) -> tuple[PdfPages, list[int], list[Remark]]:
    """Return pages of an open document, the numbers of damaged ones, which are empty, and comments.

    `raw` is pypdfium2.raw, `pdfium` is pypdfium2. The text of pictures is recognised if `ocr` names
    languages.
    """
    pages = empty_pages(raw)
    broken: list[int] = []
    remarks: list[Remark] = []
    with suppress(pdfium.PdfiumError):
        document.init_forms()  # draws the fields that have no stored appearance
    for number in numbers:
        try:
            remarks += _add_page(pages, document, number, raw, ocr)
        except pdfium.PdfiumError:
            broken.append(number + 1)
            pages.add_recognised(0.0, 0.0, [])
    return pages, broken, remarks


def read_range(document: Any, raw: Any, pdfium: Any, own: range, ocr: str | None) -> Part:
    """Return a range of the pages of an open document."""
    pages, broken, remarks = read_pages(document, own, raw, pdfium, ocr)
    return pages.pack(), broken, remarks


def pages_reply(file: SourceFile, own: range) -> dict[str, Any]:
    """Return the reply of a process to a request for a range of pages."""
    try:
        packed, broken, remarks = read_range(*_open(file), own, file.ocr)
    except DocumentError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": f"cannot be read: {error.strerror or error}"}
    return {"packed": b64encode(packed).decode("ascii"), "broken": broken, "remarks": remarks}


def open_document(file: SourceFile, raw: Any, pdfium: Any) -> Any:
    """Return the document of a file. Raises OSError, or PdfiumError if it is not a PDF.

    `PdfDocument` would resolve a path and open it again. PDFium opens the path of the descriptor instead, so
    that it reads the file that was checked. On systems without such paths it reads from the stream, which
    takes longer.
    """
    if file.data is not None:
        return pdfium.PdfDocument(file.data)
    stream = file.open()
    handle = raw.FPDF_LoadDocument(f"/proc/self/fd/{stream.fileno()}\0".encode(), None)
    if not handle:  # the same error again, with its message
        return pdfium.PdfDocument(stream, autoclose=True)
    stream.close()
    return pdfium.PdfDocument(handle)


@cache
def _open(file: SourceFile) -> tuple[Any, Any, Any]:
    """Return the document of a process, and the modules of PDFium."""
    pdfium, raw = (import_optional(name, "a PDF") for name in ("pypdfium2", "pypdfium2.raw"))
    return open_document(file, raw, pdfium), raw, pdfium


def _add_page(pages: PdfPages, document: Any, number: int, raw: Any, ocr: str | None) -> list[Remark]:
    """Add a page, and return the comments on it."""
    page = document[number]
    fields: list[Field] = []
    try:
        remarks = remarks_of(page, number + 1, raw)
        if _is_filled_in(page, raw):
            if document.formenv is not None:
                fields = take_fields(page, document.formenv.raw, raw)
            raw.FPDFPage_Flatten(page.raw, raw.FLAT_NORMALDISPLAY)
            page.close()
            page = document[number]
        text_page = page.get_textpage()
        try:
            width, height = page.get_size()
            handles = _address(page.raw), _address(text_page.raw)
            texts = list(placed_texts(fields, text_page.get_text_range())) if fields else []
            state = pages.add(*handles, width, height, page.get_rotation(), texts)
        finally:
            text_page.close()
        if ocr and state in ("scanned", "unmapped"):
            pages.pop()
            pages.add_recognised(width, height, recognise_page(page, ocr))
    finally:
        page.close()
    return remarks


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


_Word = tuple[float, float, float, float, str]
"""Left, top, right and bottom of a word in points, and its text."""
_DOTS: Final = 300
"""Dots per inch of the picture, the resolution that Tesseract's models were made for."""
_MOST_DOTS: Final = 40_000_000
"""Maximum number of dots of a picture; a larger page is drawn more coarsely."""


_SIZE: Final = 1.3
"""The size of letters, relative to the height of their ink."""


_BEARING: Final = 0.08
"""The space next to the ink of a letter, relative to its size."""


def recognise_page(page: Any, languages: str) -> list[tuple[float, list[_Word]]]:
    """Return the size of the letters and the words of each line of a page that is a picture.

    Raises DocumentError if Tesseract fails.
    """
    width, height = page.get_size()
    scale = min(_DOTS / 72, (_MOST_DOTS / max(width * height, 1.0)) ** 0.5)
    bitmap = page.render(scale=scale, grayscale=True)
    try:
        rows = memoryview(bitmap.buffer).cast("B")
        picture = b"".join(
            [
                b"P5 %d %d 255\n" % (bitmap.width, bitmap.height),
                *(rows[at * bitmap.stride :][: bitmap.width] for at in range(bitmap.height)),
            ]
        )
    finally:
        bitmap.close()
    words = recognise(picture, languages, round(72 * scale))
    lines: list[tuple[float, list[_Word]]] = []
    for _, group in groupby(words, key=lambda word: word.line):
        own = list(group)
        ink = max(word.bottom for word in own) - min(word.top for word in own)
        size = _SIZE * ink / scale
        lines.append((size, [_in_points(word, scale, _BEARING * size) for word in own]))
    return lines


def _in_points(word: RecognisedWord, scale: float, bearing: float) -> _Word:
    left, right = word.left / scale - bearing, word.right / scale + bearing
    return left, word.top / scale, right, word.bottom / scale, word.text
