"""E-mail: the text of a message, its sender and date as metadata, and its attachments.

Long quotations of earlier messages are replaced by a line with their length: those messages are indexed
themselves, and their terms would otherwise count in every reply.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage, Message
from email.utils import parsedate_to_datetime
from typing import Any, Final

from ketrag_fast.errors import BackendMissing, DocumentError
from ketrag_fast.readers import items_of, known_kind, unsure
from ketrag_fast.readers.archives import DEEPEST
from ketrag_fast.readers.decode import Decoded, decode, decode_html
from ketrag_fast.readers.html import page_of
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.text_builder import TextWriter
from ketrag_fast.types import Document
from ketrag_fast.types.documents import ENCODING
from ketrag_fast.types.locations import Locator

LARGEST: Final = 100_000_000
"""Maximum size of a message in bytes."""
MOST_PARTS: Final = 1_000
_ATTACHMENT: Final = "attachment"
"""Kind of the locator of an attachment's documents."""
_QUOTED = re.compile(r"\s*>")
_ORIGINAL = re.compile(r"\s*-{2,}\s*(?:Original Message|Ursprüngliche Nachricht)\s*-{2,}\s*", re.I)
_FORWARDED = re.compile(r"\s*(?:fwd?|wg|tr|rv|doorst|i)\s*:", re.I)
"""Subject prefixes of forwarded messages, whose quoted text is often the only copy."""
_FIRST_LINE = re.compile(rb"From (?:.*[^\d:])?\d?\d:\d\d")
"""The line before each message of a mailbox has an address and a time."""
_SUFFIXES: Final = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/plain": ".txt",
}
"""Name of attachments without a name."""
_FEW: Final = 3
"""Quotations of at most this many lines are kept, because a reply below a quoted question needs it."""


def read_mail(file: SourceFile) -> Iterator[Item]:
    """Yield a message and its attachments."""
    if file.size() > LARGEST:
        raise DocumentError(f"the message is larger than {LARGEST:,} bytes")
    yield from _message(file, file.read_bytes())


def read_mbox(file: SourceFile) -> Iterator[Item]:
    """Yield the messages of a mailbox, with their number in the id."""
    lines: list[bytes] = []
    size = number = 0
    blank = True
    with file.open() as stream:
        for line in stream:
            is_first = blank and line.startswith(b"From ") and (not number or _FIRST_LINE.match(line))
            if is_first and number + bool(lines):
                yield from _message_items(file, number, lines, size)
                lines, size = [], 0
            if is_first:
                number += 1
            else:
                size += len(line)
                if size <= LARGEST:
                    lines.append(line[1:] if line.startswith((b">From ", b">>From ")) else line)
            blank = not line.strip()
    if lines:
        yield from _message_items(file, max(number, 1), lines, size)
    else:
        yield file.failure("the last message is empty" if number else "the file is empty")


def _message_items(file: SourceFile, number: int, lines: list[bytes], size: int) -> Iterator[Item]:
    own = replace(file, id=f"{file.id}:{max(number, 1)}")
    if size > LARGEST:
        yield own.failure(f"the message is larger than {LARGEST:,} bytes")
        return
    try:
        yield from _message(own, b"".join(lines))
    except DocumentError as error:
        yield own.failure(str(error))


def _message(file: SourceFile, data: bytes) -> Iterator[Item]:
    try:
        message = message_from_bytes(data, _class=EmailMessage, policy=policy.default)
    except Exception as error:  # noqa: BLE001 - the standard parser may raise anything
        raise DocumentError(f"not usable as a message: {error!r:.200}") from None
    if not message.keys():
        raise DocumentError("not an e-mail message: it has no header")
    metadata = _about(message)
    title = str(metadata.pop("subject", ""))
    writer = TextWriter()
    attached: list[tuple[str, bytes]] = []
    problems: list[str] = []
    guesses: list[Decoded] = []
    for number, part in enumerate(_parts(message)):
        if number >= MOST_PARTS:
            problems.append(f"the message has more than {MOST_PARTS:,} parts; the rest is skipped")
            break
        try:
            found = _part(part, number, writer, attached, file, is_forward=bool(_FORWARDED.match(title)))
        except DocumentError as error:
            problems.append(f"part {number}: {error}")
        else:
            guesses += [found] if found is not None and found.encoding is not None else []
    names = [name for name, _ in attached]
    if names:
        metadata["attachments"] = names
    if guesses:
        metadata[ENCODING] = guesses[0].encoding
    if writer.text() or title:
        yield writer.document(file, title, metadata)
    elif not attached:
        yield file.failure("the message has no text")
    for why in problems:
        yield file.failure(why)
    for guess in guesses:
        if not guess.is_sure:
            yield unsure(file, str(guess.encoding))
    for name, content in attached:
        inner = file.member(name, content)
        if inner.depth > DEEPEST:
            yield inner.failure(f"attachments are nested more than {DEEPEST} levels deep")
            continue
        try:
            kind = known_kind(inner)
        except DocumentError as error:
            yield inner.failure(str(error))
            continue
        if kind is not None:
            yield from (_attached(item, name) for item in items_of(inner, kind))


def _attached(item: Item, name: str) -> Item:
    """Return an item of an attachment, a document with the name of the attachment in its location."""
    if not isinstance(item, Document):
        return item
    inner = next((one.value for one in item.locators if one.kind == _ATTACHMENT), None)
    where = name if inner is None else f"{name}/{inner}"
    others = (one for one in item.locators if one.kind != _ATTACHMENT)
    return replace(item, locators=(Locator(0, len(item.text), _ATTACHMENT, where), *others))


def _parts(message: Message) -> Iterator[Message]:
    """Yield the parts with content: the plain form if there is a choice, nested messages unopened."""
    pending: list[Message] = [message]
    while pending:
        part = pending.pop()
        if part.get_content_type() == "message/rfc822" or not part.is_multipart():
            yield part
            continue
        inner = [one for one in part.get_payload() if isinstance(one, Message)]
        if part.get_content_type() == "multipart/alternative":
            plain = [one for one in inner if one.get_content_type() == "text/plain" and _bytes(one).strip()]
            shown = [one for one in inner if one.get_content_type() == "text/html" or one.is_multipart()]
            inner = plain[:1] or shown[-1:] or inner[-1:]
        pending.extend(reversed(inner))


def _part(
    part: Message,
    number: int,
    writer: TextWriter,
    attached: list[tuple[str, bytes]],
    file: SourceFile,
    *,
    is_forward: bool,
) -> Decoded | None:
    """Write a part of a message, or add it to those attached; return how its text was decoded."""
    kind = part.get_content_type()
    name = _free(_name(part), [name for name, _ in attached])
    if kind == "message/rfc822":
        inner = part.get_payload()
        first = inner[0] if isinstance(inner, list) and inner else None
        if isinstance(first, Message):
            attached.append((f"{name or f'message-{number}'}".removesuffix(".eml") + ".eml", _flat(first)))
        return None
    told = str(part.get("Content-Disposition", "")).lower().startswith("attachment")
    if kind not in ("text/plain", "text/html") or told or (name and number):
        if name or told or kind in _SUFFIXES:
            attached.append((name or f"attachment-{number}{_SUFFIXES.get(kind, '')}", _bytes(part)))
        return None
    found = _text(part, _bytes(part), file)
    mark = writer.mark()
    if kind == "text/html":
        try:
            writer.paragraph(page_of(found.text, whole=True).text)
        except BackendMissing as error:
            raise DocumentError(f"{error} ({error.hint})") from None
    else:
        text = fold_quotations(found.text, original=not is_forward)
        for paragraph in re.split(r"\n[ \t]*\n", text):
            writer.paragraph(paragraph)
    writer.located(mark, "part", "body" if number == 0 else f"part {number}")
    if found.encoding is not None:
        writer.located(mark, ENCODING, found.encoding)
    return found


def fold_quotations(text: str, *, original: bool = True) -> str:
    """Return a text with each long quotation replaced by one line.

    With `original` an original message below its mark is one too.
    """
    out: list[str] = []
    quoted: list[str] = []

    def fold() -> None:
        if len(quoted) > _FEW:
            out.append(f"[{len(quoted)} quoted lines]")
        else:
            out.extend(quoted)
        quoted.clear()

    lines = text.splitlines()
    for number, line in enumerate(lines):
        if original and _ORIGINAL.fullmatch(line):
            fold()
            rest = sum(1 for one in lines[number + 1 :] if one.strip())
            out.append(f"[{rest} quoted lines]")
            break
        if _QUOTED.match(line) or (not line.strip() and quoted):
            quoted.append(line)
        else:
            blank = bool(quoted) and not quoted[-1].strip()
            while quoted and not quoted[-1].strip():
                quoted.pop()
            fold()
            if blank:
                out.append("")
            out.append(line)
    while quoted and not quoted[-1].strip():
        quoted.pop()
    fold()
    return "\n".join(out)


def _free(name: str, taken: Collection[str]) -> str:
    """Return a name, with a number if other attachments have it."""
    stem, dot, suffix = name.rpartition(".")
    found, number = name, 1
    while name and found in taken:
        number += 1
        found = f"{stem or suffix} ({number}){dot if stem else ''}{suffix if stem else ''}"
    return found


def _name(part: Message) -> str:
    try:
        name = part.get_filename() or ""
    except Exception:  # noqa: BLE001 - a damaged header
        return ""
    plain = " ".join(str(name).replace("\\", "/").rpartition("/")[2].split())
    return plain.strip(".")[:200]


def _bytes(part: Message) -> bytes:
    try:
        data = part.get_payload(decode=True)
    except Exception as error:  # noqa: BLE001 - damaged base64 and the like
        raise DocumentError(f"damaged content: {error!r:.100}") from None
    return data if isinstance(data, bytes) else b""


def _flat(message: Message) -> bytes:
    try:
        return message.as_bytes()
    except Exception as error:  # noqa: BLE001 - a message that cannot be serialised
        raise DocumentError(f"damaged message: {error!r:.100}") from None


def _text(part: Message, data: bytes, file: SourceFile) -> Decoded:
    for name in (part.get_content_charset(), "utf-8"):
        try:
            if name:
                return Decoded(data.decode(name))
        except (LookupError, UnicodeDecodeError, ValueError):
            continue
    try:
        return decode(data, file.fallback_encoding)
    except DocumentError:
        return Decoded(data.decode("cp1252", "replace"), "cp1252", is_sure=False)


def _about(message: EmailMessage) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, own in (
        ("Subject", "subject"),
        ("From", "from"),
        ("To", "to"),
        ("Cc", "cc"),
        ("Message-ID", "message_id"),
        ("In-Reply-To", "reply_to"),
    ):
        try:
            value = " ".join(str(message.get(name, "")).split())
        except Exception:  # noqa: BLE001, S112 - a damaged header
            continue
        if value:
            found[own] = value[:2000].encode("utf-8", "replace").decode()
    with suppress(Exception):  # no date, or an invalid one
        found["date"] = parsedate_to_datetime(str(message.get("Date", ""))).isoformat()
    return found


LARGEST_PAGE: Final = 100_000_000
"""Maximum size of a file in bytes."""
_MOST_PARTS: Final = 10_000
_ADDRESSES: Final = ("Snapshot-Content-Location", "Content-Location")


def read_mht(file: SourceFile) -> Iterator[Item]:
    """Yield the page as one document, with its address as metadata."""
    if file.size() > LARGEST_PAGE:
        raise DocumentError(f"the file is larger than {LARGEST_PAGE:,} bytes")
    try:
        message = message_from_bytes(file.read_bytes(), _class=EmailMessage, policy=policy.default)
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
