"""Man pages: sections and paragraphs of roff with the macros `man` and `mdoc`.

Requests that only format are dropped. Files that a page includes (`.so`) are not opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import TextWriter

_ESCAPE: Final = re.compile(
    r"\\(?:f(?:\[[^\]\n]{0,30}\]|\(..|.)|s[+-]?\d|[mMFO]\[[^\]\n]{0,30}\]"
    r"|\*?\((..)|\*?\[([^\]\n]{0,30})\]|(.))"
)
_NAMED: Final = {
    "bu": "•",
    "em": "—",
    "en": "–",
    "aq": "'",
    "cq": "'",
    "oq": "'",
    "dq": '"',
    "lq": "“",
    "rq": "”",
    "ha": "^",
    "ti": "~",
    "co": "©",
    "rs": "\\",
    "mu": "×",
    "->": "→",
    "<=": "≤",
    ">=": "≥",
    "hy": "-",
}
_SINGLE: Final = {"e": "\\", "-": "-", " ": " ", "~": " ", "0": " ", "'": "'", "`": "`", "\\": "\\", ".": "."}
_ARGUMENT: Final = re.compile(r'"([^"\n]*)"?|(\S+)')
_HEADINGS: Final = {"SH": 1, "Sh": 1, "SS": 2, "Ss": 2}
_PARAGRAPHS: Final = frozenset(("PP", "P", "LP", "Pp", "sp", "RS", "RE", "Bl", "El", "Bd", "Ed", "br"))
_TEXT: Final = frozenset(
    (
        *("B", "I", "R", "SM", "SB", "BR", "BI", "RB", "RI", "IB", "IR", "Nm", "Fl", "Ar", "Op", "Xr", "Pa"),
        *("Ev", "Cm", "Em", "Sy", "Li", "Ql", "Dq", "Sq", "Va", "Vt", "Fa", "Fn", "Ic", "Nd", "Er", "Dv"),
    )
)
_JOINED: Final = frozenset(("BR", "BI", "RB", "RI", "IB", "IR"))


def read_man(file: SourceFile) -> Iterator[Item]:
    """Yield the page as one document with the title `NAME(SECTION)`."""
    text = file.text()
    out = TextWriter()
    title = _Page(out).write(text.splitlines())
    document = out.document(file, title, {})
    if not document.text:
        yield file.failure("the page has no text")
        return
    yield document


class _Page:
    """Writes the lines of a page as paragraphs."""

    def __init__(self, out: TextWriter) -> None:
        self._out = out
        self._parts: list[str] = []
        self._level: int | None = None
        self._is_tag = False
        self._verbatim = False
        self._title = self._name = ""

    def write(self, lines: list[str]) -> str:
        """Write all lines, and return the title of the page."""
        for line in lines:
            if line[:1] in (".", "'"):
                request, _, rest = line[1:].strip().partition(" ")
                self._request(request, [quoted or plain for quoted, plain in _ARGUMENT.findall(rest)])
            elif line.strip() or self._verbatim:
                self._add(line)
            else:
                self._end()
        self._end()
        return self._title

    def _request(self, request: str, arguments: list[str]) -> None:
        if request in ("TH", "Dt") and len(arguments) > 1:
            self._title = _plain(f"{arguments[0].lower()}({arguments[1]})")
        elif request in _HEADINGS:
            self._end()
            self._level = _HEADINGS[request]
            if arguments:
                self._add(" ".join(arguments))
        elif request in ("TP", "TQ", "IP", "It"):
            self._end()
            self._is_tag = request in ("TP", "TQ")
            if not self._is_tag and arguments:
                self._add(arguments[0] if request == "IP" else " ".join(arguments))
                self._end()
        elif request in ("nf", "fi", "EX", "EE"):
            self._end()
            self._verbatim = request in ("nf", "EX")
        elif request in _PARAGRAPHS:
            self._end()
        elif request in _TEXT:
            if request == "Nm":
                self._name = arguments[0] if arguments else self._name
                arguments = arguments or [self._name]
            self._add(("" if request in _JOINED else " ").join(arguments))

    def _add(self, text: str) -> None:
        self._parts.append(_plain(text))
        if self._level is not None or self._is_tag:
            self._end()
            self._is_tag = False

    def _end(self) -> None:
        """Write the paragraph that has been collected."""
        if self._verbatim and self._level is None:
            self._out.verbatim("\n".join(self._parts))
        else:
            self._out.paragraph(" ".join(self._parts), level=self._level)
        self._parts.clear()
        self._level = None


def _plain(text: str) -> str:
    return _ESCAPE.sub(_replace, text.partition('\\"')[0]) if "\\" in text else text


def _replace(found: re.Match[str]) -> str:
    if found[3] is not None:
        return _SINGLE.get(found[3], "")
    name = found[1] or found[2] or ""
    return _NAMED.get(name, chr(int(name[1:], 16)) if _is_code(name) else "")


def _is_code(name: str) -> bool:
    digits = name[1:]
    known = name[:1] == "u" and 4 <= len(digits) <= 5 and all(one in "0123456789ABCDEF" for one in digits)
    return known and not 0xD800 <= int(digits, 16) < 0xE000
