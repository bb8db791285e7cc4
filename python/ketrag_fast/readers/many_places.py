"""A limit of the headings, functions and paths of one document, because each costs as much as a passage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ketrag_fast.records import replace
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

MOST: Final = 40_000
"""Maximum number of headings and functions of a short document, and of paths.

Each takes 50 to 90 microseconds until it is indexed, so 40,000 take 2 to 4 s. A text of 2 MB with
more of them has less than 50 characters below each.
"""
EACH: Final = 50
"""Characters of a longer document for which it may have one more."""
_NAMES: Final = {"heading": "headings", "symbol": "functions"}


def with_fewer_places(document: Document) -> tuple[Document, str | None]:
    """Return a document with a limited number of locators, and what it lacks; the text is the same.

    The first headings and functions are kept. Of paths in a JSON or XML file those at even distances are
    kept, each up to the next one, so that a location is a few values off.
    """
    most = max(MOST, len(document.text) // EACH)
    if len(document.locators) <= most:
        return document, None
    left = dict.fromkeys(_NAMES, most)
    kept: list[Locator] = []
    for one in document.locators:
        if one.kind in left:
            left[one.kind] -= 1
            if left[one.kind] < 0:
                continue
        kept.append(one)
    paths = [one for one in kept if one.kind == "path"]
    if len(paths) > most:
        others = [one for one in kept if one.kind != "path"]
        kept = [*others, *_at_distances(paths, len(document.text) // most)]
    lacking = [f"{-more:,} further {_NAMES[kind]}" for kind, more in left.items() if more < 0]
    why = f"{' and '.join(lacking)} are not used as locations: there are too many" if lacking else None
    return replace(document, locators=tuple(kept)), why


def _at_distances(paths: list[Locator], distance: int) -> Iterator[Locator]:
    held: Locator | None = None
    for one in sorted(paths, key=lambda path: (path.start, path.end)):
        if held is not None and one.start < held.start + distance:
            held = replace(held, end=max(held.end, one.end))
            continue
        if held is not None:
            yield held
        held = one
    if held is not None:
        yield held
