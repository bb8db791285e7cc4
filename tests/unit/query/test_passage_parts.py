"""Sentences and rows of passages, without headings and rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.query.answer.passage_parts import heading_names, parts_of
from tests.unit.query.test_grounding import passages

TABLE = "| Name | Price |\n|:---|---:|\n| item-4 | 6.0 |\n| item-5 | 7.5 |"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "The ship sailed north. The crew of it was cold.",
            ["The ship sailed north.", "The crew of it was cold."],
        ),
        ("# Fram\n\nThe ship sailed north.", ["The ship sailed north."]),
        (
            "# Fram\nThe ship sailed north.\n\n## Maud\n\nSo did the Maud.",
            ["The ship sailed north.", "So did the Maud."],
        ),
        ("The Fram\n========\n\nThe ship sailed north.", ["The ship sailed north."]),
        (
            "The first part of it\n\n---\n\nThe other part of it",
            ["The first part of it", "The other part of it"],
        ),
        (
            "- The ship sailed north.\n2. The crew of it was cold.",
            ["The ship sailed north.", "The crew of it was cold."],
        ),
        (TABLE, ["| item-4 | 6.0 |", "| item-5 | 7.5 |"]),
        (
            f"As counted in May:\n\n{TABLE}\n\nAll is sold now.",
            ["As counted in May:", "| item-4 | 6.0 |", "| item-5 | 7.5 |", "All is sold now."],
        ),
        ("", []),
        ("# Fram", []),
    ],
)
def test_sentences_and_rows(text: str, expected: list[str]) -> None:
    assert [text[part.start : part.end] for part in parts_of(text)] == expected


def test_a_row_has_the_header_of_its_table() -> None:
    assert [part.header for part in parts_of(TABLE)] == ["| Name | Price |"] * 2
    rows = "| item-4 | 6.0 |\n| item-5 | 7.5 |\n\nOf these there are none."
    found = parts_of(rows, "Stock of May\n\n| Name | Price |\n|---|---|")
    assert [(part.header, part.is_row) for part in found] == [("| Name | Price |", True)] * 2 + [("", False)]
    assert [part.header for part in parts_of(rows, "A lead-in:")] == ["", "", ""]


def test_a_heading_of_the_document_is_not_a_sentence() -> None:
    """A reader of web pages or Word files has its headings in the location."""
    (one,) = passages([{"title": "Guide › 2.1 Purge", "text": "2.1 Purge\n\nIt deletes the text.\n\nPurge"}])
    names = heading_names(one)
    assert [one.text[part.start : part.end] for part in parts_of(one.text, "", names)] == [
        "It deletes the text."
    ]


@given(st.text(alphabet=st.sampled_from("ab .|-#=\n:1"), max_size=80))
def test_parts_are_in_order_and_not_empty(text: str) -> None:
    parts = parts_of(text)
    ends = [0, *(part.end for part in parts)]
    assert all(end <= part.start < part.end for end, part in zip(ends, parts, strict=False))
    assert all(text[part.start : part.end].strip() for part in parts)
