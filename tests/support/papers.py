"""Pages whose words stand in a known order: papers in columns, forms, tables, drawn in several ways.

Lines are filled to the column's width; words are cut by hyphens where a line is full.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.support.pdf_files import HEIGHT, WIDTH, Page, pdf

SIZE = 9.0
_ADVANCE = 0.6 * SIZE
_STEP = 11.5
WAYS = ("by column", "by row", "words apart", "shuffled")
"""In which order lines are drawn, and whether each word is drawn by itself."""


@dataclass
class Sheet:
    """A page and the words on it in the order in which they are read; `heads` stand outside of the text."""

    page: Page = field(default_factory=Page)
    words: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)


Line = tuple[float, float, str]


class Words(Iterator[str]):
    """The words of a text, over and over; one that does not fit goes back."""

    def __init__(self, text: str) -> None:
        self._words = text.split()
        self._at = 0

    def __next__(self) -> str:
        self._at += 1
        return self._words[(self._at - 1) % len(self._words)]

    def back(self) -> None:
        self._at -= 1


def filled(words: Words, columns: int, lines: int, chance: random.Random) -> tuple[list[str], list[str]]:
    """(lines of at most `columns` letters, the words in them); some long words are cut at a line's end."""
    out: list[str] = []
    used: list[str] = []
    rest = ""
    for number in range(lines):
        line, rest = rest, ""
        while True:
            word = next(words)
            room = columns - len(line) - bool(line)
            if len(word) <= room:
                line += (" " if line else "") + word
                used.append(word)
                continue
            cuts = number + 1 < lines and word.isalpha() and word.islower() and len(word) > 7 and room >= 5
            if cuts and chance.random() < 0.6:
                cut = min(room - 1, len(word) - 3)
                line += f" {word[:cut]}-" if line else f"{word[:cut]}-"
                rest = word[cut:]
                used.append(word)
            else:
                words.back()
            break
        out.append(line)
    return out, used


def paper(
    words: Words, way: str, chance: random.Random, *, columns: int = 2, notes: bool = True, side: bool = False
) -> Sheet:
    """A page of a paper: title over all columns, columns with footnotes, text along the margin."""
    sheet = Sheet()
    width = (WIDTH - 110 - 24 * (columns - 1)) / columns
    letters = int(width / _ADVANCE)
    title = " ".join(next(words) for _ in range(6))
    sheet.page.text(55, 80, title, 15)
    sheet.words += title.split()
    drawn: list[list[Line]] = []
    for column in range(columns):
        x = 55 + column * (width + 24)
        lines, used = filled(words, letters, 42 + chance.randrange(4), chance)
        sheet.words += used
        own: list[Line] = [(x, 110 + _STEP * n, line) for n, line in enumerate(lines)]
        if notes:
            note, used = filled(words, letters, 3, chance)
            sheet.words += used
            own += [(x, 690 + _STEP * n, line) for n, line in enumerate(note)]
        drawn.append(own)
    _draw(sheet.page, drawn, way, chance)
    if side:
        text = "preprint of a paper under review"
        sheet.page.text(25, 600, text, 8, angle=90)
        sheet.words += text.split()
    return sheet


def _draw(page: Page, columns: Sequence[Sequence[Line]], way: str, chance: random.Random) -> None:
    lines = [line for column in columns for line in column]
    if way == "by row":
        lines.sort(key=lambda line: line[1])
    elif way == "shuffled":
        chance.shuffle(lines)
    for x, y, text in lines:
        if way != "words apart":
            page.text(x, y, text, SIZE)
            continue
        at = x
        for word in text.split(" "):
            page.text(at, y, word, SIZE)
            at += _ADVANCE * (len(word) + 1)


def form(words: Words, way: str, chance: random.Random) -> Sheet:
    """Names with values beside them, and a table of short cells: read by row."""
    sheet = Sheet()
    rows: list[list[Line]] = []
    for n in range(14):
        y = 90 + 20 * n
        name, value = f"{next(words)} {next(words)}:", f"{next(words)} {chance.randrange(1000)}"
        rows.append([(60, y, name), (260, y, value)])
    for n in range(18):
        y = 400 + 16 * n
        rows.append([(60 + 120 * c, y, f"{next(words)[:9]}{c}{n}") for c in range(4)])
    sheet.words = [word for row in rows for _, _, text in row for word in text.split()]
    columns = [[row[c] for row in rows if c < len(row)] for c in range(4)]
    _draw(sheet.page, columns, way, chance)
    return sheet


def plain(words: Words, way: str, chance: random.Random) -> Sheet:
    """One column."""
    sheet = Sheet()
    lines, sheet.words = filled(words, int((WIDTH - 120) / _ADVANCE), 55, chance)
    _draw(sheet.page, [[(60, 90 + _STEP * n, line) for n, line in enumerate(lines)]], way, chance)
    return sheet


def with_heads(sheets: Sequence[Sheet], title: str) -> None:
    """A running head and a page number on each."""
    for number, sheet in enumerate(sheets, 101):
        head = title if number % 2 else "Annals of the Society"
        sheet.page.text(200, 45, head, 8).text(WIDTH - 70, 45, str(number), 8)
        sheet.page.text(WIDTH / 2, HEIGHT - 30, f"- {number} -", 8)
        sheet.heads = [*head.split(), str(number), "-", str(number), "-"]


def right_order(found: Sequence[str], truth: Sequence[str]) -> tuple[int, int, int]:
    """(words of the longest common subsequence, found, true): by bits of one long number."""
    masks: dict[str, int] = {}
    for place, word in enumerate(truth):
        masks[word] = masks.get(word, 0) | 1 << place
    every = (1 << len(truth)) - 1
    row = every
    for word in found:
        hit = row & masks.get(word, 0)
        row = ((row + hit) | (row - hit)) & every
    return len(truth) - row.bit_count(), len(found), len(truth)


def document(sheets: Sequence[Sheet]) -> bytes:
    """The pages as one file."""
    return pdf([sheet.page for sheet in sheets])
