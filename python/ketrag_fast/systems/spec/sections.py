"""Cutting long documents at their headings before they are cut into units.

A unit then never spans two sections, and is searched and printed under its heading and the headings above it.
Functions and classes of source code are sections too, and so is what is spoken between two long pauses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ketrag_fast.types.locations import PAUSE, Locator, seconds_of, sort_locators

_KINDS: Final = ("heading", "symbol")
SHORT: Final = 1_200
"""Documents shorter than this are not cut: they are one or two units."""
_LEAST: Final = 200
"""The minimum length of a section, about a quarter of a unit; shorter ones are merged with a neighbour."""
_LEAST_OF_CODE: Final = 120
"""The minimum length of a function or class."""
_HALF: Final = 400
"""Sections of one parent share a unit while they have at most as many characters as half a unit."""
_MUCH: Final = 4
_LONGEST: Final = 300

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SectionSpan:
    """A section of a document, with its title."""

    start: int
    end: int
    title: str
    lines: int = 0
    """Line ends before it."""


def parts_of(text: str, title: str, locators: Sequence[Locator]) -> list[SectionSpan]:
    """Return the sections of a document, in order and without gaps; a short document is one section.

    Subtitles are cut at long pauses.
    """
    times = [one for one in sort_locators(locators) if one.kind == "time"]
    if times:
        later = (b.start for a, b in pairwise(times) if seconds_of(b.value) - seconds_of(a.value) > PAUSE)
        return [SectionSpan(start, end, title) for start, end in pairwise((0, *later, len(text)))]
    marks = [one for one in locators if one.kind in _KINDS and isinstance(one.value, list) and one.value]
    if not marks or len(text) < SHORT:
        return [SectionSpan(0, len(text), title)]
    found: list[SectionSpan] = []
    lines = at = 0
    is_code = any(one.kind == "symbol" for one in marks)
    least, shared = (_LEAST_OF_CODE, 0) if is_code else (_LEAST, _HALF)
    for start, end, path in _merge_short(list(_stretches(text, marks)), least, shared):
        lines += text.count("\n", at, start)
        at = start
        found.append(SectionSpan(start, end, _title(title, path), lines))
    return found


def _stretches(text: str, marks: Sequence[Locator]) -> Iterator[tuple[int, int, Path]]:
    """Yield the stretches between edges of marks, each with the path of its innermost mark."""
    edges = sorted({0, len(text), *(one.start for one in marks), *(one.end for one in marks)})
    opening = sorted(marks, key=lambda one: (one.start, -one.end))
    around: list[Locator] = []
    at = 0
    for start, end in pairwise(edges):
        around = [one for one in around if one.end > start]
        while at < len(opening) and opening[at].start <= start:
            if opening[at].end > start:
                around.append(opening[at])
            at += 1
        inner = min(around, key=lambda one: (one.end - one.start, -one.start), default=None)
        yield start, end, tuple(map(str, inner.value)) if inner is not None else ()


def _merge_short(
    stretches: Sequence[tuple[int, int, Path]], least: int, shared: int
) -> list[tuple[int, int, Path]]:
    """Merge stretches of less than `least` characters with the next one.

    They are named after the much longer one, else their common path. Stretches of one parent are merged while
    they have at most `shared` characters.
    """
    found: list[tuple[int, int, Path]] = []
    for start, end, path in stretches:
        before, middle, above = found[-1] if found else (0, 0, ())
        if found and above == path:
            found[-1] = before, end, path
        elif found and path and end - before <= shared and path[:-1] in (above, above[:-1]):
            found[-1] = before, end, path[:-1]
        elif found and middle - before < least:
            found[-1] = before, end, _merged_path(above, middle - before, path, end - start)
        else:
            found.append((start, end, path))
    if len(found) > 1 and found[-1][1] - found[-1][0] < least:  # the last one has no next one
        (start, middle, above), (_, end, path) = found[-2:]
        found[-2:] = [(start, end, _merged_path(above, middle - start, path, end - middle))]
    return found


def _merged_path(above: Path, first: int, path: Path, second: int) -> Path:
    if path[: len(above)] == above and second > first:
        return path
    if max(first, second) > _MUCH * min(first, second):
        return path if second > first else above
    return _common(above, path)


def _common(one: Path, other: Path) -> Path:
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return one[:same]


def _title(title: str, path: Path) -> str:
    """Return a title such as `3.2 Risks (Report › 3 Results)`: the headings above are searched too."""
    if not path:
        return title
    above = [name for name in (title, *path[:-1]) if name]
    outer = f" ({' › '.join(above)})" if above else ""
    return f"{path[-1]}{outer}"[:_LONGEST]
