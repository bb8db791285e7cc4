"""`FILE:POSITION`, with the paths of every system."""

from __future__ import annotations

import pytest

from ketrag_fast.query.excerpts import Part, split_position


@pytest.mark.parametrize(
    ("text", "file", "part"),
    [
        ("a.md:93-110", "a.md", Part(lines=(93, 110))),
        ("a.md:93:18", "a.md", Part(lines=(93, 110))),
        ("a.md:93", "a.md", Part(lines=(93, None))),
        (r"C:\notes\a.md:93-110", r"C:\notes\a.md", Part(lines=(93, 110))),
        (r"C:\notes\a.md", None, None),
        ("report.pdf:p12", "report.pdf", Part(pages=(12, 12))),
        ("report.pdf:p12-14", "report.pdf", Part(pages=(12, 14))),
        ("stock.xlsx:Stock!A65", "stock.xlsx", Part(cell="Stock!A65")),
        ("stock.xlsx:My Stock!AB7", "stock.xlsx", Part(cell="My Stock!AB7")),
        ("book.ipynb:cell3", "book.ipynb", Part(cell="cell3")),
        ("talk.srt:00:12:30", "talk.srt", Part(time="00:12:30")),
    ],
)
def test_positions(text: str, file: str | None, part: Part | None) -> None:
    ways = list(split_position(text))
    assert ways[0] == (text, Part())
    assert ways[1:2] == ([] if file is None else [(file, part)])
