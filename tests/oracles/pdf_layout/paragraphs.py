"""Join rows into paragraphs: hyphenated words are rejoined, table rows stay lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tests.oracles.pdf_layout.columns import TextRow

_HYPHENS = ("-", "\u2010", "\u00ad")
_COMPOUND = re.compile(r"(?<![^\W\d_])[^\W\d_]{2,}[-\u2010][^\W\d_]{2,}")
_LAST = re.compile(r"(?<![^\W\d_])[^\W\d_]+$")
_FIRST = re.compile(r"[^\W\d_]+")
_ITEM = re.compile(r"(?:[•‣▪●○◦–*·]|\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})[.)])\s+\S")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3001-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff01-\uff9f]"
)
_NOT_SECOND = {
    "ish",
    "ishly",
    "ishness",
    "less",
    "lessly",
    "same",
    "hood",
    "ness",
    "ing",
    "come",
    "ington",
    "s",
}
_SECOND = {"based", "related", "driven", "oriented", "known", "friendly", "specific"}
_NOT_FIRST = {"un", "inter", "cor", "mis", "de", "non", "re", "a"}
_LONGEST = 61
"""Characters at the end of a line that decide how the next is joined: its last word and a hyphen."""
_OPEN = re.compile(r"[\w,;\-(]$")


@dataclass(slots=True)
class Paragraph:
    """A paragraph with its bounding box."""

    text: str
    size: float
    box: list[float]
    column: int
    rows: int = 1
    open: bool = False
    soft: bool = False


def compounds(rows: Iterable[TextRow]) -> set[str]:
    """Return the hyphenated words inside lines; their hyphens are kept at line ends too."""
    found: set[str] = set()
    for row in rows:
        if "-" in row.text or "\u2010" in row.text:
            found.update(word.lower().replace("\u2010", "-") for word in _COMPOUND.findall(row.text))
    return found


def paragraphs_of(rows: list[TextRow], known: set[str]) -> list[Paragraph]:
    """Return the paragraphs of a page."""
    edges: dict[int, tuple[float, float, float]] = {}
    by_column: dict[int, list[TextRow]] = {}
    for row in rows:
        by_column.setdefault(row.column, []).append(row)
    for column, own in by_column.items():
        steps = [b.top - a.top for a, b in pairwise(own) if b.top > a.top]
        edges[column] = (
            min(row.left for row in own),
            max(row.right for row in own),
            median(steps) if steps else 0.0,
        )
    groups: list[list[TextRow]] = []
    for row in rows:
        if groups and not _new(groups[-1][-1], row, *edges[row.column]):
            groups[-1].append(row)
        else:
            groups.append([row])
    return [_paragraph(group, known) for group in groups]


def _paragraph(rows: list[TextRow], known: set[str]) -> Paragraph:
    first = rows[0]
    box = [
        min(row.left for row in rows),
        min(row.top for row in rows),
        max(row.right for row in rows),
        max(row.bottom for row in rows),
    ]
    text = _text(rows, known)
    is_open = bool(_OPEN.search(text[-1:])) and "\t" not in text
    return Paragraph(text, first.size, box, first.column, len(rows), is_open, rows[-1].soft)


def _text(rows: list[TextRow], known: set[str]) -> str:
    """Return the joined text of rows. Only its end decides how the next row is joined."""
    parts: list[str] = []
    end = rows[0].text
    for last, row in pairwise(rows):
        parts.append(end[:-_LONGEST])
        end = end[-_LONGEST:]
        is_table = row.cells > 1 or last.cells > 1 or row.table > 0
        end = f"{end}\n{row.text}" if is_table else join_lines(end, row.text, last.soft, known)
    return "".join([*parts, end])


def _new(last: TextRow, row: TextRow, left: float, right: float, step: float) -> bool:
    if (row.table or last.table) and row.column == last.column:
        return row.table != last.table
    if row.column != last.column or abs(row.size - last.size) > 0.15 * max(row.size, last.size):
        return True
    down = row.top - last.top
    if down > min(1.4 * step + 1, 3 * max(row.size, 4.0)) or down < -step:
        return True
    if row.cells > 1 and last.cells > 1:
        return False
    if (row.cells > 1) != (last.cells > 1) or _ITEM.match(row.text):
        return True
    ends = last.text[-1:] in '.!?:”"' and not last.soft
    if ends and (last.right < right - 0.15 * (right - left) or row.left > last.left + 0.8 * row.size):
        return True
    # Short lines below each other (an address, a form) stay separate.
    return last.right < left + 0.5 * (right - left) and row.text[:1].isupper() and not last.soft


def join_lines(text: str, more: str, soft: bool, known: set[str]) -> str:
    """Join two lines. A hyphen at the end of the first is dropped unless it belongs to the word."""
    if not more:
        return text
    if soft:
        return _word(text, more, known)
    if text[-1:] in ("-", "\u2010") and re.match(r"\w", text[-2:-1]) and _stays_hyphenated(more):
        return text + more
    if text[-1:] in _HYPHENS and text[-2:-1].isalpha() and more[0].islower():
        return _word(text[:-1], more, known)
    return f"{text}{'' if _UNSPACED.match(text[-1:]) and _UNSPACED.match(more) else ' '}{more}"


def _word(text: str, more: str, known: set[str]) -> str:
    first, second = _LAST.search(text[1 - _LONGEST :]), _FIRST.match(more)
    parts = None if first is None or second is None else (first[0].lower(), second[0].lower())
    if _stays_hyphenated(more) or (parts is not None and ("-".join(parts) in known or _has_hyphen(*parts))):
        return f"{text}-{more}"
    return text + more


def _stays_hyphenated(more: str) -> bool:
    """Return whether a hyphen before a text belongs to the word: a number or a name follows."""
    return more[:1].isnumeric() or more[:1].isupper()


def _has_hyphen(first: str, second: str) -> bool:
    """Return whether a word that is nowhere else in the document is written with a hyphen: self-service."""
    if first in ("self", "well"):
        return second not in _NOT_SECOND
    return second in _SECOND and first not in _NOT_FIRST and len(first) > 2
