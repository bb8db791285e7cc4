"""Text for terminals, assistants and programs: control characters escaped; colours, links and a width.

Characters that would move the cursor, change colours or the writing direction, or break the line are printed
as symbols (␛) or escapes (`\\x9b`). In a pipe, lines are plain and not cut.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

PATH: Final = "35"
NUMBER: Final = "32"
MARK: Final = "1;31"
FAINT: Final = "2"
_NARROWEST: Final = 20
_USUAL: Final = 80


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


class Terminal(NamedTuple):
    """Capabilities of standard output. In a pipe `width` is None, and lines are not cut."""

    width: int | None = None
    colour: bool = False
    links: bool = False

    def paint(self, text: str, code: str) -> str:
        """Return text in a colour."""
        return f"\033[{code}m{text}\033[0m" if self.colour and text else text

    def link(self, text: str, path: str) -> str:
        """Return text that opens a file when it is clicked (OSC 8)."""
        if not self.links:
            return text
        return f"\033]8;;{Path(path).as_uri()}\033\\{text}\033]8;;\033\\"

    def wrapped(self, text: str, marks: Sequence[tuple[int, int]], room: int) -> list[str]:
        """Return a line with ranges highlighted, wrapped into two rows of `room` columns, or cut."""
        start, stop = _window(text, marks, 2 * room - 2)
        middle = text.rfind(" ", start + room // 2, start + room - 2)
        if columns(text) <= room or middle < 0:
            return [self.marked(text, marks, room)]
        rows = []
        for first, last in ((start, middle), (middle + 1, stop)):
            own = [(max(a, first) - first, min(b, last) - first) for a, b in marks if a < last and b > first]
            shown = self.marked(text[first:last], own, room - 1)
            before, after = "…" if first == start > 0 else "", "…" if last == stop < len(text) else ""
            rows.append(f"{before}{shown}{after}")
        return rows

    def marked(self, text: str, marks: Sequence[tuple[int, int]], room: int | None) -> str:
        """Return a line with ranges highlighted, cut to `room` columns around the first."""
        if room is not None:
            text = text.replace("\t", " ")
        shown = one_line(text)
        if len(shown) != len(text):  # an escape is longer than its character: highlights would move
            marks = ()
        start, stop = 0, len(shown)
        if room is not None and columns(shown) > room:
            start, stop = _window(shown, marks, room)
        out, at = [], start
        for first, last in marks:
            first, last = max(first, at), min(last, stop)
            if first < last:
                out += [shown[at:first], self.paint(shown[first:last], MARK)]
                at = last
        before, after = "…" if start else "", "…" if stop < len(shown) else ""
        return f"{before}{''.join(out)}{shown[at:stop]}{after}"


def standard_output() -> Terminal:
    """Detect the capabilities of standard output.

    Colours and links need a terminal; NO_COLOR and TERM=dumb switch colours off, TERM=dumb links, too.
    """
    if not sys.stdout.isatty():
        return Terminal()
    width = max(columns_of_terminal(), _NARROWEST)
    dumb = os.environ.get("TERM") == "dumb"
    return Terminal(width, not dumb and not os.environ.get("NO_COLOR"), not dumb)


def columns(text: str) -> int:
    """Return the width of text in columns."""
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def cut(text: str, room: int) -> str:
    """Return text cut to a number of columns; `…` replaces its end."""
    if columns(text) <= room:
        return text
    kept = text[: max(room - 1, 0)]
    while columns(kept) > max(room - 1, 0):
        kept = kept[:-1]
    return f"{kept}…"


def _window(text: str, marks: Sequence[tuple[int, int]], room: int) -> tuple[int, int]:
    """Return the range of a line to show: its start if the first marks fit, else the text around them."""
    inner = max(room - 2, 1)
    first = marks[0][0] if marks else 0
    last = next((end for _, end in reversed(marks) if end - first <= inner), first)
    start = 0 if last < room - 1 else max(min(first - inner // 4, len(text) - inner), 0)
    stop = min(start + (room - 1 if start == 0 else inner), len(text))
    while columns(text[start:stop]) > inner and stop - start > 1:
        stop -= 1
    return start, stop


def columns_of_terminal() -> int:
    """Return the width of the terminal as `shutil.get_terminal_size`, which imports compression, finds it."""
    with suppress(KeyError, ValueError):
        if (given := int(os.environ["COLUMNS"])) > 0:
            return given
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _USUAL  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return _USUAL


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
