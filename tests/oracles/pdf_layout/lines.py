"""Read the lines of a page with their boxes from PDFium, with two calls per word.

PDFium joins all text at one height into a line, across columns too. A line is split at wide gaps between
words.
"""

from __future__ import annotations

import ctypes
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import atan2, degrees
from typing import Any, Final, NamedTuple

import numpy as np

from tests.oracles.pdf_layout.grids import Grid, grids_of, path_boxes

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
_WIDE: Final = 1.2
"""Words of letters of one width, as in program code, are this many letters apart at most."""
_RIM: Final = 0.16
"""The part of a letter's box above and below that its ink seldom reaches."""
_TOUCHING: Final = 0.07
"""Words closer than this many letter heights are one word."""
_WORD = re.compile(r"[^\s\ufffe\x02]+")
_SPLIT: Final = 0.5
"""Words further apart than this many letter heights may be cells."""
_Box = tuple[float, float, float, float]
_TINY: Final = 1.5
_SAMPLED: Final = 40
_TURNS: Final = 12
_BULK: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_SIZE: Final = ctypes.PYFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_int)
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
    grids: list[Grid] = field(default_factory=list)

    def displayed(self, box: Sequence[float]) -> list[float]:
        """Return a box (left, top, right, bottom) on the page as it is displayed."""
        left, top, right, bottom = box
        if self.turned == 90:
            return [top, self.width - right, bottom, self.width - left]
        if self.turned == 180:
            return [self.width - right, self.height - bottom, self.width - left, self.height - top]
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
        with np.errstate(all="ignore"):  # hostile matrices give infinity and NaN
            found.grids = grids_of(reader.place(*box) for box in path_boxes(raw, page))
            found.lines = [_within(line) for line in reader.lines(_ranges(units), found.grids)]
        if not found.lines:
            found.scanned = _has_image(raw, page)
        return found
    finally:
        text_page.close()


def _turn(raw: Any, text_page: Any, units: str, rotation: int) -> int:
    """Return by how many degrees the page must be turned clockwise for most of the text to be upright."""
    step = max(len(units) // _TURNS, 1)
    sample = [at for at in range(0, len(units), step) if not units[at].isspace()]
    angles = [(-round(degrees(raw.FPDFText_GetCharAngle(text_page, at))) - rotation) % 360 for at in sample]
    for turned in (90, 180, 270):
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
    sample = _sample(units)
    if len(sample) < _SAMPLED // 3:
        return False
    wrong = sum(1 for at in sample if raw.FPDFText_HasUnicodeMapError(text_page, at) == 1)
    return wrong > 0.4 * len(sample)


def _sample(units: str) -> list[int]:
    """Return the places of about 40 characters that are no blanks, over the whole text."""
    step = max(len(units) // _SAMPLED, 1)
    return [at for at in range(0, len(units), step) if not units[at].isspace()]


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
    """Reads the boxes of words on one page, with one call for all of them, and makes lines of the words.

    Whether a line is running text is computed for all lines at once. Only other lines get their words.
    """

    def __init__(self, raw: Any, text_page: Any, units: str, rotation: int, own: tuple[float, float]) -> None:
        self._rotation, self._own = rotation, own
        self._raw, self._units = raw, units
        self._address = ctypes.cast(text_page.raw, ctypes.c_void_p).value or 0
        self._font_size = _SIZE(_address(raw.FPDFText_GetFontSize))
        self._halves = _HALVES.search(units) is not None
        self._special = _SPECIAL.search(units) is not None

    def lines(self, ranges: list[tuple[int, int, bool]], grids: list[Grid]) -> list[Line]:
        """Return all lines. Those inside of grids have words."""
        marks = [mark.span() for mark in _WORD.finditer(self._units)]
        if not marks:
            return []
        spans = np.array(marks)
        boxes = self._word_boxes(spans)
        seen = self._are_seen(spans, boxes)
        ends = np.searchsorted(spans[:, 0], [end for _, end, _ in ranges])
        begins = np.concatenate(([0], ends[:-1]))
        in_part = {ranges[at][0] for at in range(len(ranges)) if not seen[begins[at] : ends[at]].all()}
        ranges = [
            part
            for at, one in enumerate(ranges)
            for part in (
                [one] if one[0] in in_part else _level_parts(one, spans, boxes, begins[at], ends[at])
            )
        ]
        spans, boxes = spans[seen], boxes[seen]
        marks = [mark for mark, is_seen in zip(marks, seen.tolist(), strict=True) if is_seen]
        if not marks:
            return []
        ends = np.searchsorted(spans[:, 0], [end for _, end, _ in ranges])
        begins = np.concatenate(([0], ends[:-1]))
        some = np.flatnonzero(ends > begins)
        begins, ends = begins[some], ends[some]
        starts = [ranges[at][0] for at in some]
        matrices = self._floats(self._raw.FPDFText_GetMatrix, starts, 6)
        sizes = np.array(list(map(self._font_size, repeat(self._address), starts)))
        scales = np.hypot(matrices[:, 2], matrices[:, 3])
        sizes *= np.where((scales > 0) & (scales < _FARTHEST), scales, 1.0)
        running = _are_running(boxes, spans, begins, sizes)
        bounds = _bounds(boxes, begins)
        for grid in grids:
            middle = (bounds[:, 1] + bounds[:, 3]) / 2
            running &= (middle < grid.ys[0]) | (middle > grid.ys[-1])
        found: list[Line] = []
        for at, begin, end, size, is_running, box, matrix in zip(
            some.tolist(),
            begins.tolist(),
            ends.tolist(),
            sizes.tolist(),
            running.tolist(),
            bounds.tolist(),
            matrices.tolist(),
            strict=True,
        ):
            start, stop, soft = ranges[at]
            left, top, right, bottom = box
            if start in in_part:
                words = self._words(marks[begin:end], boxes[begin:end].tolist())
                found += split_words(words, soft, 0.0)
                continue
            is_turned = bottom - top > 2 * (right - left) and stop - start > 2
            if is_running and not is_turned:
                text = self._clean(start, stop)
                if text:
                    found.append(Line(left, top, right, bottom, size, text, soft))
                continue
            words = self._words(marks[begin:end], boxes[begin:end].tolist())
            if words and is_turned:
                angle = degrees(atan2(matrix[2], matrix[0])) - self._rotation
                whole = line_of_words(words, size, soft)
                whole.upright = (angle + 6) % 360 < 12
                found.append(whole)
            elif words:
                found += split_words(words, soft, size)
        return found

    def _are_seen(self, spans: Any, boxes: Any) -> Any:
        """Return for each word whether it is on the page and not tiny; colours are not looked at.

        If most characters are outside of the page, its box is not known, and none counts as outside.
        """
        width, height = self._own[::-1] if self._rotation in (90, 270) else self._own
        places = np.array(_sample(self._units), np.int64)
        outside = self._is_outside(self._word_boxes(np.stack((places, places + 1), axis=1)), width, height)
        hidden = self._is_outside(boxes, width, height)
        if 2 * outside.sum() >= len(places):
            hidden[:] = False
        small = np.flatnonzero(boxes[:, 3] - boxes[:, 1] < 2 * _TINY)
        starts = spans[small, 0].tolist()
        matrices = self._floats(self._raw.FPDFText_GetMatrix, starts, 6)
        sizes = np.array([self._font_size(self._address, at) for at in starts])
        sizes = sizes * np.hypot(matrices[:, 2], matrices[:, 3])
        hidden[small] |= (sizes > 0) & (sizes < _TINY)
        return ~hidden

    @staticmethod
    def _is_outside(boxes: Any, width: float, height: float) -> Any:
        return (boxes[:, 2] < 0) | (boxes[:, 3] < 0) | (boxes[:, 0] > width) | (boxes[:, 1] > height)

    def _floats(self, function: Any, places: list[int], each: int) -> Any:
        """Return a row of `each` numbers that PDFium writes for each character."""
        values = (ctypes.c_float * (each * len(places)))()
        base = ctypes.addressof(values)
        addresses = range(base, base + 4 * each * len(places), 4 * each)
        deque(map(_BULK(_address(function)), repeat(self._address), places, addresses), maxlen=0)
        return np.array(values, np.float32).reshape(-1, each).astype(np.float64)

    def _word_boxes(self, spans: Any) -> Any:
        """Return left, top, right, bottom of each word, from the boxes of its first and last character."""
        places = np.stack((spans[:, 0], spans[:, 1] - 1), axis=1).ravel().tolist()
        boxes = self._floats(self._raw.FPDFText_GetLooseCharBox, places, 4)
        first, last = boxes[0::2], boxes[1::2]
        last = np.where((last[:, 1] > last[:, 3])[:, None], last, first)
        first = np.where((first[:, 1] > first[:, 3])[:, None], first, last)
        left, right = np.minimum(first[:, 0], last[:, 0]), np.maximum(first[:, 2], last[:, 2])
        top, bottom = np.maximum(first[:, 1], last[:, 1]), np.minimum(first[:, 3], last[:, 3])
        left, top, right, bottom = self.place(left, top, right, bottom)
        rim = _RIM * (bottom - top)
        return np.stack((left, top + rim, right, bottom - rim), axis=1)

    def place(self, left: Any, top: Any, right: Any, bottom: Any) -> tuple[Any, Any, Any, Any]:
        """Convert boxes from PDF coordinates (unrotated, y upwards) to those of the page, y downwards."""
        width, height = self._own
        if self._rotation == 0:
            return left, height - top, right, height - bottom
        if self._rotation == 90:
            return bottom, left, top, right
        if self._rotation == 180:
            return width - right, bottom, width - left, top
        return height - top, width - right, height - bottom, width - left

    def _words(self, marks: list[tuple[int, int]], boxes: list[_Box]) -> list[Word]:
        """Return the words of a line; the parts of a word that PDFium has torn are joined."""
        found: list[Word] = []
        for (first, after), (left, top, right, bottom) in zip(marks, boxes, strict=True):
            text = self._clean(first, after)
            if not text:
                continue
            if found and _is_torn(found[-1], left, (bottom - top) / (1 - 2 * _RIM), text):
                last = found[-1]
                found[-1] = Word(
                    last.left, min(last.top, top), right, max(last.bottom, bottom), last.text + text
                )
            else:
                found.append(Word(left, top, right, bottom, text))
        return found

    def _clean(self, start: int, end: int) -> str:
        text = self._units[start:end]
        if self._halves:
            text = _join_surrogates(text)
        if self._special:
            text = text.translate(_LIGATURES)
        return " ".join(text.split())


def _level_parts(
    one: tuple[int, int, bool], spans: Any, boxes: Any, begin: int, end: int
) -> list[tuple[int, int, bool]]:
    """Divide a line where a word is not at the height of the one before, as values of a form."""
    start, stop, soft = one
    found = []
    for at in range(begin + 1, end):
        pairs = [(spans[k], boxes[k]) for k in (at - 1, at)]
        level = [
            box[2] - box[0] > (0.9 if span[1] - span[0] > 1 else 0.4) * (box[3] - box[1])
            for span, box in pairs
        ]
        (_, first), (_, second) = pairs
        if all(level) and (second[1] > first[3] or second[3] < first[1]):
            found.append((start, int(spans[at - 1][1]), False))
            start = int(spans[at][0])
    return [*found, (start, stop, soft)]


def _are_running(boxes: Any, spans: Any, begins: Any, sizes: Any) -> Any:
    """Return for each line whether its words are at the distances of running text.

    `begins` has the first word of each line.
    """
    words = np.diff(begins, append=len(spans))
    letters = np.add.reduceat(boxes[:, 2] - boxes[:, 0], begins)
    letters /= np.add.reduceat(spans[:, 1] - spans[:, 0], begins)
    limits = np.maximum(_SPLIT * sizes, np.minimum(_WIDE * letters, _GAP * sizes))
    gaps = np.empty(len(spans))
    gaps[1:] = boxes[1:, 0] - boxes[:-1, 2]
    gaps[begins] = _SPLIT * sizes  # a value in the range, because no word is before it
    line = np.repeat(np.arange(len(begins)), words)
    wrong = ~((gaps >= _TOUCHING * sizes[line]) & (gaps <= limits[line]))
    return (np.add.reduceat(wrong.astype(np.int64), begins) == 0) & (sizes > 1)


def _bounds(boxes: Any, begins: Any) -> Any:
    """Return the box around the words of each line."""
    low = np.minimum.reduceat(boxes[:, :2], begins, axis=0)
    return np.concatenate((low, np.maximum.reduceat(boxes[:, 2:], begins, axis=0)), axis=1)


def _is_torn(last: Word, left: float, height: float, text: str) -> bool:
    """Return whether PDFium put a space between two parts of a word, which touch each other."""
    return (
        -_TOUCHING * height < left - last.right < _TOUCHING * height
        and last.text[-1].isalpha()
        and text[0].islower()
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
        found.append(line_of_words(words[begun:number], size, soft and number == len(words)))
        begun = number
    return found


def line_of_words(words: list[Word], size: float, soft: bool) -> Line:
    """Return words at one height as a line."""
    left, top, right, bottom, texts = zip(*words, strict=True)
    box = min(left), min(top), max(right), max(bottom)
    return Line(*box, size, " ".join(texts), soft, True, tuple(words))


def _address(function: Any) -> int:
    """Return the address of a function of PDFium; with addresses as arguments, `map` calls it quickly."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


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
