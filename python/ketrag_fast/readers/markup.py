r"""AsciiDoc, LaTeX and Org: one document per file, text unchanged, with title and heading locators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ketrag_fast.readers.plain_text import About, read_text
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import Heading, sections
from ketrag_fast.types.locations import Locator

_ASCIIDOC: Final = re.compile(r"^(={1,6})[ \t](\S[^\n]*)$", re.M)
_LISTING: Final = re.compile(r"^(-{4}|\.{4}|/{4})[ \t]*$", re.M)
_ORG: Final = re.compile(r"^(\*{1,8})[ \t](\S[^\n]*)$", re.M)
_ORG_TITLE: Final = re.compile(r"^#\+title:([^\n]*)$", re.M | re.I)
_TEX: Final = re.compile(
    r"^\\(part|chapter|section|subsection|subsubsection|paragraph)\*?\{([^\n]{1,300})$", re.M
)
_TEX_TITLE: Final = re.compile(r"\\title\{([^{}]{1,500})\}")
_TEX_COMMAND: Final = re.compile(r"\\(?:label\{[^{}\n]{0,200}\}|[a-zA-Z]{1,40}\*?)|[{}$~]")
_BLOCKS: Final = (
    re.compile(r"^[ \t]*#\+begin_(src|example)\b[^\n]*$", re.M | re.I),
    re.compile(r"^[ \t]*\\begin\{(verbatim|lstlisting|minted)\}[^\n]*$", re.M),
)
"""Lines that begin code, in Org and LaTeX."""
_ENDS: Final = ("#+end_{}", "\\end{{{}}}")
_LEVELS: Final = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")


def read_asciidoc(file: SourceFile) -> Iterator[Item]:
    """Yield an .adoc file. Its title is the heading with one `=`."""
    return read_text(file, about_asciidoc)


def read_org(file: SourceFile) -> Iterator[Item]:
    """Yield an .org file. Its title is `#+TITLE:`."""
    return read_text(file, about_org)


def read_tex(file: SourceFile) -> Iterator[Item]:
    r"""Yield a .tex file. Its title is the argument of `\title`."""
    return read_text(file, about_tex)


def about_asciidoc(text: str) -> About:
    """Return title and headings of AsciiDoc, without lines in listings."""
    fences = [(found.start(), found[1]) for found in _LISTING.finditer(text)]
    headings: list[Heading] = []
    at, fence = 0, ""
    for found in _ASCIIDOC.finditer(text):
        while at < len(fences) and fences[at][0] < found.start():
            fence = "" if fence == fences[at][1] else fence or fences[at][1]
            at += 1
        if not fence:
            headings.append(Heading(found.start(), len(found[1]), found[2].strip()))
    title = headings[0].name if headings and headings[0].level == 1 else ""
    return title, {}, [*_listings(text, fences), *sections(headings, len(text), title)]


def _listings(text: str, fences: Sequence[tuple[int, str]]) -> Iterator[Locator]:
    """Yield the code between fences."""
    begin, fence = 0, ""
    for at, mark in fences:
        if not fence:
            begin, fence = at, mark
        elif mark == fence:
            end = text.find("\n", at)
            yield Locator(begin, len(text) if end < 0 else end, "code", 1)
            fence = ""


def _environments(text: str, number: int) -> Iterator[Locator]:
    """Yield the code of Org (0) or LaTeX (1)."""
    end = 0
    lower = text.lower() if number == 0 else text
    for found in _BLOCKS[number].finditer(text):
        if found.start() < end:
            continue
        closing = _ENDS[number].format(found[1].lower())
        at = lower.find(closing, found.end())
        if at < 0 or len(lower) != len(text):
            return
        end = at + len(closing)
        yield Locator(found.start(), end, "code", 1)


def about_org(text: str) -> About:
    """Return title and headings of Org."""
    titled = _ORG_TITLE.search(text)
    code = list(_environments(text, 0))
    headings: list[Heading] = []
    at = 0
    for one in _ORG.finditer(text):
        while at < len(code) and code[at].end <= one.start():
            at += 1
        if at == len(code) or one.start() < code[at].start:
            headings.append(Heading(one.start(), len(one[1]), one[2].strip()))
    title = titled[1].strip() if titled is not None else ""
    return title, {}, [*code, *sections(headings, len(text), title)]


def about_tex(text: str) -> About:
    """Return title and headings of LaTeX."""
    titled = _TEX_TITLE.search(text)
    headings = [
        Heading(one.start(), _LEVELS.index(one[1]) + 1, name)
        for one in _TEX.finditer(text)
        if (name := _words(_argument(one[2])))
    ]
    title = _words(titled[1]) if titled is not None else ""
    return title, {}, [*_environments(text, 1), *sections(headings, len(text), title)]


def _argument(text: str) -> str:
    """Return the text before the brace that closes an argument."""
    depth = 0
    for at, mark in enumerate(text):
        depth += (mark == "{") - (mark == "}")
        if depth < 0:
            return text[:at]
    return text


def _words(argument: str) -> str:
    return " ".join(_TEX_COMMAND.sub(" ", argument).split())
