"""Remove headers, footers and page numbers: lines that repeat at one height, up to their numbers.

The first or the last line of a page is a page number at any height if it is a number or ends with one, and
the numbers of several pages grow with the pages.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from operator import attrgetter
from typing import Final

from tests.oracles.pdf_layout.lines import Line, PageLines

_NUMBER = re.compile(r"\d+")
_OUTER = re.compile(r"^\d+\b|\b\d+$")
"""A number inside a line distinguishes headings; at its ends it is the page number."""
_PAGE = re.compile(
    r"[-–—\s|·]*(?:(?:page|seite|p\.?)\s*)?#(?:\s*(?:/|of|von)\s*#)?[-–—\s|·.]*|[ivxlc]{1,7}", re.I
)
_NUMBERED = re.compile(
    r"[-–—|·.\s]*(?:(?:page|seite|p\.)\s*)?(?:[A-Z]{1,2}\s?[-–.]\s?)?(\d{1,4})"
    r"(?:\s*(?:/|of|von)\s*\d{1,4})?[-–—|·.\s]*",
    re.I,
)
"""A line that consists of a page number."""
_BEGINS = re.compile(r"(\d{1,4})[ |·–—-]")
_ENDS = re.compile(r"[ |·–—-](\d{1,4})")
"""The beginning and the end of a line that contains a page number."""
_DEEP: Final = 3
"""How many heights from the top and the bottom are examined."""
_EDGE: Final = 0.14
"""The share of the page height that counts as its edge."""
_SLACK: Final = 4.0
_LEAST: Final = 3
_ROWS: Final = 3
"""A row of several cells with this many rows next to it that have the same columns is one of a table."""
_NEAR: Final = 2.5
"""The maximum distance of such rows, in letter heights."""
_ALIGNED: Final = 2.0
_TOP, _BOTTOM = attrgetter("top"), attrgetter("bottom")


def remove_repeated_lines(pages: list[PageLines]) -> None:
    """Remove repeated lines and page numbers from the pages, in place."""
    for _ in range(_DEEP):
        changes = [_peel(pages, top=True), _peel(pages, top=False)]
        changes += [_peel_numbers(pages, top=True), _peel_numbers(pages, top=False)]
        if not any(changes):
            return


def _peel_numbers(pages: list[PageLines], *, top: bool) -> bool:
    """Remove the outermost line of each page if it has the number of the page; return whether any has."""
    seen: Counter[tuple[str, int]] = Counter()
    numbered: list[list[tuple[Line, tuple[str, int]]]] = []
    for number, page in enumerate(pages):
        own: list[tuple[Line, tuple[str, int]]] = []
        for line in _extreme(page, top):
            for kind, value in _page_numbers(line.text):
                own.append((line, (kind, value - number)))
        seen.update({key for _, key in own})
        numbered.append(own)
    is_changed = False
    for page, own in zip(pages, numbered, strict=True):
        gone = {id(line) for line, key in own if seen[key] >= _LEAST}
        if gone:
            page.lines = [line for line in page.lines if id(line) not in gone]
            is_changed = True
    return is_changed


def _page_numbers(text: str) -> list[tuple[str, int]]:
    """Return (the line without the number, number) for each number of a line that may be that of its page."""
    plain = " ".join(text.lower().split())
    if (whole := _NUMBERED.fullmatch(plain)) is not None:
        return [("", int(whole[1]))]
    if len(plain) > 150:
        return []
    found = []
    if (begin := _BEGINS.match(plain)) is not None:
        found.append((plain[begin.end() :], int(begin[1])))
    ends = (_ENDS.fullmatch(plain, at) for at in range(max(len(plain) - 5, 0), len(plain) - 1))
    found += [(plain[: end.start()], int(end[1])) for end in ends if end is not None]
    return [(rest, value) for rest, value in found if sum(map(str.isalpha, rest)) >= 3]


def _extreme(page: PageLines, top: bool) -> list[Line]:
    """Return the lines at the height of the first or the last line of a page."""
    upright = [line for line in page.lines if line.upright]
    if not upright:
        return []
    first = min(upright, key=_TOP) if top else max(upright, key=_BOTTOM)
    middle, most = (first.top + first.bottom) / 2, max(first.size, 4.0) / 2
    found = [line for line in upright if -most < (line.top + line.bottom) / 2 - middle < most]
    return [] if _is_table_row(page, found, top) else found


def _is_table_row(page: PageLines, row: list[Line], top: bool) -> bool:
    """Return whether lines at one height are cells of a table that goes on towards the middle of the page."""
    if len(row) < 2:
        return False
    size, inward = max(row[0].size, 4.0), 1.0 if top else -1.0

    def place(line: Line) -> float:
        return inward * (line.top + line.bottom) / 2

    at = place(row[0])
    for _ in range(_ROWS):
        inner = [line for line in page.lines if line.upright and place(line) - at > size / 2]
        following = min(map(place, inner), default=at + _NEAR * size)
        if following - at >= _NEAR * size:
            return False
        level = [line for line in inner if place(line) - following < size / 2]
        for cell in row:
            if not any(
                abs(line.left - cell.left) < _ALIGNED or abs(line.right - cell.right) < _ALIGNED
                for line in level
            ):
                return False
        at = following
    return True


def _peel(pages: list[PageLines], *, top: bool) -> bool:
    """Remove the outermost line of each page if it repeats; return whether any did."""
    seen: dict[tuple[str, int], list[int]] = defaultdict(list)
    outermost: list[list[Line]] = []
    for number, page in enumerate(pages):
        group = _outermost(page, top)
        outermost.append(group)
        for line in group:
            key = _key(line.text)
            if key:
                seen[key, round(line.top / _SLACK)].append(number)
    many: set[tuple[str, int]] = set()
    for (key, place), numbers in seen.items():
        near = set(numbers)
        for other in (place - 1, place + 1):
            near.update(seen.get((key, other), ()))
        needed = 2 if _PAGE.fullmatch(key) or len(pages) == 2 else _LEAST
        if len(near) >= needed and (len(key) > 3 or _PAGE.fullmatch(key)):
            many.add((key, place))
    is_changed = False
    for page, group in zip(pages, outermost, strict=True):
        gone = {id(line) for line in group if (_key(line.text), round(line.top / _SLACK)) in many}
        if gone:
            page.lines = [line for line in page.lines if id(line) not in gone]
            is_changed = True
    return is_changed


def _outermost(page: PageLines, top: bool) -> list[Line]:
    """Return the lines at the height of the first or the last line, if that is at the page edge."""
    group = _extreme(page, top)
    if top:
        edge = _EDGE * page.height
        return [line for line in group if line.top <= edge]
    edge = (1 - _EDGE) * page.height
    return [line for line in group if line.bottom >= edge]


def _key(text: str) -> str:
    plain = " ".join(text.lower().split())
    page = _NUMBER.sub("#", plain)
    return page if _PAGE.fullmatch(page) else _OUTER.sub("#", plain)[:200]
