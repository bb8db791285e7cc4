"""Titles of notes: a heading of level one, else the name of the file."""

from __future__ import annotations

import pytest

from tests.support.reading import read_one


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("kayak-rental.md", "# Prices\n\ntext", "Prices"),
        ("kayak-rental.md", "text\n\n## Prices\n\ntext", "kayak-rental"),
        ("archive/2024.03 minutes.txt", "text", "2024.03 minutes"),
        ("todo.org", "* One\n* Two\n", "todo"),
        ("a.rst", "text only", "a"),
    ],
)
def test_title(name: str, text: str, title: str) -> None:
    assert read_one(name, text.encode()).title == title
