"""Plain text, Markdown and reStructuredText: one document a file, its first heading as title."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from ketrag_fast.backends.readers.base import Item, SourceFile
from ketrag_fast.backends.readers.decode import decode
from ketrag_fast.types import Document

_HEAD = 20_000  # a heading further down is no title
_FENCE = re.compile(r" {0,3}(```|~~~)")
_ATX = re.compile(r" {0,3}#{1,6}[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*")
_FRONT_TITLE = re.compile(r"title[ \t]*:[ \t]*(.*)", re.IGNORECASE)


def read_plain(file: SourceFile) -> Iterator[Item]:
    """A .txt file: no title."""
    return _read(file, lambda _: "")


def read_markdown(file: SourceFile) -> Iterator[Item]:
    """A .md file: the title of its front matter, else its first heading."""
    return _read(file, markdown_title)


def read_rst(file: SourceFile) -> Iterator[Item]:
    """A .rst file: its first heading."""
    return _read(file, rst_title)


def _read(file: SourceFile, title_of: Callable[[str], str]) -> Iterator[Item]:
    data = file.path.read_bytes()
    if not data:
        yield file.failure("the file is empty")
        return
    text = decode(data, file.fallback_encoding)
    if text.isspace() or not text:
        yield file.failure("the file has no text, only white space")
        return
    yield Document(file.id, text, title_of(text[:_HEAD]))


def markdown_title(text: str) -> str:
    """The front matter's `title:`, else the first heading outside code, else nothing."""
    lines = text.splitlines()
    start = 0
    if lines and lines[0].rstrip() == "---":
        end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
        for line in lines[1:end]:
            found = _FRONT_TITLE.fullmatch(line.rstrip())
            if found and (title := _unquoted(found[1].strip())):
                return title
        start = end + 1 if end else 0
    fence = ""
    previous = ""
    for line in lines[start:]:
        mark = _FENCE.match(line)
        if mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        elif not fence:
            if heading := _ATX.fullmatch(line):
                return heading[1].strip()
            if previous.strip() and _SETEXT.fullmatch(line):
                return previous.strip()
        previous = "" if fence or mark else line
    return ""


def rst_title(text: str) -> str:
    """The first line that is underlined (and perhaps overlined) at its full length."""
    lines = text.splitlines()
    for title, under in pairwise(lines):
        name = title.strip()
        adorned = _ADORNMENT.fullmatch(under) and not _ADORNMENT.fullmatch(title)
        if name and adorned and len(under.rstrip()) >= len(title.rstrip()):
            return name
    return ""


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].strip()
    return text
