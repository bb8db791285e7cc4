"""Map ranges of a text to positions in its source: pages, headings, cells, lines.

A locator describes a range of the text without changing the text. A location describes one passage: the
innermost locator of each kind at its start, and for pages, slides and lines also the last number.

>>> locators = (Locator(0, 40, "page", 1), Locator(40, 90, "page", 2), Locator(0, 90, "heading", ["Risks"]))
>>> location_of(locators, 30, 50)
{'page': 1, 'pages': [1, 2], 'heading': ['Risks']}
>>> describe_location(location_of(locators, 30, 50))
'pp. 1-2, § Risks'
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ketrag_fast.records import dataclass

Location = Mapping[str, Any]
"""`{"page": 12, "heading": ["3 Results", "3.2 Risks"]}`; empty if unknown."""

KINDS: Final = ("part", "sheet", "slide", "page", "cell", "heading", "symbol", "path", "line", "box")
"""Kinds of locators in the order in which a location lists them; kinds of other readers follow."""
_RANKS: Final = {kind: rank for rank, kind in enumerate(KINDS)}

EXCHANGE: Final = "exchange"
"""Kind of a locator for an exchange of a conversation, which is a section; its value is a number."""
PAUSE: Final = 60
"""Minimum seconds between the times of two locators for the second one to start a new section."""
MARKS: Final = ("markdown", "code", "lines")
"""Kinds of locators that control how a range of the text is cut, in the order of the core's numbers.

The value of `markdown` is 0, of `code` the number of first lines to repeat with each part, and of `lines`,
which marks verbatim source lines, the number of the first line.
"""

_COUNTED: Final = {"page": "pages", "slide": "slides", "line": "lines"}
_TITLED: Final = frozenset(("heading", "symbol"))
_DEEPEST: Final = 6
_LONGEST: Final = 60


@dataclass(frozen=True, slots=True)
class Locator:
    """`document.text[start:end]` is at `value` in the source.

    `value` is a number for a page, slide or line, `HH:MM:SS` for a time, a list of names for a heading or a
    symbol, a list of four numbers (left, top, right, bottom, in points) for a box, else a text.

    Examples:
        >>> from ketrag_fast import Document
        >>> pages = Locator(0, 9, "page", 1), Locator(10, 19, "page", 2)
        >>> document = Document("a", "Page one. Page two.", locators=pages)
        >>> document.locators[1].value
        2
    """

    start: int
    end: int
    kind: str
    value: Any


def seconds_of(time: Any) -> int:
    """Return the seconds of a locator of kind "time"; 0 if it has another form.

    >>> seconds_of("00:12:30"), seconds_of("12:30"), seconds_of("noon")
    (750, 750, 0)
    """
    try:
        hours, minutes, seconds = map(int, f"0:{time}".split(":")[-3:])
    except ValueError:
        return 0
    return 3600 * hours + 60 * minutes + seconds


def sort_locators(locators: Iterable[Locator]) -> tuple[Locator, ...]:
    """Sort locators in storage order: by start, then longest first, then by kind."""
    most = len(KINDS)
    return tuple(
        sorted(locators, key=lambda one: (one.start, -one.end, _RANKS.get(one.kind, most), one.kind))
    )


def problem_of(locators: Sequence[Locator], length: int) -> str | None:
    """Describe the first invalid locator of a text of `length` code points, or return None."""
    for one in locators:
        whole = type(one.start) is int and type(one.end) is int
        if not whole or not 0 <= one.start <= one.end <= length:
            return f"a locator ({one.kind}) is outside the text: {one.start}-{one.end} of {length}"
        if not isinstance(one.kind, str) or not one.kind.isidentifier():
            return f"a locator's kind must be an identifier, got {one.kind!r:.80}"
        if is_mark(one) and not 0 <= one.value < 2**32:
            return f"the value of a locator of kind {one.kind} must be a line number, got {one.value:,}"
    return None


def to_text(locators: Sequence[Locator]) -> str:
    """Serialise locators to JSON ("" for none). Raises ValueError or TypeError for unsupported values."""
    if not locators:
        return ""
    rows = [[one.start, one.end, one.kind, one.value] for one in sort_locators(locators)]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


def from_rows(rows: Any) -> tuple[Locator, ...]:
    """Convert parsed JSON to locators. Raises ValueError or TypeError for invalid rows."""
    found = tuple(Locator(*row) for row in rows)
    if not all(
        type(one.start) is int and type(one.end) is int and isinstance(one.kind, str) for one in found
    ):
        raise ValueError("a locator has offsets or a kind of another type")
    return found


def is_mark(one: Locator) -> bool:
    """Return whether a locator controls how the text is cut, rather than giving a position in the source."""
    return one.kind in MARKS and type(one.value) is int


def location_of(locators: Iterable[Locator], start: int, end: int) -> dict[str, Any]:
    """Return the location of a range of a text, given the text's locators."""
    by_kind: dict[str, list[Locator]] = {}
    for one in locators:
        within = one.start < max(end, start + 1) and (one.end > start or one.start == start)
        if within and not is_mark(one):
            by_kind.setdefault(one.kind, []).append(one)
    found: dict[str, Any] = {}
    for kind in sorted(by_kind, key=lambda kind: (_rank(kind), kind)):
        own = by_kind[kind]
        around = [one for one in own if one.start <= start]
        if not around and kind in _TITLED and own[0].start - start > (end - start) / 2:
            continue  # most of the passage is above the first heading
        inner = min(around or own[:1], key=lambda one: (one.end - one.start, -one.start))
        if kind == "box":
            found[kind] = _bounding_box([one.value for one in own if _same_page(one, inner, by_kind)])
            continue
        found[kind] = inner.value
        if kind in _COUNTED:
            last = max((one.value for one in own if isinstance(one.value, int)), default=inner.value)
            if isinstance(inner.value, int) and last > inner.value:
                found[_COUNTED[kind]] = [inner.value, last]
    return found


def _same_page(one: Locator, first: Locator, by_kind: Mapping[str, Sequence[Locator]]) -> bool:
    """Return whether a box is on the same page as the first box, because a bounding box covers one page."""
    ends = [page.end for page in by_kind.get("page", ()) if page.start <= first.start]
    return not ends or one.start < max(ends)


def _bounding_box(boxes: Sequence[Sequence[float]]) -> list[float]:
    left, top, right, bottom = zip(*boxes, strict=True)
    return [min(left), min(top), max(right), max(bottom)]


def _rank(kind: str) -> int:
    return _RANKS.get(kind, len(KINDS))


def describe_location(location: Location) -> str:
    """Format a location as text: `p. 12, § 3 Results › 3.2 Risks`; boxes are left out."""
    parts = []
    for kind, value in location.items():
        if kind == "lines" and "line" not in location:
            parts.append(f"lines {value[0]}-{value[1]}" if value[1] > value[0] else f"line {value[0]}")
        if kind in ("box", *_COUNTED.values()):
            continue
        many = location.get(_COUNTED.get(kind, ""))
        if kind == "page":
            parts.append(f"pp. {many[0]}-{many[1]}" if many else f"p. {value}")
        elif kind in _COUNTED:
            parts.append(f"{kind}s {many[0]}-{many[1]}" if many else f"{kind} {value}")
        elif kind == "heading":
            parts.append("§ " + path_text(value))
        elif kind == "symbol":
            parts.append(path_text(value, "."))
        elif kind in ("cell", "path", "part"):
            parts.append(str(value))
        else:
            parts.append(f"{kind} {value}")
    return ", ".join(parts)


def path_text(path: Any, between: str = " › ") -> str:
    """Format a path of names on one line; the start of a long path and long names are cut."""
    names = [str(name) for name in path] if isinstance(path, (list, tuple)) else [str(path)]
    cut = [name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…" for name in names]
    return between.join(["…", *cut[-_DEEPEST:]] if len(cut) > _DEEPEST else cut)
