"""Untrusted text with its control characters escaped, for people, assistants and programs.

Characters that would move the cursor, change colours or the writing direction, or break the line are printed
as symbols (␛) or escapes (`\\x9b`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final


def _escape(number: int) -> str:
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


def _json_escape(number: int) -> str:
    if number < 1 << 16:
        return f"\\u{number:04x}"
    high, low = divmod(number - (1 << 16), 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_TURNING: Final = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_UNSEEN: Final = (0x2028, 0x2029, 0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE0080))
_OTHERS: Final = (*range(0x80, 0xA0), *_TURNING, *_UNSEEN)
_LINE: Final = {n: chr(0x2400 + n) for n in range(0x20)} | {0x7F: "␡"} | {n: _escape(n) for n in _OTHERS}
_LINES: Final = {n: shown for n, shown in _LINE.items() if n not in (0x09, 0x0A)}
_JSON: Final = {n: _json_escape(n) for n in (0x7F, *_OTHERS)}
_SOURCES: Final = re.compile(r"^(?=[^\S\n]*(?:Sources(?: \(|:)|\[\d+\][^\S\n]+\S))", re.MULTILINE)


def visible(text: str) -> str:
    """Return text with control characters escaped; line ends and tabs are kept."""
    return text.replace("\r\n", "\n").translate(_LINES)


def inline(text: object) -> str:
    """Return text for a single line, with line ends and all control characters escaped."""
    return str(text).translate(_LINE)


def one_line(text: str) -> str:
    """Return text for a single line as `inline` does, but keep tabs."""
    return "\t".join(map(inline, text.split("\t")))


def in_json(text: str) -> str:
    """Return JSON with control characters as JSON escapes, which parse to the same text."""
    return text.translate(_JSON)


def quote_source_lines(text: str) -> str:
    """Return an answer with `>` before lines that imitate the list of sources printed below it."""
    return _SOURCES.sub("> ", text)


def display_path(path: str) -> str:
    """Return a path relative to the working directory if it is inside, else with `~` for the home folder."""
    for folder, prefix in ((_folder(Path.cwd), ""), (_folder(Path.home), "~")):
        if folder and path.startswith(folder + os.sep):
            rest = path[len(folder) + 1 :]
            return os.path.join(prefix, rest)  # noqa: PTH118 - text, not a path
    return path


def _folder(find: Callable[[], Path]) -> str:
    try:
        return str(find())
    except (OSError, RuntimeError):  # the folder was deleted
        return ""
