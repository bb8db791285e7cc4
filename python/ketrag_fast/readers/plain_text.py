"""Plain text, Markdown, reStructuredText: one document per file, with heading locators.

The text is unchanged, except that front matter becomes metadata.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import Heading, sections, without_closing
from ketrag_fast.records import replace
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator, sort_locators

_HEAD = 20_000  # headings further down are not the title
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*")
_FIELD = re.compile(r":([A-Za-z][\w -]{0,40}):[ \t]+(\S.*)")
_DIRECTIVE = re.compile(r"^\.\. (?:code-block|code|sourcecode)::[^\n]*\n(?:[ \t]+[^\n]*\n?|\n)+", re.M)
_MOST_HEADINGS = 100_000

About = tuple[str, dict[str, Any], list[Locator]]
"""Title, metadata and locators of a text."""


def read_plain(file: SourceFile) -> Iterator[Item]:
    """Yield a .txt file as a document with the name of the file as its title."""
    return read_text(file, lambda _: ("", {}, []))


def read_markdown(file: SourceFile) -> Iterator[Item]:
    """Yield a .md file without its front matter.

    The title is from this, else its first heading if that is of level one, else the name of the file.
    """
    for item in read_text(file, about_markdown):
        yield without_front_matter(item) if isinstance(item, Document) else item


def read_whole_markdown(file: SourceFile) -> Iterator[Item]:
    """Yield a .md file of a repository, whose front matter is metadata and stays in the text."""
    return read_text(file, about_markdown)


def without_front_matter(document: Document) -> Document:
    """Return a document without its front matter, if all of this is metadata and text follows."""
    found = front_matter(document.text)
    text = document.text[found.end :].lstrip("\r\n")
    if not found.is_whole or not text or text.isspace():
        return document
    cut = len(document.text) - len(text)
    lines = document.text.count("\n", 0, cut)
    locators = tuple(
        replace(
            one,
            start=max(one.start - cut, 0),
            end=one.end - cut,
            value=one.value + lines if one.kind == "lines" else one.value,
        )
        for one in document.locators
    )
    return replace(document, text=text, locators=locators)


def read_rst(file: SourceFile) -> Iterator[Item]:
    """Yield a .rst file. The title is its first heading; a field list below it is metadata."""
    return read_text(file, about_rst)


def read_text(file: SourceFile, about: Callable[[str], About]) -> Iterator[Item]:
    """Yield a text file as one document with what `about` returns for its text.

    Without a title it has the name of the file, which is how people call a note.
    """
    data = file.read_bytes()
    if not data:
        yield file.failure("the file is empty")
        return
    text = file.text(data)
    if text.isspace() or not text:
        yield file.failure("the file has only white space")
        return
    title, metadata, locators = about(text)
    lines = Locator(0, len(text), "lines", 1)
    title = title or PurePosixPath(file.id).stem
    yield Document(file.id, text, title, metadata, sort_locators([*locators, lines]))


def about_markdown(text: str) -> About:
    """Return title, front matter and heading locators of a Markdown text."""
    metadata, start, _ = front_matter(text)
    headings = list(markdown_headings(text, start))
    named = next((value for name, value in metadata.items() if name.lower() == "title"), "")
    title = str(named).strip() or next((h.name for h in headings[:1] if h.level == 1 and h.start < _HEAD), "")
    rest = {name: value for name, value in metadata.items() if name.lower() != "title"}
    return title, rest, [Locator(0, len(text), "markdown", 0), *sections(headings, len(text), title)]


def markdown_headings(text: str, start: int = 0) -> Iterator[Heading]:
    """Yield the headings outside code blocks, in order."""
    fence = ""
    previous, before = "", start
    found = 0
    at = start
    for line in text[start:].splitlines(keepends=True):
        begin = line[:4].lstrip(" ")[:1]
        mark = _FENCE.match(line) if begin in ("`", "~") else None
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence:
            if begin == "#" and (heading := _ATX.match(line)):
                if name := without_closing(line[heading.end() :].strip()):
                    yield Heading(at, len(heading[1]), name)
                    found += 1
            elif begin in ("=", "-") and previous.strip() and _SETEXT.fullmatch(line.rstrip()):
                yield Heading(before, 1 if "=" in line else 2, previous.strip())
                found += 1
            if found >= _MOST_HEADINGS:
                return
        previous, before = ("" if fence or mark else line), at
        at += len(line)


def about_rst(text: str) -> About:
    """Return the first heading, the fields below it, and heading locators of a reStructuredText."""
    headings = list(rst_headings(text))
    title = headings[0].name if headings and headings[0].start < _HEAD else ""
    metadata: dict[str, Any] = {}
    begin = headings[0].start if headings and not text[: headings[0].start].strip() else 0
    for number, (line, _) in enumerate(_lines(text, begin)):
        field = _FIELD.fullmatch(line.rstrip())
        if field is not None:
            metadata[field[1].strip().lower()] = field[2].strip()
        elif metadata or number > 5:
            break
    code = [
        Locator(found.start(), found.start() + len(found[0].rstrip()), "code", 1)
        for found in _DIRECTIVE.finditer(text)
    ]
    return title, metadata, [*code, *sections(headings, len(text), title)]


def rst_headings(text: str) -> Iterator[Heading]:
    """Yield lines underlined at full length. The first style to appear has the highest level."""
    levels: dict[str, int] = {}
    title, start = "", 0
    over, over_start = "", 0
    for line, at in _lines(text, 0):
        name = title.strip()
        adorned = line[:1] and not line[0].isalnum() and _ADORNMENT.fullmatch(line)
        if name and adorned and len(line.rstrip()) >= len(title.rstrip()) and not _ADORNMENT.fullmatch(title):
            lined = over.rstrip() == line.rstrip()
            level = levels.setdefault(line[0] * 2 if lined else line[0], len(levels) + 1)
            yield Heading(over_start if lined else start, level, name)
            title = over = ""
            start = at
            if len(levels) > _MOST_HEADINGS:
                return
            continue
        over, over_start = title, start
        title, start = line, at


def _lines(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Yield each line without its line end, and its offset."""
    at = start
    for line in text[start:].splitlines(keepends=True):
        yield line.rstrip("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), at
        at += len(line)


_NAME = re.compile(r"([A-Za-z_][\w .-]{0,60}?)[ \t]*:(?:[ \t]+([^ \t\n].*)?)?")
_ITEM = re.compile(r"[ \t]*-[ \t]+([^ \t\n].*)")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{1,15})?")
_MOST = 20_000
_PLAIN = {"true": True, "false": False, "null": None, "~": None, "": None}


class FrontMatter(NamedTuple):
    """Metadata, the offset of the text after them, and whether they are all that is between the marks."""

    metadata: dict[str, Any]
    end: int
    is_whole: bool


def front_matter(text: str) -> FrontMatter:
    """Return the front matter; ({}, 0, False) if there is none."""
    mark = text[:3]
    if mark not in ("---", "+++") or text[3:].split("\n", 1)[0].strip():
        return FrontMatter({}, 0, False)
    lines = text[:_MOST].splitlines(keepends=True)
    ends = ("---", "...") if mark == "---" else ("+++",)
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in ends:
            body = lines[1:number]
            end = sum(map(len, lines[: number + 1]))
            metadata, is_whole = _toml("".join(body)) if mark == "+++" else _yaml(body)
            return FrontMatter(metadata, end, is_whole)
    return FrontMatter({}, 0, False)


def _toml(body: str) -> tuple[dict[str, Any], bool]:
    import tomllib  # few files have such front matter

    try:
        found = {name: _json(value) for name, value in tomllib.loads(body).items()}
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}, False
    return found, bool(found)


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_json(inner) for inner in value]
    if isinstance(value, float) and value != value:
        return None
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else value


def _yaml(lines: list[str]) -> tuple[dict[str, Any], bool]:
    """Return the values, and whether every line belongs to one of them."""
    found: dict[str, Any] = {}
    name, is_whole = "", True
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item = _ITEM.fullmatch(line.rstrip())
        if item is not None and name:
            held = found[name]
            found[name] = [*(held if isinstance(held, list) else []), _value(item[1])]
            continue
        entry = _NAME.fullmatch(line.rstrip())
        if entry is not None and not line[0].isspace():
            name = entry[1]
            found[name] = _value(entry[2] or "")
        elif name and (isinstance(found[name], str) or (found[name] is None and line[0].isspace())):
            found[name] = f"{found[name] or ''} {line.strip()}".strip()  # a string continues below
        else:
            is_whole = False
    found = {key: value for key, value in found.items() if value is not None}
    return found, is_whole and bool(found)


def _value(text: str) -> Any:
    plain = text.strip()
    if len(plain) >= 2 and plain[0] == plain[-1] and plain[0] in "\"'":
        return plain[1:-1].strip()
    if plain.startswith("[") and plain.endswith("]"):
        return [_value(part) for part in plain[1:-1].split(",") if part.strip()]
    if plain.lower() in _PLAIN:
        return _PLAIN[plain.lower()]
    if _NUMBER.fullmatch(plain):
        return float(plain) if "." in plain else int(plain)
    return "" if plain in ("|", ">", "|-", ">-") else plain
