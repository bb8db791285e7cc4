"""Rows become paragraphs in linear work, as if each row were added to the whole text."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from ketrag_fast.readers.pdf import paragraphs
from ketrag_fast.readers.pdf.columns import TextRow
from ketrag_fast.readers.pdf.paragraphs import Paragraph, join_lines, paragraphs_of

WORDS = ["ice", "Ice", "well-", "known", "ship\u2010", "build", "x" * 80 + "-", "a-", "-", "end.", "so\u00ad"]


def _rows(count: int, chance: random.Random) -> list[TextRow]:
    """Rows of one column at even distances; some have cells, some end in a soft hyphen."""
    rows = []
    for at in range(count):
        text = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 3)))
        soft = chance.random() < 0.2
        cells = 2 if chance.random() < 0.1 else 1
        rows.append(TextRow(10.0, 12.0 * at, 90.0, 12.0 * at + 10, 10.0, text, soft, cells))
    return rows


def _joined(rows: list[TextRow], known: set[str]) -> str:
    """The oracle: each row is added to the whole text before it."""
    text = rows[0].text
    for last, row in pairwise(rows):
        is_table = row.cells > 1 or last.cells > 1
        text = f"{text}\n{row.text}" if is_table else join_lines(text, row.text, last.soft, known)
    return text


@pytest.mark.parametrize("seed", range(30))
def test_the_text_is_that_of_rows_added_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    rows, known = _rows(40, chance), {"well-known", "ship-build", "a-known"}
    found: list[Paragraph] = paragraphs_of(rows, known)
    at = 0
    for paragraph in found:
        assert paragraph.text == _joined(rows[at : at + paragraph.rows], known)
        at += paragraph.rows
    assert at == len(rows)


def test_joining_a_row_never_reads_the_whole_paragraph(monkeypatch: pytest.MonkeyPatch) -> None:
    """One paragraph of many rows: what is copied for a row does not grow with the rows before it."""
    copied: list[int] = []

    def counted(text: str, more: str, soft: bool, known: set[str]) -> str:
        copied.append(len(text))
        return join_lines(text, more, soft, known)

    monkeypatch.setattr(paragraphs, "join_lines", counted)
    rows = [TextRow(10.0, 12.0 * at, 90.0, 12.0 * at + 10, 10.0, "of ice and snow") for at in range(5000)]
    (paragraph,) = paragraphs_of(rows, set())
    assert paragraph.rows == 5000
    assert paragraph.text == " ".join(row.text for row in rows)
    assert len(copied) == 4999
    assert max(copied) <= 100
