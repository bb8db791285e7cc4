"""Turn headings into locators: the text from one heading to the next gets its path of headings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ketrag_fast.types.locations import Locator

LONGEST = 200
"""Maximum length of a heading; longer text in large letters is a paragraph."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that begins at offset `start`; level 1 is the highest. One without a name ends a section."""

    start: int
    level: int
    name: str


def sections(headings: Iterable[Heading], length: int, title: str = "") -> list[Locator]:
    """Return a locator for each section that has a path. Paths leave out the document title."""
    ordered = sorted(headings, key=lambda heading: heading.start)
    path: list[tuple[int, str]] = []
    own = _short(title)
    found: list[Locator] = []
    ends = [*(heading.start for heading in ordered[1:]), length]
    for heading, end in zip(ordered, ends, strict=False):
        while path and path[-1][0] >= heading.level:
            path.pop()
        if heading.name:
            path.append((heading.level, _short(heading.name)))
        names = [name for _, name in path]
        if names[:1] == [own]:
            names = names[1:]
        if names and end > heading.start:
            found.append(Locator(heading.start, end, "heading", names))
    return found


def without_closing(text: str) -> str:
    """Return the text of a Markdown heading without surrounding blanks and closing number signs."""
    name = text.strip(" \t")
    inner = name.rstrip("#")
    return inner.rstrip(" \t") if inner.endswith((" ", "\t")) else name


def _short(name: str) -> str:
    plain = " ".join(name.split())
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"
