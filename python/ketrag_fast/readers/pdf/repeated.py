"""Remove headers, footers and page numbers: lines that repeat at one height, up to their numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

from ketrag_fast.readers.pdf.lines import Line, PageLines

_NUMBER = re.compile(r"\d+")
_OUTER = re.compile(r"^\d+\b|\b\d+$")
"""A number inside a line distinguishes headings; at its ends it is the page number."""
_PAGE = re.compile(
    r"[-–—\s|·]*(?:(?:page|seite|p\.?)\s*)?#(?:\s*(?:/|of|von)\s*#)?[-–—\s|·.]*|[ivxlc]{1,7}", re.I
)
_DEEP: Final = 3
"""How many heights from the top and the bottom are examined."""
_EDGE: Final = 0.14
"""The share of the page height that counts as its edge."""
_SLACK: Final = 4.0
_LEAST: Final = 3


def remove_repeated_lines(pages: list[PageLines]) -> None:
    """Remove repeated lines from the pages, in place."""
    for _ in range(_DEEP):
        if not any([_peel(pages, top=True), _peel(pages, top=False)]):
            return


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
    if top:
        edge = _EDGE * page.height
        near = [line for line in page.lines if line.top <= edge and line.upright]
        if not near:
            return []
        first = min(near, key=lambda line: line.top)
    else:
        edge = (1 - _EDGE) * page.height
        near = [line for line in page.lines if line.bottom >= edge and line.upright]
        if not near:
            return []
        first = max(near, key=lambda line: line.bottom)
    middle = (first.top + first.bottom) / 2
    return [line for line in near if abs((line.top + line.bottom) / 2 - middle) < max(first.size, 4.0) / 2]


def _key(text: str) -> str:
    plain = " ".join(text.lower().split())
    page = _NUMBER.sub("#", plain)
    return page if _PAGE.fullmatch(page) else _OUTER.sub("#", plain)[:200]
