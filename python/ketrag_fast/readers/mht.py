"""Saved web pages (MHT): the page of a message whose other parts are its pictures and style sheets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from email import message_from_bytes
from email.message import EmailMessage, Message
from typing import Any, Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.decode import decode_html
from ketrag_fast.readers.html import page_of
from ketrag_fast.readers.mail_headers import POLICY
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.types import Document

LARGEST_PAGE: Final = 100_000_000
"""Maximum size of a file in bytes."""
_MOST_PARTS: Final = 10_000
_ADDRESSES: Final = ("Snapshot-Content-Location", "Content-Location")


def read_mht(file: SourceFile) -> Iterator[Item]:
    """Yield the page as one document, with its address as metadata."""
    if file.size() > LARGEST_PAGE:
        raise DocumentError(f"the file is larger than {LARGEST_PAGE:,} bytes")
    try:
        message = message_from_bytes(file.read_bytes(), _class=EmailMessage, policy=POLICY)
        parts = [part for part, _ in zip(message.walk(), range(_MOST_PARTS), strict=False)]
        main = _main_part(message, parts)
        data = main.get_payload(decode=True) if main is not None else None
        charset = main.get_content_charset() if main is not None else None
    except Exception as error:  # noqa: BLE001 - the standard parser may raise anything
        raise DocumentError(f"not usable as a saved page: {error!r:.200}") from None
    if not isinstance(data, bytes) or main is None:
        raise DocumentError("not a saved page: no part of it is HTML")
    found = decode_html(data, file.fallback_encoding, charset)
    file.assumed.note(found)
    page = page_of(found.text)
    if not page.text:
        yield file.failure("the page has no text")
        return
    metadata: dict[str, Any] = dict(page.metadata)
    address = (
        _header(message, _ADDRESSES[0]) or _header(main, _ADDRESSES[1]) or _header(message, _ADDRESSES[1])
    )
    if address.startswith(("http:", "https:")):
        metadata["url"] = address
    yield Document(
        file.id, page.text, page.title or _header(message, "Subject"), metadata, tuple(page.locators)
    )


def _main_part(message: Message, parts: Sequence[Message]) -> Message | None:
    """Return the part with the page: the one that the header names, else the first with HTML."""
    pages = [part for part in parts if part.get_content_type() in ("text/html", "application/xhtml+xml")]
    start = message.get_param("start")
    named = [part for part in pages if start and _header(part, "Content-ID") == start]
    return next(iter(named or pages), None)


def _header(part: Message, name: str) -> str:
    try:
        return " ".join(str(part.get(name, "")).split())[:2000].encode("utf-8", "replace").decode()
    except Exception:  # noqa: BLE001 - a damaged header
        return ""
