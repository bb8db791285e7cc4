"""The parts of a passage that state something: its sentences, list items and rows of tables.

Headings, rules and the header of a table are not parts; a row has the header of its table.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from itertools import pairwise
from typing import Final

from ketrag_fast.kernels import sentence_spans
from ketrag_fast.records import dataclass
from ketrag_fast.types import Passage

_HEADING: Final = re.compile(r"#{1,6}[ \t]")
_UNDERLINE: Final = re.compile(r"(?:=+|-+)[ \t]*")
_ITEM: Final = re.compile(r"(?:[-*+•·]|\d{1,3}[.)])[ \t]+|>[ \t]*")
"""The marker of a list item or quotation."""
_ROW: Final = re.compile(r"^(?:\||[^\W_][^:;\n]{0,60}: [^;\n]*+; [^:;\n]{1,60}: )[^\n]*\S", re.MULTILINE)
"""A line that is a row, with bars or with the name of each value: `Name: Fram; Built: 1892`."""
_SPEAKER: Final = re.compile(r"[^\W\d_][\w .'’-]{0,30}: \S")
"""How a line of a conversation begins: `Anna: See you there.`"""
_NUMBER: Final = re.compile(r"[\s#*_]*(?:\d+(?:\.\d+)*\.?)?[\s#*_:]*")
"""Number and emphasis before the words of a heading."""


@dataclass(frozen=True, slots=True)
class Part:
    """`text[start:end]`: a sentence, or a row with the header of its table."""

    start: int
    end: int
    header: str = ""
    is_row: bool = False


def parts_of(
    text: str, context: str = "", names: Container[str] = (), fields: Container[str] = ()
) -> list[Part]:
    """Return the parts of a text in order.

    `context` are the lines printed before it, and `names` the headings that it may repeat (`heading_names`).
    `fields` are names of metadata: a text in which each line has one of them is a record, which is one row.

    Examples:
        >>> text = "# Stock\\n\\nAs counted.\\n\\n| Name | Price |\\n|---|---|\\n| item-5 | 7.5 |"
        >>> [(text[part.start : part.end], part.header) for part in parts_of(text)]
        [('As counted.', ''), ('| item-5 | 7.5 |', '| Name | Price |')]
    """
    trimmed = text.strip()
    if fields and all(line.partition(": ")[0] in fields for line in trimmed.splitlines()):
        start = text.index(trimmed)
        return [Part(start, start + len(trimmed), is_row=True)] if trimmed else []
    header = _header_of(context)
    parts: list[Part] = []
    lines = list(_lines(text))
    for at, (start, end) in enumerate(lines):
        line = text[start:end]
        following = text[slice(*lines[at + 1])] if at + 1 < len(lines) else ""
        if _is_rule(line) or _UNDERLINE.fullmatch(line):
            continue
        if line.startswith("|"):
            if _is_rule(following):
                header = line
            else:
                parts.append(Part(start, end, header, is_row=True))
            continue
        header = ""
        is_adjacent = at + 1 < len(lines) and text[end : lines[at + 1][0]] == "\n"
        if is_heading(line, names) or (is_adjacent and _UNDERLINE.fullmatch(following)):
            continue
        marker = _ITEM.match(line)
        parts.append(Part(start + (marker.end() if marker else 0), end))
    return [part for part in parts if part.start < part.end]


def is_heading(line: str, names: Container[str]) -> bool:
    """Return whether a line is a heading by its marks, or is one of `names`."""
    return _HEADING.match(line) is not None or _plain(line) in names


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the rows and the sentences of a text; `_sentences` splits the text between two rows."""
    end = 0
    for row in _ROW.finditer(text):
        yield from _sentences(text, end, row.start())
        yield row.span()
        end = row.end()
    yield from _sentences(text, end, len(text))


def _sentences(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences of `text[begin:stop]`; those with a heading or speaker are cut at line ends."""
    if not text[begin:stop].strip():
        return
    for first, last in sentence_spans(text[begin:stop]).tolist():
        start, end = begin + first, begin + last
        rows = text[start:end].split("\n")
        if len(rows) == 1 or not any(map(_is_line, rows)):
            yield start, end
            continue
        for row in rows:
            trimmed = row.strip()
            if trimmed:
                at = start + row.index(trimmed)
                yield at, at + len(trimmed)
            start += len(row) + 1


def _is_line(row: str) -> bool:
    """Return whether a line is a unit by its form: a heading, a rule, or what one speaker says."""
    trimmed = row.strip()
    return (
        trimmed.startswith("#")
        or _UNDERLINE.fullmatch(trimmed) is not None
        or _SPEAKER.match(trimmed) is not None
    )


def _is_rule(line: str) -> bool:
    """Return whether a line is the one below the header of a table, or a rule."""
    return "-" in line and not line.strip("|:- \t")


def _header_of(context: str) -> str:
    """Return the header of a table in the lines printed before a passage."""
    pairs = pairwise(context.splitlines())
    return next((line for line, rule in pairs if line.startswith("|") and _is_rule(rule)), "")


def heading_names(passage: Passage) -> set[str]:
    """Return the title and the headings of a passage, as `parts_of` takes them."""
    heading = passage.location.get("heading")
    above = map(str, heading) if isinstance(heading, list) else ()
    parts = [passage.title, *passage.title.split(" › "), *above]
    return {_plain(part) for part in parts} - {""}


def _plain(text: str) -> str:
    """Return the words of a heading in lower case, without its number and emphasis."""
    numbered = _NUMBER.match(text)
    return " ".join(text[numbered.end() if numbered else 0 :].strip(" *_#:").lower().split())
