"""A long document with headings is cut into sections before it is cut into units: a unit then never spans two
of them, and is searched and printed under its heading and what stands above it, as under a title.

Functions and classes of source code are sections too. `python benches/sections.py` measures what it brings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ketrag_fast.types.locations import Locator

_KINDS: Final = ("heading", "symbol")
SHORT: Final = 1_200
"""Characters of a document that is not cut: it is a unit or two."""
_LEAST: Final = 120
"""Characters of a section; shorter ones that follow each other are one."""
_MUCH: Final = 4
_LONGEST: Final = 300

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SectionSpan:
    """A section of a document, with its own title."""

    start: int
    end: int
    title: str


def parts_of(text: str, title: str, locators: Sequence[Locator]) -> list[SectionSpan]:
    """The sections of a document, in order and without a gap; a short one is whole, as is one without any."""
    marks = [one for one in locators if one.kind in _KINDS and isinstance(one.value, list) and one.value]
    if not marks or len(text) < SHORT:
        return [SectionSpan(0, len(text), title)]
    return [
        SectionSpan(start, end, _title(title, path))
        for start, end, path in _merge_short(list(_stretches(text, marks)))
    ]


def _stretches(text: str, marks: Sequence[Locator]) -> Iterator[tuple[int, int, Path]]:
    """From one edge of a mark to the next, under the innermost mark around."""
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


def _merge_short(stretches: Sequence[tuple[int, int, Path]]) -> list[tuple[int, int, Path]]:
    """Short stretches go together with the next one. Whichever is much longer names both, else what both have
    above them does.
    """
    found: list[tuple[int, int, Path]] = []
    for start, end, path in stretches:
        before, middle, above = found[-1] if found else (0, 0, ())
        if found and above == path:
            found[-1] = before, end, path
        elif found and middle - before < _LEAST:
            found[-1] = before, end, _merged_path(above, middle - before, path, end - start)
        else:
            found.append((start, end, path))
    if len(found) > 1 and found[-1][1] - found[-1][0] < _LEAST:  # the last one has no next one
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
    """`3.2 Risks (Report › 3 Results)`: what is in brackets is no name of the section, and still searched."""
    if not path:
        return title
    above = [name for name in (title, *path[:-1]) if name]
    outer = f" ({' › '.join(above)})" if above else ""
    return f"{path[-1]}{outer}"[:_LONGEST]
