"""Read the lines of a page with their boxes from PDFium, with few calls per line and none per character.

PDFium joins all text at one height into a line, across columns too. A line is split at wide gaps
between its rectangles (parts that were drawn together).
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
_HALVES = re.compile("[\ud800-\udfff]")
_SPECIAL = re.compile("[\ufb00-\ufb06\xa0\x00\ufeff]")
_GAP: Final = 0.9
"""A gap of this many letter heights may separate columns or cells."""
_SAMPLED: Final = 40
_TOGETHER: Final = 16
_FARTHEST: Final = 100_000.0
"""Maximum coordinate in points (35 metres). Coordinates are clamped to it."""
_MOST_UNITS: Final = 2_000_000
"""Maximum number of characters of a page."""


@dataclass(slots=True)
class Line:
    """A piece of text at one height. Coordinates are in points from the top left of the displayed page.

    `soft`: it ends in the middle of a word, and its hyphen has been removed.
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
    """The lines of a page. `unmapped`: its fonts do not map letters to Unicode."""

    width: float
    height: float
    lines: list[Line]
    unmapped: bool = False
    scanned: bool = False


def lines_of(raw: Any, page: Any) -> PageLines:
    """Return the lines of a page in drawing order. `raw` is pypdfium2.raw."""
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
        if _is_unmapped(raw, text_page, units):
            found.unmapped = True
            return found
        reader = _LineReader(raw, text_page, units)
        lines = reader.lines(_ranges(units))
        found.lines = [_within(_rotate_line(line, rotation, *own)) for line in lines]
        if not found.lines:
            found.scanned = _has_image(raw, page)
        return found
    finally:
        text_page.close()


def _text(raw: Any, text_page: Any, count: int) -> str:
    """Return one code unit for each character that PDFium counts."""
    buffer = (ctypes.c_ushort * (count + 1))()
    got = raw.FPDFText_GetText(text_page, 0, count, buffer)
    if got - 1 != count:  # it leaves out characters without a Unicode value
        return "".join(chr(min(raw.FPDFText_GetUnicode(text_page, at), 0x10FFFF)) for at in range(count))
    text = memoryview(buffer).cast("B")[: 2 * count].tobytes().decode("utf-16-le", "surrogatepass")
    return text if len(text) == count else "".join(map(chr, buffer[:count]))


def _join_surrogates(units: str) -> str:
    """Join surrogate pairs and drop lone surrogates."""
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def _is_unmapped(raw: Any, text_page: Any, units: str) -> bool:
    """Return whether letters have no Unicode values, judging by the text and a sample of them."""
    if _BAD.search(units) is not None:
        seen = sum(map(len, units.split()))
        if seen >= 20 and len(_BAD.findall(units)) > 0.2 * seen:
            return True
    step = max(len(units) // _SAMPLED, 1)
    sample = [at for at in range(0, len(units), step) if not units[at].isspace()]
    if len(sample) < _SAMPLED // 3:
        return False
    wrong = sum(1 for at in sample if raw.FPDFText_HasUnicodeMapError(text_page, at) == 1)
    return wrong > 0.4 * len(sample)


def _has_image(raw: Any, page: Any) -> bool:
    objects = min(raw.FPDFPage_CountObjects(page), 1000)
    kinds = {raw.FPDFPageObj_GetType(raw.FPDFPage_GetObject(page, at)) for at in range(objects)}
    return not kinds.isdisjoint({raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_FORM})


def _ranges(units: str) -> list[tuple[int, int, bool]]:
    """Return (start, end, whether it ends inside a word) of each line."""
    found = []
    at = 0
    for mark in _BREAK.finditer(units):
        if mark.start() > at:
            found.append((at, mark.start(), mark[0] in _SOFT))
        at = mark.end()
    if at < len(units):
        found.append((at, len(units), False))
    return found


class _LineReader:
    """Reads the rectangles of character ranges on one page."""

    def __init__(self, raw: Any, text_page: Any, units: str) -> None:
        self._raw, self._page, self._units = raw, text_page.raw, units
        self._values = [ctypes.c_double() for _ in range(4)]
        self._height, self._size = -1.0, 0.0
        self._halves = _HALVES.search(units) is not None
        self._special = _SPECIAL.search(units) is not None

    def lines(self, ranges: list[tuple[int, int, bool]]) -> list[Line]:
        """Return all lines.

        If a group of lines has as many rectangles, at distinct heights, each line is one rectangle. Groups
        are read with one call until that fails; then lines are read one by one.
        """
        found: list[Line] = []
        at, together = 0, True
        while at < len(ranges):
            group = ranges[at : at + _TOGETHER] if together else ranges[at : at + 1]
            boxes = self._boxes(group[0][0], group[-1][1] - group[0][0]) if together else []
            if len(boxes) == len(group) and _have_distinct_heights(boxes):
                for (start, end, soft), box in zip(group, boxes, strict=True):
                    found += self._of_boxes(start, end, soft, [box])
                at += len(group)
                continue
            together = False
            for start, end, soft in group:
                found += self.line(start, end, soft)
            at += len(group)
        return found

    def line(self, start: int, end: int, soft: bool) -> list[Line]:
        """Return a line of PDFium, split at wide gaps."""
        boxes = self._boxes(start, end - start)
        return self._of_boxes(start, end, soft, boxes) if boxes else []

    def _of_boxes(
        self, start: int, end: int, soft: bool, boxes: list[tuple[float, float, float, float]]
    ) -> list[Line]:
        _, top, _, bottom = boxes[0]
        size = self._size_of(start, round(top - bottom, 1))
        tall = boxes[0] if len(boxes) == 1 else _bounding_box(boxes)
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
            return [Line(*_bounding_box(boxes), size, text, soft)] if text else []
        found = []
        edges = [0, *cuts, len(boxes)]
        places = [start, *(self._start_of(start, end, cut) for cut in cuts), end]
        for number, (first, last) in enumerate(pairwise(edges)):
            text = self._clean(places[number], places[number + 1])
            if text:
                found.append(Line(*_bounding_box(boxes[first:last]), size, text, soft and last == len(boxes)))
        return found

    def _size_of(self, start: int, height: float) -> float:
        """Return the letter size of a line; consecutive lines of one height share it."""
        if height != self._height:
            self._height, self._size = height, self._raw.FPDFText_GetFontSize(self._page, start)
        return self._size

    def _boxes(self, start: int, count: int) -> list[tuple[float, float, float, float]]:
        """Return rectangles (left, top, right, bottom), y upwards."""
        raw, page = self._raw, self._page
        left, top, right, bottom = self._values
        return [
            (left.value, top.value, right.value, bottom.value)
            for number in range(raw.FPDFText_CountRects(page, start, count))
            if raw.FPDFText_GetRect(page, number, left, top, right, bottom)
        ]

    def _start_of(self, start: int, end: int, number: int) -> int:
        """Return where a rectangle begins, by bisection: longer ranges have more rectangles."""
        low, high = start, end
        while low + 1 < high:
            middle = (low + high) // 2
            if self._raw.FPDFText_CountRects(self._page, start, middle - start) > number:
                high = middle
            else:
                low = middle
        return low

    def _clean(self, start: int, end: int) -> str:
        text = self._units[start:end]
        if self._halves:
            text = _join_surrogates(text)
        if self._special:
            text = text.translate(_LIGATURES)
        return " ".join(text.split())


def _have_distinct_heights(boxes: list[tuple[float, float, float, float]]) -> bool:
    """Return whether consecutive boxes are at different heights."""
    return all(
        min(one[1], other[1]) - max(one[3], other[3]) < 0.5 * min(one[1] - one[3], other[1] - other[3])
        for one, other in pairwise(boxes)
    )


def _bounding_box(boxes: list[tuple[float, float, float, float]]) -> tuple[float, float, float, float]:
    if len(boxes) == 1:
        return boxes[0]
    return (
        min(box[0] for box in boxes),
        max(box[1] for box in boxes),
        max(box[2] for box in boxes),
        min(box[3] for box in boxes),
    )


def _within(line: Line) -> Line:
    """Clamp the coordinates of a line: a damaged or hostile matrix gives any number, infinity or NaN."""
    line.left, line.top = _finite(line.left), _finite(line.top)
    line.right, line.bottom = max(_finite(line.right), line.left), max(_finite(line.bottom), line.top)
    line.size = _finite(line.size)
    return line


def _finite(value: float) -> float:
    return min(max(value, -_FARTHEST), _FARTHEST) if value == value else 0.0


def _rotate_line(line: Line, rotation: int, width: float, height: float) -> Line:
    """Convert from PDF coordinates (unrotated, y upwards) to those of the displayed page, y downwards."""
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
