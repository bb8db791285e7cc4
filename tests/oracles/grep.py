"""Exact search as Python's `re` does it, a line at a time."""

from __future__ import annotations

import re


def matching_lines(
    pattern: str, text: str, *, ignore_case: bool = False, words: bool = False, fixed: bool = False
) -> list[tuple[int, str]]:
    """Return number (from 0) and text of each line that matches."""
    source = re.escape(pattern) if fixed else pattern
    if words:
        source = rf"(?<!\w)(?:{source})(?!\w)"
    compiled = re.compile(source, re.IGNORECASE if ignore_case else 0)
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    rows = [line.rstrip("\r") for line in lines]
    return [(number, row) for number, row in enumerate(rows) if compiled.search(row)]
