"""The text of a web page without its structure, for pages that take too long to parse.

Every step takes linear time for any input.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

from ketrag_fast.readers.html_encoding import decode_html
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.types import Document

_HIDDEN: Final = re.compile(
    r"<(?:(!--)|(script|style|template|iframe|noembed|noframes|xmp)(?=[\s/>]))", re.IGNORECASE
)
"""Elements whose content is not text of the page."""
_CLOSING: Final = re.compile(r"</(script|style|template|iframe|noembed|noframes|xmp)", re.IGNORECASE)
_BLOCKS: Final = re.compile(
    r"</?(?:address|article|aside|blockquote|body|center|dd|details|div|dl|dt|fieldset|figcaption|figure|footer"
    r"|form|h[1-6]|head|header|hr|html|main|nav|ol|p|pre|section|summary|table|title|ul)(?=[\s/>])[^<>]*>",
    re.IGNORECASE,
)
_LINES: Final = re.compile(r"<(?:br|li|option|tr)(?=[\s/>])[^<>]*>", re.IGNORECASE)
_CELLS: Final = re.compile(r"<t[dh](?=[\s/>])[^<>]*>", re.IGNORECASE)
_TAGS: Final = re.compile(r"<[a-zA-Z/!?][^<>]*>")
_SPACES: Final = re.compile(r"[^\S\n\t]+")
_TITLE: Final = re.compile(r"<title(?=[\s>])[^<>]*>([^<]*)", re.IGNORECASE)


def read_html_plain(file: SourceFile) -> Iterator[Item]:
    """Yield the page as one document without locators."""
    found = decode_html(file.read_bytes(), file.fallback_encoding)
    file.assumed.note(found)
    markup = found.text
    text = plain_text(markup)
    if text:
        yield Document(file.id, text, title_of(markup))


def plain_text(markup: str) -> str:
    """Return the text of HTML: a paragraph for each block, a line for each list item and table row."""
    visible = without_hidden(markup).replace("\r", " ").replace("\n", " ").replace("\t", " ")
    for tags, space in ((_BLOCKS, "\n\n"), (_LINES, "\n"), (_CELLS, "\t"), (_TAGS, "")):
        visible = tags.sub(space, visible)
    lines: list[str] = []
    for line in _SPACES.sub(" ", html.unescape(visible)).split("\n"):
        plain = line.strip()
        if plain or (lines and lines[-1]):
            lines.append(plain)
    return "\n".join(lines).rstrip("\n")


def title_of(markup: str) -> str:
    """Return the content of the first `title` element, or ""."""
    found = _TITLE.search(markup)
    return " ".join(html.unescape(found[1]).split()) if found is not None else ""


def without_hidden(markup: str) -> str:
    """Return HTML without comments, scripts and the like. One without an end reaches to the end."""
    parts: list[str] = []
    at = 0
    while (found := _HIDDEN.search(markup, at)) is not None:
        parts.append(markup[at : found.start()])
        if found[1]:
            end = markup.find("-->", found.end())
            at = len(markup) if end < 0 else end + len("-->")
        else:
            closings = _CLOSING.finditer(markup, found.end())
            own = (one.start() for one in closings if one[1].lower() == found[2].lower())
            at = next(own, len(markup))
    parts.append(markup[at:])
    return "".join(parts)
