"""The lines of one page with their boxes, as PDFium gives them: few calls for a line, none for a character.

PDFium joins what stands on one height into one line, over columns too. A line is cut again where its pieces
(PDFium's rectangles: the parts that were drawn together) have a wide gap between them.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

_LIGATURES: Final = {
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFB05: "st",
    0xFB06: "st",
    0x00A0: " ",
    0x0000: None,
    0xFEFF: None,
}
_BREAK = re.compile("\r\n|[\r\n\ufffe\x02]")
_SOFT: Final = "\ufffe\x02"
_BAD = re.compile("[\x00-\x08\x0e-\x1f\ufffd\ue000-\uf8ff]")
_GAP: Final = 0.9
"""A gap of so many letter heights may be one between columns or cells."""
_SAMPLED: Final = 40
_MOST_UNITS: Final = 2_000_000
"""Characters of one page; more is no page that anybody reads."""


@dataclass(slots=True)
class Line:
    """A stretch of text on one height; coordinates in points from the top left of the page as it is shown.

    `soft` says that it ends in the middle of a word, with the hyphen already taken away.
    """

    left: float
    top: float
    right: float
    bottom: float
    size: float
    text: str
    soft: bool = False
    upright: bool = True


@dataclass(slots=True)
class PageLines:
    """What is on one page. `unmapped` says that its letters have no meaning that a program can know."""

    width: float
    height: float
    lines: list[Line]
    unmapped: bool = False
    scanned: bool = False


def lines_of(raw: Any, page: Any) -> PageLines:
    """The lines of a page in the order in which they were drawn. `raw` is pypdfium2.raw."""
    width, height = page.get_size()
    rotation = page.get_rotation()
    own = (height, width) if rotation in (90, 270) else (width, height)
    text_page = page.get_textpage()
    try:
        count = min(raw.FPDFText_CountChars(text_page), _MOST_UNITS)
        if count <= 0:
            return PageLines(width, height, [], scanned=_has_image(raw, page))
        units = _text(raw, text_page, count)
        found = PageLines(width, height, [])
        if _unmapped(raw, text_page, units):
            found.unmapped = True
            return found
        reader = _Reader(raw, text_page, units)
        for start, end, soft in _ranges(units):
            for line in reader.line(start, end, soft):
                found.lines.append(_turned(line, rotation, *own))
        if not found.lines:
            found.scanned = _has_image(raw, page)
        return found
    finally:
        text_page.close()


def _text(raw: Any, text_page: Any, count: int) -> str:
    """One code unit for each character of PDFium's, whatever it is."""
    buffer = (ctypes.c_ushort * (count + 1))()
    got = raw.FPDFText_GetText(text_page, 0, count, buffer)
    if got - 1 != count:  # it leaves out what has no meaning
        return "".join(chr(min(raw.FPDFText_GetUnicode(text_page, at), 0x10FFFF)) for at in range(count))
    return (
        bytes(buffer)[: 2 * count].decode("utf-16-le", "surrogatepass")
        if _plain(buffer)
        else "".join(map(chr, buffer[:count]))
    )


def _plain(buffer: Any) -> bool:
    """Whether every unit is a character of its own."""
    data = bytes(buffer)[1::2]
    return not any(0xD8 <= byte <= 0xDF for byte in set(data))


def _joined(units: str) -> str:
    """Halves of characters put together; single halves are dropped."""
    if not any("\ud800" <= unit <= "\udfff" for unit in units):
        return units
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def _unmapped(raw: Any, text_page: Any, units: str) -> bool:
    seen = [at for at, unit in enumerate(units[:20_000]) if not unit.isspace()]
    if len(seen) < 20:
        return False
    if len(_BAD.findall(units)) > 0.2 * len(seen):
        return True
    step = max(len(seen) // _SAMPLED, 1)
    sample = seen[::step]
    wrong = sum(1 for at in sample if raw.FPDFText_HasUnicodeMapError(text_page, at) == 1)
    return wrong > 0.4 * len(sample)


def _has_image(raw: Any, page: Any) -> bool:
    objects = min(raw.FPDFPage_CountObjects(page), 1000)
    kinds = {raw.FPDFPageObj_GetType(raw.FPDFPage_GetObject(page, at)) for at in range(objects)}
    return bool(kinds & {raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_FORM, raw.FPDF_PAGEOBJ_PATH} - {0}) and (
        raw.FPDF_PAGEOBJ_IMAGE in kinds or raw.FPDF_PAGEOBJ_FORM in kinds
    )


def _ranges(units: str) -> list[tuple[int, int, bool]]:
    """(start, end, ends in a word) of each line."""
    found = []
    at = 0
    for mark in _BREAK.finditer(units):
        if mark.start() > at:
            found.append((at, mark.start(), mark[0] in _SOFT))
        at = mark.end()
    if at < len(units):
        found.append((at, len(units), False))
    return found


class _Reader:
    """The rectangles of ranges of characters on one page."""

    def __init__(self, raw: Any, text_page: Any, units: str) -> None:
        self._raw, self._page, self._units = raw, text_page, units
        self._values = [ctypes.c_double() for _ in range(4)]

    def line(self, start: int, end: int, soft: bool) -> list[Line]:
        """A line of PDFium's, cut at wide gaps."""
        boxes = self._boxes(start, end - start)
        if not boxes:
            return []
        size = self._raw.FPDFText_GetFontSize(self._page, start)
        _, top, _, bottom = boxes[0]
        tall = boxes[0] if len(boxes) == 1 else _around(boxes)
        if tall[1] - tall[3] > 2 * (tall[2] - tall[0]) and end - start > 2:
            text = self._clean(start, end)
            upright = self._raw.FPDFText_GetCharAngle(self._page, start) < 0.1
            return [Line(*tall, size, text, soft, upright)] if text else []
        if size <= 1:  # the font's size may be in its matrix alone
            size = max(top - bottom, 1.0)
        cuts: list[int] = []
        limit = _GAP * min(size, 2.5 * max(top - bottom, 1.0))
        for number in range(1, len(boxes)):
            before, box = boxes[number - 1], boxes[number]
            if box[0] - before[2] > limit or box[2] < before[0]:
                cuts.append(number)
        if not cuts:
            text = self._clean(start, end)
            return [Line(*_around(boxes), size, text, soft)] if text else []
        found = []
        edges = [0, *cuts, len(boxes)]
        places = [start, *(self._start_of(start, end, cut) for cut in cuts), end]
        for number, (first, last) in enumerate(pairwise(edges)):
            text = self._clean(places[number], places[number + 1])
            if text:
                found.append(Line(*_around(boxes[first:last]), size, text, soft and last == len(boxes)))
        return found

    def _boxes(self, start: int, count: int) -> list[tuple[float, float, float, float]]:
        """(left, top, right, bottom), y upwards."""
        raw, page = self._raw, self._page
        left, top, right, bottom = self._values
        return [
            (left.value, top.value, right.value, bottom.value)
            for number in range(raw.FPDFText_CountRects(page, start, count))
            if raw.FPDFText_GetRect(page, number, left, top, right, bottom)
        ]

    def _start_of(self, start: int, end: int, number: int) -> int:
        """Where the rectangle of a number begins: the number of rectangles grows with the range."""
        low, high = start, end
        while low + 1 < high:
            middle = (low + high) // 2
            if self._raw.FPDFText_CountRects(self._page, start, middle - start) > number:
                high = middle
            else:
                low = middle
        return low

    def _clean(self, start: int, end: int) -> str:
        return " ".join(_joined(self._units[start:end]).translate(_LIGATURES).split())


def _around(boxes: list[tuple[float, float, float, float]]) -> tuple[float, float, float, float]:
    if len(boxes) == 1:
        return boxes[0]
    return (
        min(box[0] for box in boxes),
        max(box[1] for box in boxes),
        max(box[2] for box in boxes),
        min(box[3] for box in boxes),
    )


def _turned(line: Line, rotation: int, width: float, height: float) -> Line:
    """From PDF's axes (y upwards, the page as it lies) to those of the page as it is shown, y downwards."""
    left, top, right, bottom = line.left, line.top, line.right, line.bottom
    if rotation == 0:
        line.top, line.bottom = height - top, height - bottom
    elif rotation == 90:
        line.left, line.right, line.top, line.bottom = bottom, top, left, right
        line.upright = not line.upright
    elif rotation == 180:
        line.left, line.right, line.top, line.bottom = width - right, width - left, bottom, top
    else:
        line.left, line.right = height - top, height - bottom
        line.top, line.bottom = width - right, width - left
        line.upright = not line.upright
    return line
