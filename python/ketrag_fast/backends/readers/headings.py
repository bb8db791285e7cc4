"""Headings become locators: each stretch from one heading to the next has the path of headings above it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ketrag_fast.locations import Locator

LONGEST = 200
"""Characters of one heading in a path; a longer one is a paragraph in large letters."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that begins at `start`; the smaller the level, the higher it stands."""

    start: int
    level: int
    name: str


def sections(headings: Iterable[Heading], length: int, title: str = "") -> list[Locator]:
    """One locator for each section with a path. The document's own title is not repeated in paths."""
    ordered = sorted(headings, key=lambda heading: heading.start)
    path: list[Heading] = []
    found: list[Locator] = []
    ends = [*(heading.start for heading in ordered[1:]), length]
    for heading, end in zip(ordered, ends, strict=False):
        while path and path[-1].level >= heading.level:
            path.pop()
        path.append(heading)
        names = [_short(one.name) for one in path]
        if names[0] == _short(title):
            names = names[1:]
        if names and end > heading.start:
            found.append(Locator(heading.start, end, "heading", names))
    return found


def _short(name: str) -> str:
    plain = " ".join(name.split())
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"
