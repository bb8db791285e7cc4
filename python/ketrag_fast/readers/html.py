"""Web pages: the main text without navigation, heading locators, table rows as lines, links as metadata.

resiliparse parses the page and repairs its markup; the crate ketrag-web finds the main text in the
serialised body.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any, Final

from ketrag_fast._core import limit_markup, web_page
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.decode import decode_html
from ketrag_fast.readers.protocol import Item, SourceFile, import_optional
from ketrag_fast.readers.text_builder import Heading, sections
from ketrag_fast.records import dataclass, field
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

LARGEST: Final = 64_000_000
"""Maximum size of a page in bytes: several copies are in memory while it is parsed."""
VERSION: Final = 7
"""Version of the crate ketrag-web: increase it when its text changes, so that files are read again."""
_NAMES: Final = {
    "author": "author",
    "description": "description",
    "date": "date",
    "article:published_time": "date",
    "dc.date": "date",
    "keywords": "keywords",
}


def read_html(file: SourceFile) -> Iterator[Item]:
    """Yield the page as one document."""
    if file.size() > LARGEST:
        yield file.failure(f"the page is larger than {LARGEST:,} bytes")
        return
    data = file.read_bytes()
    if not data.strip():
        yield file.failure("the file is empty")
        return
    found = decode_html(data, file.fallback_encoding)
    file.assumed.note(found)
    page = page_of(found.text)
    if not page.text:
        yield file.failure("the page has no text")
        return
    yield Document(file.id, page.text, page.title, page.metadata, tuple(page.locators))


@dataclass(slots=True)
class Page:
    """The text of a page."""

    text: str
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    locators: list[Locator] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)


def page_of(data: bytes | str, *, whole: bool = False) -> Page:
    """Return the main text of a page, or all of its text that is not hidden if `whole` is set."""
    tree_of = import_optional("resiliparse.parse.html", "a web page").HTMLTree.parse
    markup = decode_html(data).text if isinstance(data, bytes) else data
    try:
        tree = tree_of(limit_markup(close_empty_elements(markup)))
    except ValueError as error:
        raise DocumentError(f"not usable as HTML: {error}") from None
    metadata, title = _about(tree)
    text, found, listings, links, banner = web_page(
        tree.body.html if tree.body is not None else "", whole=whole
    )
    if links:
        metadata["links"] = links
    headings = [Heading(*one) for one in found]
    if headings and (_is_title(headings, text) if not title else _same_beginning(title, headings[0].name)):
        title = headings[0].name
    if banner and not _is_part(banner, title):
        title = f"{title} - {banner}" if title else banner
    code = [Locator(start, end, "code", 0) for start, end in listings]
    return Page(text, title, metadata, [*code, *sections(headings, len(text), title)], headings)


def _about(tree: Any) -> tuple[dict[str, Any], str]:
    """Return metadata and title. The collection is sliced: resiliparse collects it again for each step."""
    metadata: dict[str, Any] = {}
    title = " ".join((tree.title or "").split())
    head = tree.head
    metas = head.query_selector_all("meta")[:] if head is not None else ()
    for meta in metas:
        name = (meta.getattr("name", "") or meta.getattr("property", "") or "").lower()
        value = " ".join((meta.getattr("content", "") or "").split())[:1000]
        if name in _NAMES and value:
            metadata.setdefault(_NAMES[name], value)
    root = tree.document.query_selector("html") if tree.document is not None else None
    language = root.getattr("lang", "") if root is not None else ""
    if language:
        metadata["lang"] = language[:40]
    return metadata, title


def _same_beginning(title: str, heading: str) -> bool:
    """Return whether a title such as `Title - Site` begins with the heading `Title`."""
    plain = " ".join(heading.split())
    return bool(plain) and title.lower().startswith(plain.lower())


def _is_part(banner: str, title: str) -> bool:
    """Return whether the title has at least half of the words of a banner."""
    words = set(title.casefold().split())
    own = banner.casefold().split()
    return 2 * sum(word in words for word in own) >= len(own)


def _is_title(headings: list[Heading], text: str) -> bool:
    """Return whether the first heading is that of the page, not of its first section."""
    first = headings[0]
    return not text[: first.start].strip() or all(one.level > first.level for one in headings[1:])


_HEAD: Final = 2_000
_SIGNS: Final = ("<?xml", "xhtml")
"""Marks of XML in the first lines of a page."""
_EMPTY: Final = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)((?:\s[^<>]*)?)/>")
_VOID: Final = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source"),
        *("track", "wbr", "script", "style", "textarea"),
    )
)
"""Elements without an end tag in HTML, and elements whose content is not markup."""


def close_empty_elements(markup: str) -> str:
    """Return a page written as XML with an end for each empty element; any other page as it is."""
    head = markup[:_HEAD].lower()
    if "/>" not in markup or not any(sign in head for sign in _SIGNS):
        return markup
    return _EMPTY.sub(_closed, markup)


def _closed(found: re.Match[str]) -> str:
    name = found[1]
    return found[0] if name.lower() in _VOID else f"<{name}{found[2]}></{name}>"


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
