"""E-mail: the text of a message, its sender and date as metadata, and its attachments.

Long quotations of earlier messages are replaced by a line with their length: those messages are indexed
themselves, and their terms would otherwise count in every reply.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, Final

from ketrag_fast.errors import BackendMissing, DocumentError
from ketrag_fast.readers import items_of, known_kind, unsure
from ketrag_fast.readers.archives import DEEPEST
from ketrag_fast.readers.attachments import Attachments
from ketrag_fast.readers.content_lines import event_texts
from ketrag_fast.readers.decode import Decoded, decode, decode_html
from ketrag_fast.readers.html import page_of, plain_text
from ketrag_fast.readers.mail_headers import LONGEST, POLICY, header_text, raw_headers
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.rtf import rtf_text
from ketrag_fast.readers.text_builder import TextWriter
from ketrag_fast.readers.tnef import Envelope, read_envelope
from ketrag_fast.records import replace
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import EMBEDDED, ENCODING
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
    "text/calendar": ".ics",
    "text/vcard": ".vcf",
    "text/x-vcard": ".vcf",
    "application/rtf": ".rtf",
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
    yield from message_items(file, file.read_bytes())


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
        yield from message_items(own, b"".join(lines))
    except DocumentError as error:
        yield own.failure(str(error))


def message_items(file: SourceFile, data: bytes) -> Iterator[Item]:
    """Yield an Internet message and its attachments."""
    try:
        message = message_from_bytes(data, _class=EmailMessage, policy=POLICY)
    except RecursionError:
        raise DocumentError("its parts are nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - the standard parser may raise anything
        raise DocumentError(f"not usable as a message: {error!r:.200}") from None
    if not message.keys():
        raise DocumentError("not an e-mail message: it has no header")
    metadata = _about(message)
    title = str(metadata.pop("subject", ""))
    writer = TextWriter()
    attached = Attachments()
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
    names = [name for name, _ in attached.items]
    if names:
        metadata["attachments"] = names
    if guesses:
        metadata[ENCODING] = guesses[0].encoding
    if writer.text() or title:
        yield writer.document(file, title, metadata)
    elif not names:
        yield file.failure("the message has no text")
    for why in problems:
        yield file.failure(why)
    for guess in guesses:
        if not guess.is_sure:
            yield unsure(file, str(guess.encoding))
    if attached.unread:
        yield Failure(file.id, EMBEDDED, f"not read: {', '.join(attached.unread)}")
    for name, content in attached.items:
        inner = file.member(name, content)
        if inner.depth > DEEPEST:
            yield inner.failure(f"attachments are nested more than {DEEPEST} levels deep")
            continue
        try:
            kind = known_kind(inner)
        except DocumentError as error:
            yield inner.failure(str(error))
            continue
        if kind is None:
            yield inner.unread()
        else:
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
    """Yield the parts with content; of a choice what `_chosen` returns; nested messages unopened."""
    pending: list[Message] = [message]
    left = 2 * MOST_PARTS
    while pending:
        part = pending.pop()
        kind = part.get_content_type()
        if kind == "message/rfc822" or kind in _REPORTS or not part.is_multipart():
            yield part
            continue
        inner = [one for one in islice(part.get_payload(), left) if isinstance(one, Message)]
        left -= len(inner)
        if part.get_content_type() == "multipart/alternative":
            inner = _chosen(inner)
        pending.extend(reversed(inner))


def _chosen(forms: list[Message]) -> list[Message]:
    """Return the richest form of a text, or the plain one if that says the same; and calendars.

    Files inside the richest form are kept with the plain one.
    """
    plain = [one for one in forms if one.get_content_type() == "text/plain" and _bytes(one).strip()]
    shown = [one for one in forms if one.get_content_type() == "text/html" or one.is_multipart()]
    events = [one for one in forms if one.get_content_type() == "text/calendar"]
    if not plain or not shown:
        return [*(plain[:1] or shown[-1:] or ([] if events else forms[-1:])), *events]
    leaves = [one for one in islice(shown[-1].walk(), MOST_PARTS) if not one.is_multipart()]
    pages = [one for one in leaves if one.get_content_type() == "text/html"]
    try:
        page = " ".join(_page_text(_text(one, _bytes(one), None).text) for one in pages)
        if not _says(_text(plain[0], _bytes(plain[0]), None).text, page):
            return [shown[-1], *events]
    except DocumentError:
        pass  # the plain form can be read
    files = [one for one in leaves if one.get_content_type() not in ("text/html", "text/plain")]
    return [plain[0], *files, *events]


_WORD: Final = re.compile(r"\w+")
_SAME: Final = 0.8
"""Share of the words of a page that the plain form has if it says the same. A plain form lacks labels of
buttons and footers, a stub nearly everything."""
_LEAST: Final = 0.5
"""A page with a smaller share of the plain form's number of words is not the richer form."""


def _says(plain: str, page: str) -> bool:
    words = Counter(_WORD.findall(page.lower()))
    own = Counter(_WORD.findall(plain.lower()))
    needed = sum(words.values())
    if needed < _LEAST * sum(own.values()):
        return True  # the page is less than the plain form
    return sum((words & own).values()) >= _SAME * needed


def _page_text(markup: str) -> str:
    try:
        return page_of(markup, whole=True).text
    except BackendMissing:
        return plain_text(markup)


def _part(
    part: Message,
    number: int,
    writer: TextWriter,
    attached: Attachments,
    file: SourceFile,
    *,
    is_forward: bool,
) -> Decoded | None:
    """Write a part of a message, or add it to those attached; return how its text was decoded."""
    kind = part.get_content_type()
    name = attached.unused(_name(part))
    if kind == "message/rfc822":
        inner = part.get_payload()
        first = inner[0] if isinstance(inner, list) and inner else None
        if isinstance(first, Message):
            attached.add(f"{name or f'message-{number}'}".removesuffix(".eml") + ".eml", _flat(first))
        return None
    if kind in _ENVELOPES or name.lower() == "winmail.dat":
        envelope = read_envelope(_bytes(part))
        _write_envelope(envelope, writer, attached)
        if envelope.problem:
            raise DocumentError(envelope.problem)
        return None
    if kind in _SIGNATURES:
        attached.unread.append(name or "a signature")
        return None
    if kind in _REPORTS:
        _write_report(part, writer)
        return None
    is_file = str(part.get("Content-Disposition", "")).lower().startswith("attachment")
    if kind == "text/calendar" and not is_file:
        _write_events(event_texts(_text(part, _bytes(part), file).text), writer)
        return None
    if kind not in ("text/plain", "text/html") or is_file or (name and number):
        attached.add(name or f"attachment-{number}{_suffix_of(kind)}", _bytes(part))
        return None
    found = _text(part, _bytes(part), file)
    mark = writer.mark()
    if kind == "text/html":
        try:
            writer.paragraph(page_of(found.text, whole=True).text)
        except BackendMissing as error:
            raise DocumentError(f"{error} ({error.hint})") from None
    else:
        text = found.text
        if "Content-Type" in part and str(part.get_param("format", "")).lower() == "flowed":
            text = unflowed(text, joins=str(part.get_param("delsp", "")).lower() == "yes")
        text = fold_quotations(text, original=not is_forward)
        for paragraph in re.split(r"\n[ \t]*\n", text):
            writer.paragraph(paragraph)
    writer.located(mark, "part", "body" if number == 0 else f"part {number}")
    if found.encoding is not None:
        writer.located(mark, ENCODING, found.encoding)
    return found


_SIGNATURES: Final = (
    "application/pgp-signature",
    "application/pkcs7-signature",
    "application/x-pkcs7-signature",
)
_REPORTS: Final = ("message/delivery-status", "message/disposition-notification", "text/rfc822-headers")
_SHOWN: Final = (
    *("final-recipient", "original-recipient", "action", "status", "diagnostic-code", "disposition"),
    *("from", "to", "subject", "date"),
)
"""Fields of a report that are read."""


def _write_report(part: Message, writer: TextWriter) -> None:
    """Write which message a report is about, and what became of it."""
    inner = part.get_payload()
    groups = inner[:MOST_PARTS] if isinstance(inner, list) else [message_from_bytes(_bytes(part))]
    mark = writer.mark()
    for group in groups:
        if not isinstance(group, Message):
            continue
        fields = raw_headers(group)
        lines = (f"{name}: {header_text(group, name, fields[name])}" for name in _SHOWN if name in fields)
        writer.paragraph("\n".join(lines))
    writer.located(mark, "part", "report")


_ENVELOPES: Final = ("application/ms-tnef", "application/vnd.ms-tnef")


def _write_envelope(envelope: Envelope, writer: TextWriter, attached: Attachments) -> None:
    """Write the text of a `winmail.dat`, unless the message has it, and add its files to those attached."""
    if envelope.html:
        text = _page_text(decode_html(envelope.html).text)
    else:
        text = envelope.text or (rtf_text(envelope.rtf) if envelope.rtf else "")
    if text.strip() and not _says(writer.text(), text):
        mark = writer.mark()
        for paragraph in re.split(r"\r?\n[ \t]*\r?\n", text):
            writer.paragraph(paragraph.replace("\r", ""))
        writer.located(mark, "part", "winmail.dat")
    for number, (title, content) in enumerate(envelope.files, 1):
        name = " ".join(title.replace("\\", "/").rpartition("/")[2].split()).strip(".")[:200]
        attached.add(attached.unused(name or f"attachment-{number}"), content)


def _suffix_of(kind: str) -> str:
    """Return the suffix of an attachment without a name, by its media type."""
    main, _, sub = kind.partition("/")
    is_media = main in ("image", "audio", "video") and sub.isalnum()
    return _SUFFIXES.get(kind) or (f".{sub[:10]}" if is_media else "")


def _write_events(events: Sequence[str], writer: TextWriter) -> None:
    """Write the events of an invitation without the lines that the message has."""
    known = {" ".join(line.split()) for line in writer.text().splitlines()}
    mark = writer.mark()
    for event in events:
        lines = [line for line in event.splitlines() if " ".join(line.split()) not in known or not line]
        writer.paragraph("\n".join(lines))
    writer.located(mark, "part", "calendar")


_DEPTH: Final = re.compile(r">*")


def unflowed(text: str, *, joins: bool = False) -> str:
    """Return text of `format=flowed` (RFC 3676) with a line for each paragraph.

    `joins`: the blank at the end of a line is not part of the text (`delsp=yes`).
    """
    lines: list[str] = []
    goes_on, before = False, ""
    for line in text.splitlines():
        quoted = _DEPTH.match(line)
        depth = quoted[0] if quoted is not None else ""
        rest = line[len(depth) :]
        rest = rest[1:] if rest.startswith(" ") else rest  # stuffed by the sender
        is_signature = rest == "-- "
        if goes_on and depth == before and not is_signature:
            lines[-1] += rest
        else:
            lines.append(f"{depth} {rest}" if depth else rest)
        goes_on, before = rest.endswith(" ") and not is_signature, depth
        if goes_on and joins:
            lines[-1] = lines[-1][:-1]
    return "\n".join(lines)


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


def _names_of(message: Message) -> set[str]:
    """Return the names of the headers of a message or a part, in lower case."""
    return {name.lower() for name in message.keys()}  # noqa: SIM118 - a message cannot be iterated


def _name(part: Message) -> str:
    if _names_of(part).isdisjoint(("content-type", "content-disposition")):
        return ""  # looking for parameters in missing headers is slow
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


def _text(part: Message, data: bytes, file: SourceFile | None) -> Decoded:
    for name in (part.get_content_charset() if "Content-Type" in part else None, "utf-8"):
        try:
            if name:
                return Decoded(data.decode(name))
        except (LookupError, UnicodeDecodeError, ValueError):
            continue
    try:
        return decode(data, file.fallback_encoding if file is not None else None)
    except DocumentError:
        return Decoded(data.decode("cp1252", "replace"), "cp1252", is_sure=False)


def _about(message: EmailMessage) -> dict[str, Any]:
    found: dict[str, Any] = {}
    headers = raw_headers(message)
    for name, own in (
        ("subject", "subject"),
        ("from", "from"),
        ("to", "to"),
        ("cc", "cc"),
        ("message-id", "message_id"),
        ("in-reply-to", "reply_to"),
    ):
        if name not in headers:
            continue
        try:
            value = header_text(message, name, headers[name])
        except Exception:  # noqa: BLE001, S112 - a damaged header
            continue
        if value:
            most = LONGEST if own == "subject" else 2000
            found[own] = value[:most].encode("utf-8", "replace").decode()
    if "date" in headers:
        with suppress(Exception):  # an invalid one
            found["date"] = parsedate_to_datetime("".join(headers["date"].splitlines())).isoformat()
    return found
