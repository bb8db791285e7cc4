"""Feeds (RSS, Atom), outlines (OPML) and exported notes (ENEX): each entry or note is a document."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from html import escape
from typing import Any, Final

from ketrag_fast.base.safe_xml import Handler, steps
from ketrag_fast.errors import BackendMissing, DocumentError
from ketrag_fast.readers import items_of, known_kind
from ketrag_fast.readers.archives import DEEPEST
from ketrag_fast.readers.html import page_of, plain_text
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import TextWriter
from ketrag_fast.types import Document

LARGEST: Final = 200_000_000
"""Maximum size of a file in bytes."""
_PIECE: Final = 1 << 18
_ENTRIES: Final = ("item", "entry", "note")
_BODIES: Final = ("encoded", "content", "description", "summary")
"""Elements with the text of an entry; the first of them that has text is read."""
_FIELDS: Final = {
    "pubDate": "date",
    "published": "date",
    "updated": "date",
    "date": "date",
    "created": "date",
    "creator": "author",
    "name": "author",
    "author": "author",
    "link": "url",
    "source-url": "url",
}


def read_feed(file: SourceFile) -> Iterator[Item]:
    """Yield the entries of a feed, or the notes and attachments of an export of Evernote."""
    feed = _Feed()
    number = 0
    for _ in _steps(file, feed):
        entries, feed.entries = feed.entries, []
        for entry in entries:
            number += 1
            yield from _items(file, number, entry, feed.title)
    if not number:
        yield file.failure("the feed has no entries")


def read_outline(file: SourceFile) -> Iterator[Item]:
    """Yield an outline as one document: a line for each entry, in order."""
    outline = _Outline()
    for _ in _steps(file, outline):
        pass
    if not outline.writer.text():
        yield file.failure("the outline has no entries")
        return
    yield outline.writer.document(file, outline.title, {})


def _steps(file: SourceFile, handler: Handler) -> Iterator[None]:
    if file.size() > LARGEST:
        raise DocumentError(f"the file is larger than {LARGEST:,} bytes")
    with file.open() as stream:
        yield from steps(iter(lambda: stream.read(_PIECE), b""), handler, "the file")


class _Entry:
    def __init__(self) -> None:
        self.title = ""
        self.fields: dict[str, str] = {}
        self.tags: list[str] = []
        self.bodies: dict[str, str] = {}
        self.files: list[dict[str, str]] = []


class _Feed(Handler):
    """Collects the entries. Elements inside the text of an entry are kept as markup."""

    def __init__(self) -> None:
        self.title = ""
        self.entries: list[_Entry] = []
        self._entry: _Entry | None = None
        self._path: list[str] = []
        self._markup = 0  # open elements inside the text of an entry
        self._parts: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._markup or (self._entry and self._path and self._path[-1] in _BODIES):
            self._markup += 1
            self._parts.append(f"<{name}>")
            return
        self._path.append(name)
        self._parts = []
        if name in _ENTRIES and self._entry is None:
            self._entry = _Entry()
        elif self._entry is not None and name == "resource":
            self._entry.files.append({})
        elif self._entry is not None and name == "link" and attributes.get("rel", "alternate") == "alternate":
            self._entry.fields.setdefault("url", attributes.get("href", ""))
        elif self._entry is not None and name == "category" and attributes.get("term"):
            self._entry.tags.append(attributes["term"])

    def text(self, text: str) -> None:
        self._parts.append(escape(text, quote=False) if self._markup else text)

    def end(self, name: str) -> None:
        if self._markup:
            self._markup -= 1
            self._parts.append(f"</{name}>")
            return
        self._path.pop()
        text = "".join(self._parts).strip()
        self._parts = []
        entry = self._entry
        if entry is None:
            if name == "title" and not self.title:
                self.title = _words(text)
        elif name in _ENTRIES:
            self.entries.append(entry)
            self._entry = None
        elif entry.files and "resource" in self._path:
            entry.files[-1].setdefault(name, text)
        elif name in _BODIES:
            entry.bodies.setdefault(name, text)
        elif name == "title":
            entry.title = entry.title or _words(text)
        elif name in ("category", "tag") and text:
            entry.tags.append(_words(text))
        elif name in _FIELDS and text and not entry.fields.get(_FIELDS[name]):
            entry.fields[_FIELDS[name]] = _words(text)


def _words(text: str) -> str:
    return " ".join(plain_text(text).split())[:1000]


def _items(file: SourceFile, number: int, entry: _Entry, feed: str) -> Iterator[Item]:
    body = next((entry.bodies[name] for name in _BODIES if entry.bodies.get(name)), "")
    metadata: dict[str, Any] = {name: value for name, value in entry.fields.items() if value}
    if "date" in metadata:
        metadata["date"] = _date(metadata["date"])
    if entry.tags:
        metadata["tags"] = entry.tags
    if feed:
        metadata["feed"] = feed
    names = [one.get("file-name") or f"attachment-{place}" for place, one in enumerate(entry.files, 1)]
    if names:
        metadata["attachments"] = names
    text = _text(body)
    if text or entry.title:
        yield Document(f"{file.id}#{number}", text, entry.title, metadata)
    for name, one in zip(names, entry.files, strict=True):
        yield from _attached(file.member(f"{number}/{name.replace('/', '_')}", _bytes(one.get("data", ""))))


def _text(markup: str) -> str:
    if "<" not in markup:
        return plain_text(markup)
    try:
        return page_of(markup, whole=True).text
    except BackendMissing:
        return plain_text(markup)


def _bytes(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text)
    except binascii.Error:
        return b""


def _attached(file: SourceFile) -> Iterator[Item]:
    if file.depth > DEEPEST:
        yield file.failure(f"attachments are nested more than {DEEPEST} levels deep")
        return
    try:
        kind = known_kind(file)
    except DocumentError as error:
        yield file.failure(str(error))
        return
    if kind is None:
        yield file.unread()
    else:
        yield from items_of(file, kind)


_DATES: Final[tuple[Callable[[str], str], ...]] = (
    lambda text: parsedate_to_datetime(text).isoformat(),
    lambda text: f"{text[:4]}-{text[4:6]}-{text[6:8]}" if text[:8].isdigit() else text,
)


def _date(text: str) -> str:
    """Return a date of a feed (RFC 2822, ISO 8601) or of Evernote (`20240305T143000Z`) in ISO 8601."""
    for read in _DATES:
        try:
            return read(text)
        except (ValueError, TypeError):
            continue
    return text


class _Outline(Handler):
    def __init__(self) -> None:
        self.writer = TextWriter()
        self.title = ""
        self._name = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._name = name
        if name == "outline":
            label = attributes.get("text") or attributes.get("title") or ""
            more = (attributes.get(key, "") for key in ("_note", "description", "xmlUrl", "htmlUrl", "url"))
            for line in filter(None, map(plain_text, (label, *more))):
                self.writer.paragraph(line, item=True)

    def text(self, text: str) -> None:
        if self._name == "title":
            self.title = " ".join(f"{self.title}{text}".split())[:300]

    def end(self, name: str) -> None:
        self._name = ""
