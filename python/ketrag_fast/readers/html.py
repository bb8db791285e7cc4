"""Web pages: the main text without navigation, heading locators, table rows as lines, links as metadata.

resiliparse extracts the main content as simplified HTML, which this module turns into text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.headings import Heading, sections
from ketrag_fast.readers.html_encoding import decode_html
from ketrag_fast.readers.html_links import links_of
from ketrag_fast.readers.html_plain import plain_text, without_hidden
from ketrag_fast.readers.optional_imports import import_optional
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import BLOCK
from ketrag_fast.readers.xhtml import close_empty_elements
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

LARGEST: Final = 64_000_000
"""Maximum size of a page in bytes: several copies are in memory while it is parsed."""
_LEAST: Final = 250
"""If the main text has fewer characters, the whole page is extracted too."""
_SHARE: Final = 0.3
_DEEPEST: Final = 512
"""The text of a page nested deeper than browsers nest is extracted plainly: for each level resiliparse walks
through all levels below it."""
_MENU: Final = 0.5
"""A list is a menu if more than this share of its characters is in links."""
_PASSED: Final = [
    "#toc",
    ".toc",
    ".widget",
    ".breadcrumb",
    ".breadcrumbs",
    "[class*=cookie]",
    "[id*=cookie]",
    ".navheader",
    ".navfooter",
    ".docnav",
    ".legalnotice",
    *(f".titlepage .{name}" for name in ("author", "authorgroup", "copyright", "revhistory", "releaseinfo")),
    *(f".titlepage .{name}" for name in ("pubdate", "edition", "affiliation", "othercredit")),
]
"""Elements that are not part of the main text; the last ones are navigation and front matter of DocBook."""
_TAG = re.compile(r"<(/?)(h[1-6]|p|ul|ol|li|pre|br|a)\b([^<>]*)>")
_NESTING = re.compile(
    r"<(/?)(?!(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)[\s/>])[a-z]"
)
_OTHER_TAGS = re.compile(r"<(?!/?(?:ul|a)[\s>])[^<>]*>")
_LIST_TAGS = re.compile(r"<(/?)(ul|a)(?=[\s>])[^<>]*>")
_GAP = re.compile(r"[ \t]+")
_BLANK = re.compile(r"[ \xa0]+")
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
    page = page_of(data, file.fallback_encoding)
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


def page_of(data: bytes | str, fallback: str = "cp1252", *, whole: bool = False) -> Page:
    """Return the main text of a page, or all of its text if `whole` is set."""
    tree_of = import_optional("resiliparse.parse.html", "a web page").HTMLTree.parse
    markup = decode_html(data, fallback) if isinstance(data, bytes) else data
    try:
        tree = tree_of(close_empty_elements(markup))
    except ValueError as error:
        raise DocumentError(f"not usable as HTML: {error}") from None
    metadata, title = _about(tree)
    visible = without_hidden(tree.body.html) if tree.body is not None else ""
    if links := links_of(visible):
        metadata["links"] = links
    if _depth(visible) > _DEEPEST:
        return Page(plain_text(visible), title, metadata)
    _keep_lists(tree, visible)
    text, headings = _text(_minimal(tree, main=not whole))
    if not whole and len(text) < _LEAST:
        other = _text(_minimal(tree, main=False))
        if len(text) < _SHARE * len(other[0]):
            text, headings = other
    if headings and (_is_title(headings, text) if not title else _same_beginning(title, headings[0].name)):
        title = headings[0].name
    return Page(text, title, metadata, sections(headings, len(text), title), headings)


def _depth(markup: str) -> int:
    """Return how deep the elements of serialised HTML are nested."""
    steps = (-1 if closing else 1 for closing in _NESTING.findall(markup))
    return max(accumulate(steps), default=0)


def _keep_lists(tree: Any, markup: str) -> None:
    """Make bulleted lists numbered unless they are mostly links: resiliparse drops them as menus.

    `markup` is the body without hidden elements. Collections are sliced, because resiliparse collects them
    again for each step of an iteration.
    """
    body = tree.body
    lists = body.get_elements_by_tag_name("ul")[:] if body is not None else ()
    if not lists:
        return
    menus = _menus(markup)
    if len(menus) != len(lists):  # the markup has names that its serialisation does not escape
        menus = [False] * len(lists)
    for found, menu in zip(lists, menus, strict=True):
        parent = found.parent_node
        if menu or parent is None:
            continue
        numbered = tree.create_element("ol")
        while (child := found.first_child) is not None:
            numbered.append_child(child)
        parent.replace_child(numbered, found)


def _menus(markup: str) -> list[bool]:
    """Return for each bulleted list of serialised HTML, in order, whether it is empty or a menu.

    One pass: `read` and `linked` count the characters so far, and a list takes the differences.
    """
    plain = _OTHER_TAGS.sub("", markup)
    for entity, character in (("&nbsp;", " "), ("&lt;", " "), ("&gt;", " "), ("&amp;", " ")):
        plain = plain.replace(entity, character)
    menus: list[bool] = []
    lists: list[tuple[int, int, int]] = []
    links: list[int] = []
    read = linked = at = 0
    for tag in _LIST_TAGS.finditer(plain):
        read += tag.start() - at
        at = tag.end()
        closing, name = tag[1], tag[2]
        if name == "ul" and not closing:
            lists.append((len(menus), read, linked))
            menus.append(True)
        elif name == "ul" and lists:
            number, read_before, linked_before = lists.pop()
            menus[number] = linked - linked_before > _MENU * (read - read_before) or read == read_before
        elif name == "a" and not closing:
            links.append(read)
        elif links:
            linked += read - links.pop()
    return menus


def _minimal(tree: Any, *, main: bool) -> str:
    extract = import_optional("resiliparse.extract.html2text", "a web page").extract_plain_text
    markup: str = extract(
        tree,
        preserve_formatting="minimal_html",
        main_content=main,
        links=True,
        alt_texts=False,
        comments=False,
        list_bullets=False,
        skip_elements=_PASSED if main else [],
    )
    return markup


def _about(tree: Any) -> tuple[dict[str, Any], str]:
    metadata: dict[str, Any] = {}
    title = " ".join((tree.title or "").split())
    head = tree.head
    metas = head.query_selector_all("meta")[:] if head is not None else ()  # sliced: see `_keep_lists`
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


def _is_title(headings: list[Heading], text: str) -> bool:
    """Return whether the first heading is that of the page, not of its first section."""
    first = headings[0]
    return not text[: first.start].strip() or all(one.level > first.level for one in headings[1:])


def _cell_gap(found: re.Match[str]) -> str:
    return "\t" if "\t" in found[0] else found[0]


def _text(markup: str) -> tuple[str, list[Heading]]:
    """Return text and headings of the simplified HTML."""
    out = _Writer()
    headings: list[Heading] = []
    begun: int | None = None
    verbatim = False
    at = 0
    for tag in _TAG.finditer(markup):
        out.add(html.unescape(markup[at : tag.start()]), verbatim)
        at = tag.end()
        closing, name = tag[1] == "/", tag[2]
        if name == "a":
            continue
        if name == "br" or name == "li":
            out.line()
        elif name == "pre":
            out.paragraph()
            verbatim = not closing
        elif name[0] == "h":
            out.paragraph()
            if closing and begun is not None:
                heading = out.since(begun).strip()
                if heading:
                    headings.append(Heading(begun, int(name[1]), heading))
                begun = None
            elif not closing:
                begun = out.settle()
        else:
            out.paragraph()
    out.add(html.unescape(markup[at:]), verbatim)
    text = out.text()
    return text, [heading for heading in headings if heading.start < len(text)]


class _Writer:
    """Collects lines and paragraphs. Collapses blanks except in verbatim text; repeats the header of a long
    table.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._breaks = 0
        self._blank = ""  # the gap before the next text on the line
        self._line = 0  # start of the current line
        self._verbatim = False
        self._header: str | None = None  # of the table that the previous line belongs to
        self._table = 0

    def add(self, text: str, verbatim: bool) -> None:
        for number, line in enumerate(text.split("\n")):
            if number:
                self.line() if not verbatim else self._raise()
            if verbatim:
                if plain := line.rstrip():
                    self.settle()
                    self._verbatim = True
                    self._put(plain)
                continue
            spaced = _BLANK.sub(" ", _GAP.sub(_cell_gap, line) if "\t" in line else line)
            plain = spaced.strip(" \t")
            if not plain:
                self._between(spaced)
                continue
            self._between(spaced[: len(spaced) - len(spaced.lstrip(" \t"))])
            blank = "" if self._breaks else self._blank
            self.settle()
            self._put((blank if self._length > self._line else "") + plain)
            self._blank = ""
            self._between(spaced[len(spaced.rstrip(" \t")) :])

    def _between(self, blanks: str) -> None:
        if blanks:
            self._blank = "\t" if "\t" in blanks or self._blank == "\t" else " "

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def _raise(self) -> None:
        self._breaks = min(self._breaks + 1, 2)

    def line(self) -> None:
        self._breaks = max(self._breaks, 1)

    def paragraph(self) -> None:
        self._breaks = 2

    def settle(self) -> int:
        """Write pending line breaks and return the offset of the next text."""
        if self._breaks and self._parts:
            self._end_of_line()
            self._put("\n" * self._breaks)
            self._line = self._length
            self._blank = ""
            self._verbatim = False
        self._breaks = 0
        return self._length

    def _end_of_line(self) -> None:
        """Track whether the line was a table row, and repeat the header if the table is long."""
        text = self.since(self._line)
        if "\t" not in text or self._verbatim:
            self._header = None
        elif self._header is None:
            self._header = "" if any(map(str.isdigit, text)) or len(text) > BLOCK // 3 else text
            self._table = self._line
        elif self._header and self._breaks == 1 and self._length - self._table > BLOCK:
            self._put("\n\n")
            self._table = self._length
            self._put(self._header)
        if self._breaks > 1:
            self._header = None

    def since(self, start: int) -> str:
        """Return the text written from offset `start` on."""
        found, length = [], self._length
        for part in reversed(self._parts):
            if length <= start:
                break
            found.append(part)
            length -= len(part)
        return "".join(reversed(found))

    def text(self) -> str:
        return "".join(self._parts).rstrip()
