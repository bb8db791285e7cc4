"""Headings of a PDF without an outline: large letters, and what documents label and number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from ketrag_fast.readers.headings import Heading
from ketrag_fast.readers.pdf.pages import Paragraph

Placed = Sequence[Sequence[tuple[int, Paragraph]]]
"""The paragraphs of each page with their offsets in the text."""
_LARGER: Final = 1.12
"""Headings have letters larger than the body text by this factor."""
_LONGEST: Final = 160
_OFTEN: Final = 0.2
"""Large letters that are the same on more than this share of the pages are a running header."""
_LONG_PAGES: Final = 8
_LONG_SHARE: Final = 0.4
"""In a document of this many pages or more, a section with a larger share of the text shows that large
letters are not all headings: those of a filing are on its cover."""
_BULLET = re.compile(r"\s*[•‣▪■□●○◦◆➢➤✓✔✗✘☐☑☒❏❑❒►▶*·\uf0a7\uf0a8\uf0b7\uf0fe-]\s*")
_NUMBERED = re.compile(r"(?:\d{1,2}(?:\.\d{1,2}){0,4}\.?|[A-Z]\.\d{1,2}|[IVX]{1,5}\.)\s+[^\W\d_][^\n]{1,90}")
_LABELLED = re.compile(
    r"(?:(part|chapter|appendix|annex|book)|(item|section|article)|(note))[ \xa0]+"
    r"(?:\d{1,3}[a-z]?|[ivxlc]{1,6}|[a-z])(?!\w|\.\d)[ \xa0]*(?:[.:)\u2013\u2014-]{1,2}[ \xa0]*)?(.*)",
    re.I | re.S,
)
_LABEL_TAB = re.compile(
    r"((?:part|chapter|appendix|annex|book|item|section|article|note)[ \xa0]+\w{1,6}[.:)]?)"
    r"\t(?=[^\W\d_][^\t]*$)",
    re.I,
)
"""A label that is set apart as if it were a cell."""
_NO_LETTERS = re.compile(r"[\W_]+")


def headings_of(placed: Placed) -> Iterator[Heading]:
    """Yield the headings of a document without an outline.

    They are short paragraphs in large letters. If these leave much of the text in one section, they are
    instead what is labelled ("Item 2. Properties", "Note 4"), numbered, or in capitals, if anything is.
    """
    body = body_size(placed)
    if body is None:
        return
    plain = ((start, _without_label_tab(own)) for page in placed for start, own in page)
    every = [(start, own) for start, own in plain if may_head(own)]
    often = Counter(letters(own.text) for _, own in every)
    every = [one for one in every if often[letters(one[1].text)] <= max(_OFTEN * len(placed), 3)]
    large = [(start, own) for start, own in every if own.size >= _LARGER * body]
    found = list(_large_letters(large)) if len(large) > 1 else []
    if not found or (len(placed) >= _LONG_PAGES and _longest_share(found, placed) > _LONG_SHARE):
        labelled = list(_labels(every))
        if not found or _longest_share(labelled, placed) < _longest_share(found, placed):
            found = labelled
    yield from found


def _without_label_tab(own: Paragraph) -> Paragraph:
    """Return a paragraph that may be a heading with a blank after its label."""
    if "\t" not in own.text or len(own.text) > _LONGEST:
        return own
    return own._replace(text=_LABEL_TAB.sub(r"\1 ", own.text))


def _large_letters(large: Sequence[tuple[int, Paragraph]]) -> Iterator[Heading]:
    sizes = sorted({round(own.size, 1) for _, own in large}, reverse=True)[:6]
    for start, own in large:
        size = round(own.size, 1)
        yield Heading(start, sizes.index(size) + 1 if size in sizes else len(sizes), own.text)


def _longest_share(found: Sequence[Heading], placed: Placed) -> float:
    """Return the share of the text that is in the longest section; 1 without headings."""
    length = max((start + len(own.text) for page in placed for start, own in page), default=0)
    starts = [*(heading.start for heading in found), length]
    longest = max((after - before for before, after in pairwise(starts)), default=length)
    return longest / max(length, 1)


def _labels(every: Sequence[tuple[int, Paragraph]]) -> Iterator[Heading]:
    """Yield parts, items and notes, below them numbered headings, and below these lines in capitals."""
    for start, own in every:
        level = _label_level(own.text)
        if level:
            yield Heading(start, level, own.text)
        elif _is_numbered(own.text):
            yield Heading(start, 2 + _depth(own.text), own.text)
        elif own.text.isupper() and len(own.text.split()) > 1 and own.rows <= 2:
            yield Heading(start, 9, own.text)


def _label_level(text: str) -> int:
    """Return the level of a labelled heading, 0 for other texts: a sentence goes on in lower case or ends."""
    match = _LABELLED.fullmatch(text.strip())
    if match is None:
        return 0
    title = match[4].strip()
    if title and (not title[0].isupper() or title.endswith((".", ";", ","))):
        return 0
    return 1 if match[1] else 2 if match[2] else 3


def _is_numbered(text: str) -> bool:
    return _NUMBERED.fullmatch(text) is not None and not text.rstrip().endswith((".", ",", ";"))


def _depth(text: str) -> int:
    return text.split()[0].rstrip(".").count(".") + 2


def may_head(own: Paragraph) -> bool:
    """Return whether a paragraph is short and plain enough for a heading."""
    text = own.text
    return (
        len(text) <= _LONGEST
        and own.rows <= 3
        and "\t" not in text
        and sum(map(str.isalpha, text)) >= 3
        and not _BULLET.match(text)
        and not text.rstrip().endswith((",", ";"))
    )


def body_size(placed: Placed) -> float | None:
    """Return the size of most letters; None without text."""
    sizes: Counter[float] = Counter()
    for page in placed:
        for _, own in page:
            sizes[round(own.size, 1)] += len(own.text)
    return sizes.most_common(1)[0][0] if sizes else None


def letters(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return _NO_LETTERS.sub("", text.lower())
