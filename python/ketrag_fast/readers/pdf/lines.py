"""Read the lines of a page with their boxes from PDFium, with few calls per line and none per character.

PDFium joins all text at one height into a line, across columns too. A line is split at wide gaps
between its rectangles (parts that were drawn together).
"""

from __future__ import annotations

import ctypes
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from math import degrees, hypot
from operator import sub
from typing import Any, Final, NamedTuple

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
_DENSE: Final = 0.56
"""A line wider than this many letter heights for each character has wide gaps, or wide letters."""
_RIM: Final = 0.16
"""The part of a letter's box above and below that its ink seldom reaches."""
_TOUCHING: Final = 0.07
"""Words closer than this many letter heights are one word."""
_ENDS_WITH_NUMBER = re.compile(r"\s[\d.,$€£()%—–-]+$")
"""Such a line may be a row of a table whose label fills it."""
_WORD = re.compile(r"[^\s\ufffe\x02]+")
_SPLIT: Final = 0.5
"""Words further apart than this many letter heights may be cells."""
_MOST_BOXES: Final = 40
_Box = tuple[float, float, float, float]
_SAMPLED: Final = 40
_TURNS: Final = 12
_TOGETHER: Final = 16
_FARTHEST: Final = 100_000.0
"""Maximum coordinate in points (35 metres). Coordinates are clamped to it."""
_MOST_UNITS: Final = 2_000_000
"""Maximum number of characters of a page."""


class Word(NamedTuple):
    """A word with its box, in points from the top left of the displayed page."""

    left: float
    top: float
    right: float
    bottom: float
    text: str


@dataclass(slots=True)
class Line:
    """A piece of text at one height. Coordinates are in points from the top left of the displayed page.

    `soft`: it ends in the middle of a word, and its hyphen has been removed. `words` is empty in a line of
    running text without wide gaps.
    """

    left: float
    top: float
    right: float
    bottom: float
    size: float
    text: str
    soft: bool = False
    upright: bool = True
    words: tuple[Word, ...] = ()


@dataclass(slots=True)
class PageLines:
    """The lines of a page. `unmapped`: its fonts do not map letters to Unicode.

    `turned`: most of its text is written sideways. Then its lines, width and height are those of the page
    turned by this angle in degrees, and `displayed` converts a box back.
    """

    width: float
    height: float
    lines: list[Line]
    unmapped: bool = False
    scanned: bool = False
    turned: int = 0

    def displayed(self, box: Sequence[float]) -> list[float]:
        """Return a box (left, top, right, bottom) on the page as it is displayed."""
        left, top, right, bottom = box
        if self.turned == 90:
            return [top, self.width - right, bottom, self.width - left]
        if self.turned == 270:
            return [self.height - bottom, left, self.height - top, right]
        return [left, top, right, bottom]


def lines_of(raw: Any, page: Any) -> PageLines:
    """Return the lines of a page in drawing order. `raw` is pypdfium2.raw."""
    width, height = page.get_size()
    text_page = page.get_textpage()
    try:
        count = min(raw.FPDFText_CountChars(text_page), _MOST_UNITS)
        if count <= 0:
            return PageLines(width, height, [], scanned=_has_image(raw, page))
        units = _text(raw, text_page, count)
        rotation = page.get_rotation()
        own = (height, width) if rotation in (90, 270) else (width, height)
        turned = _turn(raw, text_page, units, rotation)
        if turned in (90, 270):
            width, height = height, width
        found = PageLines(width, height, [], turned=turned)
        if _is_unmapped(raw, text_page, units):
            found.unmapped = True
            return found
        reader = _LineReader(raw, text_page, units, (rotation + turned) % 360, own)
        found.lines = [_within(line) for line in reader.lines(_ranges(units))]
        if not found.lines:
            found.scanned = _has_image(raw, page)
        return found
    finally:
        text_page.close()


def _turn(raw: Any, text_page: Any, units: str, rotation: int) -> int:
    """Return the angle in degrees at which most of the text is written, if that is sideways."""
    step = max(len(units) // _TURNS, 1)
    sample = [at for at in range(0, len(units), step) if not units[at].isspace()]
    angles = [(round(degrees(raw.FPDFText_GetCharAngle(text_page, at))) - rotation) % 360 for at in sample]
    for turned in (90, 270):
        if sum(abs(angle - turned) <= 1 for angle in angles) > 0.7 * len(angles):
            return turned
    return 0


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
    """Reads the boxes of lines and words on one page.

    A line that PDFium reports as one rectangle with the width of running text is not split. Other lines are
    split by the boxes of their words, because one text object may draw a whole table row.
    """

    def __init__(self, raw: Any, text_page: Any, units: str, rotation: int, own: tuple[float, float]) -> None:
        self._rotation, self._own = rotation, own
        self._raw, self._page, self._units = raw, text_page.raw, units
        self._address = ctypes.cast(text_page.raw, ctypes.c_void_p).value or 0
        self._values = [ctypes.c_double() for _ in range(4)]
        self._matrix = raw.FS_MATRIX()
        self._height, self._size = -1.0, 0.0
        self._halves = _HALVES.search(units) is not None
        self._special = _SPECIAL.search(units) is not None
        self._loose = _bulk(raw.FPDFText_GetLooseCharBox)

    def lines(self, ranges: list[tuple[int, int, bool]]) -> list[Line]:
        """Return all lines.

        If a group of lines has as many rectangles, at distinct heights, each line is one rectangle. Groups
        are read with one call until that fails; then lines are read one by one.
        """
        found: list[Line] = []
        at, together = 0, True
        while at < len(ranges):
            group = ranges[at : at + _TOGETHER] if together else ranges[at : at + 1]
            boxes = self._boxes(group[0][0], group[-1][1] - group[0][0], len(group)) if together else []
            if len(boxes) == len(group) and _have_distinct_heights(boxes):
                for (start, end, soft), box in zip(group, boxes, strict=True):
                    found += self._line(start, end, soft, [box])
                at += len(group)
                continue
            together = False
            for start, end, soft in group:
                found += self._line(start, end, soft, self._boxes(start, end - start, _MOST_BOXES))
            at += len(group)
        return found

    def _place(self, box: _Box) -> _Box:
        """Convert a box from PDF coordinates (unrotated, y upwards) to those of the page, y downwards."""
        left, top, right, bottom = box
        width, height = self._own
        if self._rotation == 0:
            return left, height - top, right, height - bottom
        if self._rotation == 90:
            return bottom, left, top, right
        if self._rotation == 180:
            return width - right, bottom, width - left, top
        return height - top, width - right, height - bottom, width - left

    def _line(self, start: int, end: int, soft: bool, boxes: list[_Box]) -> list[Line]:
        """Return a line, split at wide gaps. `boxes` are its rectangles, or [] if it has many."""
        if not boxes or _ENDS_WITH_NUMBER.search(self._units, max(end - 12, start), end):
            return self._of_words(start, end, soft)
        left, top, right, bottom = self._place(boxes[0])
        height = bottom - top
        size = self._size_of(start, round(height, 1))
        if size <= 1:
            size = max(height, 1.0)
        limit, torn = _SPLIT * size, _TOUCHING * size
        for box in boxes[1:]:
            left2, top2, right2, bottom2 = self._place(box)
            if not torn <= left2 - right <= limit and abs(left2 - right) > 0.01:
                return self._of_words(start, end, soft)
            right, top, bottom = right2, min(top, top2), max(bottom, bottom2)
        is_turned = bottom - top > 2 * (right - left) and end - start > 2
        if is_turned or right - left > _DENSE * size * (end - start):
            return self._of_words(start, end, soft)
        text = self._clean(start, end)
        return [Line(left, top, right, bottom, size, text, soft)] if text else []

    def _of_words(self, start: int, end: int, soft: bool) -> list[Line]:
        """Return the parts of a line between wide gaps, with the boxes of their words."""
        marks = [mark.span() for mark in _WORD.finditer(self._units, start, end)]
        boxes = self._loose_boxes([at for first, after in marks for at in (first, after - 1)])
        if self._rotation == 0 and (line := self._unbroken(start, end, soft, boxes)) is not None:
            return [line]
        words = self._words(marks, boxes)
        if not words:
            return []
        whole = _line_of(words, 0.0, soft)
        if whole.bottom - whole.top > 2 * (whole.right - whole.left) and end - start > 2:
            angle = degrees(self._raw.FPDFText_GetCharAngle(self._page, start)) - self._rotation
            whole.size, whole.upright = self._size_of(start, -1.0), (angle + 6) % 360 < 12
            return [whole]
        return split_words(words, soft, self._size_of(start, round(whole.bottom - whole.top, 1)))

    def _loose_boxes(self, places: list[int]) -> list[float]:
        """Return left, top, right, bottom of each character, one after the other, with y upwards."""
        values = (ctypes.c_float * (4 * len(places)))()
        base = ctypes.addressof(values)
        addresses = range(base, base + 16 * len(places), 16)
        deque(map(self._loose, repeat(self._address), places, addresses), maxlen=0)
        return [*memoryview(values).cast("B").cast("f")]

    def _unbroken(self, start: int, end: int, soft: bool, boxes: list[float]) -> Line | None:
        """Return a line whose words are at the distances of running text; None for any other line.

        `boxes` are those of the first and the last character of each word.
        """
        lefts, rights = boxes[0::8], boxes[6::8]
        tops, bottoms = boxes[1::4], boxes[3::4]
        if not lefts:
            return None
        top, bottom = max(tops), min(bottoms)
        height = min(tops) - max(bottoms)
        size = self._size_of(start, round(top - bottom, 1))
        if size <= 1 or not height > 0 or top - bottom > 2 * (rights[-1] - lefts[0]):
            return None
        if len(lefts) > 1:
            gaps = list(map(sub, lefts[1:], rights))
            if max(gaps) > _SPLIT * size or min(gaps) < _TOUCHING * size:
                return None
        text = self._clean(start, end)
        own, rim = self._own[1], _RIM * (top - bottom)
        return Line(lefts[0], own - top + rim, rights[-1], own - bottom - rim, size, text, soft)

    def _words(self, marks: list[tuple[int, int]], boxes: list[float]) -> list[Word]:
        """Return words from the ranges of their characters and the boxes of the first and the last one."""
        found: list[Word] = []
        for number, (first, after) in enumerate(marks):
            text = self._clean(first, after)
            if not text:
                continue
            left, top, right, bottom, left2, top2, right2, bottom2 = boxes[8 * number : 8 * number + 8]
            if not top2 > bottom2:
                left2, top2, right2, bottom2 = left, top, right, bottom
            elif not top > bottom:
                left, top, right, bottom = left2, top2, right2, bottom2
            left, right, top, bottom = (
                min(left, left2),
                max(right, right2),
                max(top, top2),
                min(bottom, bottom2),
            )
            left, top, right, bottom = self._place((left, top, right, bottom))
            rim = _RIM * (bottom - top)
            if found and self._is_torn(found[-1], left, bottom - top, text, marks[number][0]):
                last = found[-1]
                found[-1] = Word(
                    last.left,
                    min(last.top, top + rim),
                    right,
                    max(last.bottom, bottom - rim),
                    last.text + text,
                )
                continue
            found.append(Word(left, top + rim, right, bottom - rim, text))
        return found

    def _is_torn(self, last: Word, left: float, height: float, text: str, at: int) -> bool:
        """Return whether PDFium put a space between two parts of a word, which touch each other."""
        return (
            -_TOUCHING * height < left - last.right < _TOUCHING * height
            and last.text[-1].isalpha()
            and text[0].islower()
            and self._raw.FPDFText_IsGenerated(self._page, at - 1) == 1
        )

    def _size_of(self, start: int, height: float) -> float:
        """Return the letter size of a line; consecutive lines of one height share it."""
        if height != self._height or height < 0:
            self._height = height
            size = self._raw.FPDFText_GetFontSize(self._page, start)
            if self._raw.FPDFText_GetMatrix(self._page, start, self._matrix):
                scale = hypot(self._matrix.c, self._matrix.d)
                size *= scale if 0 < scale < _FARTHEST else 1.0
            self._size = size
        return self._size

    def _boxes(self, start: int, count: int, most: int) -> list[_Box]:
        """Return rectangles (left, top, right, bottom), y upwards, or [] if there are more than `most`."""
        raw, page = self._raw, self._page
        left, top, right, bottom = self._values
        number = raw.FPDFText_CountRects(page, start, count)
        if number > most:
            return []
        return [
            (left.value, top.value, right.value, bottom.value)
            for at in range(number)
            if raw.FPDFText_GetRect(page, at, left, top, right, bottom)
        ]

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


def split_words(words: list[Word], soft: bool, size: float = 0.0) -> list[Line]:
    """Return the parts of a line between wide gaps. `size` is that of the letters, if it is known."""
    height = max(word.bottom for word in words) - min(word.top for word in words)
    if size <= 1:
        size = max(height, 1.0)
    limit = _GAP * min(size, 2.5 * max(height, 1.0))
    found: list[Line] = []
    begun = 0
    for number in range(1, len(words) + 1):
        if number < len(words):
            before, word = words[number - 1], words[number]
            if word.left - before.right <= limit and word.right >= before.left:
                continue
        found.append(_line_of(words[begun:number], size, soft and number == len(words)))
        begun = number
    return found


def _line_of(words: list[Word], size: float, soft: bool) -> Line:
    return Line(
        min(word.left for word in words),
        min(word.top for word in words),
        max(word.right for word in words),
        max(word.bottom for word in words),
        size,
        " ".join(word.text for word in words),
        soft,
        True,
        tuple(words),
    )


def _bulk(function: Any) -> Any:
    """Return a function of PDFium with plain addresses as arguments, which `map` calls quickly."""
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    return kind(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _within(line: Line) -> Line:
    """Clamp the coordinates of a line: a damaged or hostile matrix gives any number, infinity or NaN."""
    if (
        -_FARTHEST <= line.left <= line.right <= _FARTHEST
        and -_FARTHEST <= line.top <= line.bottom <= _FARTHEST
        and 0 <= line.size <= _FARTHEST
    ):
        return line
    line.left, line.top = _finite(line.left), _finite(line.top)
    line.right, line.bottom = max(_finite(line.right), line.left), max(_finite(line.bottom), line.top)
    line.size = _finite(line.size)
    line.words = ()
    return line


def _finite(value: float) -> float:
    return min(max(value, -_FARTHEST), _FARTHEST) if value == value else 0.0
