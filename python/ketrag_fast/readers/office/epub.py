"""EPUB: the chapters of a book in the order of its spine."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from ketrag_fast.base.safe_xml import Handler
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.html import page_of
from ketrag_fast.readers.office.embedded import unread_parts
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import Heading, sections
from ketrag_fast.readers.zip_xml import Package, core_properties, open_package
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

_PAGES = ("application/xhtml+xml", "text/html")
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".avif")


def read_epub(file: SourceFile) -> Iterator[Item]:
    """Yield a book as one document with a locator per chapter, and failures for unreadable chapters."""
    parts: list[str] = []
    locators: list[Locator] = []
    headings: list[Heading] = []
    broken: list[str] = []
    unread: list[str] = []
    length = 0
    with open_package(file) as package:
        main = _main(package)
        metadata, title = core_properties(package, main)
        for path, kind in _spine(package, main):
            if path not in package:
                broken.append(f"{path}: the chapter is missing in the book")
                continue
            if kind not in _PAGES:
                unread.append(path)
                continue
            try:
                page = page_of(package.bytes(path), whole=True)
            except DocumentError as error:
                broken.append(f"{path}: {error}")
                continue
            if not page.text:
                continue
            if parts:
                parts.append("\n\n")
                length += 2
            start = length
            parts.append(page.text)
            length += len(page.text)
            locators.append(Locator(start, length, "part", path))
            headings += [Heading(start + one.start, one.level, one.name) for one in page.headings]
        pictures = [("picture", path) for path in package.names if path.lower().endswith(_PICTURES)]
    text = "".join(parts)
    if text:
        locators += sections(headings, len(text), title)
        yield Document(file.id, text, title, metadata, tuple(locators))
    elif not broken:
        yield file.failure("the book has no text")
    yield from unread_parts(file, pictures)
    for path in unread:
        yield file.member(path, b"").unread("a picture or another page without text")
    for why in broken:
        yield file.failure(why)


class _Container(Handler):
    def __init__(self) -> None:
        self.path = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "rootfile" and not self.path:
            self.path = attributes.get("full-path", "")


def _main(package: Package) -> str:
    if "META-INF/rights.xml" in package:
        raise DocumentError("the book has copy protection (DRM): its text is encrypted")
    container = _Container()
    package.xml("META-INF/container.xml", container)
    return container.path


class _Opf(Handler):
    def __init__(self) -> None:
        self.items: dict[str, tuple[str, str]] = {}
        self.order: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "item" and "nav" not in attributes.get("properties", "").split():
            self.items[attributes.get("id", "")] = (
                attributes.get("href", ""),
                attributes.get("media-type", ""),
            )
        elif name == "itemref":
            self.order.append(attributes.get("idref", ""))


def _spine(package: Package, main: str) -> Iterator[tuple[str, str]]:
    """Yield path and media type of the chapters in order."""
    opf = _Opf()
    package.xml(main, opf)
    folder = posixpath.dirname(main)
    for name in dict.fromkeys(opf.order):
        if name not in opf.items:
            continue
        href, kind = opf.items[name]
        path = posixpath.normpath(posixpath.join(folder, unquote(href.partition("#")[0])))
        yield path, kind
