"""Messages that Outlook stores as files: `.msg` (MS-OXMSG, with the package olefile) and `winmail.dat`.

Each is converted into an Internet message, so that its text, sender, date and attachments are read as those
of any other mail.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterator
from contextlib import suppress
from email.message import EmailMessage
from email.parser import HeaderParser
from email.utils import format_datetime
from typing import Any, Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.decode import decode
from ketrag_fast.readers.mail import LARGEST, message_items
from ketrag_fast.readers.mail_headers import POLICY
from ketrag_fast.readers.protocol import Item, SourceFile, import_optional
from ketrag_fast.readers.rtf import rtf_text
from ketrag_fast.readers.tnef import uncompressed_rtf

_DEEPEST: Final = 20
"""Maximum nesting depth of messages in a message; deeper ones are left out."""
_MOST: Final = 1_000
"""Maximum number of attachments and of recipients of a message."""
_SUBJECT, _HEADERS, _BODY, _RTF, _HTML = 0x0037, 0x007D, 0x1000, 0x1009, 0x1013
_SENDER, _SENDER_ADDRESS, _SENDER_SMTP = 0x0C1A, 0x0C1F, 0x5D01
_TO, _CC = 0x0E04, 0x0E03
_SENT, _DELIVERED, _CODE_PAGE = 0x0039, 0x0E06, 0x3FFD
_FILE_NAMES: Final = (0x3707, 0x3704, 0x3001)
_DATA: Final = 0x3701
_KEPT_HEADERS: Final = ("from", "to", "cc", "subject", "date")
_EPOCH: Final = dt.datetime(1601, 1, 1, tzinfo=dt.UTC)
_UTF_16, _BYTES, _EMBEDDED = "001F", "0102", "000D"


def read_msg(file: SourceFile) -> Iterator[Item]:
    """Yield a message and its attachments."""
    if file.size() > LARGEST:
        raise DocumentError(f"the message is larger than {LARGEST:,} bytes")
    olefile = import_optional("olefile", "a message of Outlook (.msg)")
    try:
        with olefile.OleFileIO(file.read_bytes()) as storage:
            if not storage.exists("__properties_version1.0"):
                raise DocumentError("not a message of Outlook")
            message = _Storage(storage, ()).message(0)
    except (DocumentError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - the parser raises what it meets in a damaged file
        raise DocumentError(f"not a message that can be read: {error or type(error).__name__}") from None
    yield from message_items(file, message.as_bytes(policy=POLICY))


def read_winmail(file: SourceFile) -> Iterator[Item]:
    """Yield the text of a `winmail.dat` and its attachments."""
    if file.size() > LARGEST:
        raise DocumentError(f"the message is larger than {LARGEST:,} bytes")
    message = EmailMessage(POLICY)
    message.set_content("")
    message.add_attachment(file.read_bytes(), "application", "ms-tnef", filename="winmail.dat")
    yield from message_items(file, message.as_bytes(policy=POLICY))


class _Storage:
    """The properties of a message, an attachment or a recipient, which are streams of one folder."""

    def __init__(self, storage: Any, path: tuple[str, ...]) -> None:
        self._storage, self._path = storage, path
        self._fixed = self._fixed_properties()

    def message(self, depth: int) -> EmailMessage:
        """Return the message with its attachments."""
        found = EmailMessage(POLICY)
        for name, value in self._headers().items():
            if value.strip():
                found[name] = " ".join(value.split())
        plain, page = self._text(_BODY), self._page()
        found.set_content(plain or self._rtf_text())
        if page:
            found.add_alternative(page, subtype="html")
        for own in self._below("__attach_version1.0_"):
            own.attach_to(found, depth)
        return found

    def attach_to(self, message: EmailMessage, depth: int) -> None:
        """Add this attachment to a message."""
        name = next((text for one in _FILE_NAMES if (text := self._text(one))), "")
        embedded = (*self._path, f"__substg1.0_{_DATA:04X}{_EMBEDDED}")
        if self._storage.exists("/".join((*embedded, "__properties_version1.0"))):
            if depth < _DEEPEST:
                message.add_attachment(_Storage(self._storage, embedded).message(depth + 1))
            return
        data = self._bytes(_DATA)
        if data:
            message.add_attachment(data, "application", "octet-stream", filename=name)

    def _headers(self) -> dict[str, str]:
        """Return the headers with which the message came, or those of its properties if it was not sent."""
        found = {
            "From": _person(self._text(_SENDER), self._text(_SENDER_SMTP) or self._text(_SENDER_ADDRESS)),
            "To": self._text(_TO),
            "Cc": self._text(_CC),
            "Subject": self._text(_SUBJECT),
            "Date": self._date(),
        }
        came = HeaderParser(policy=POLICY).parsestr(self._text(_HEADERS), headersonly=True)
        for name in found:
            if name.lower() in _KEPT_HEADERS and name in came and name != "Subject":
                found[name] = str(came[name])
        return found

    def _date(self) -> str:
        for name in (_SENT, _DELIVERED):
            ticks = self._fixed.get(name, 0)
            with suppress(OverflowError, ValueError):
                if ticks:
                    return format_datetime(_EPOCH + dt.timedelta(microseconds=ticks // 10))
        return ""

    def _page(self) -> str:
        data = self._bytes(_HTML)
        return self._text(_HTML) if not data else decode(data).text

    def _rtf_text(self) -> str:
        packed = self._bytes(_RTF)
        with suppress(struct.error, IndexError, ValueError, DocumentError):
            return rtf_text(uncompressed_rtf(packed)) if packed else ""
        return ""

    def _text(self, name: int) -> str:
        data = self._stream(f"{name:04X}{_UTF_16}")
        if data:
            return data.decode("utf-16-le", "replace").rstrip("\0")
        data = self._stream(f"{name:04X}001E")
        page = self._fixed.get(_CODE_PAGE, 0) & 0xFFFFFFFF
        with suppress(LookupError, UnicodeDecodeError):
            return data.decode("utf-8" if page == 65_001 else f"cp{page or 1252}").rstrip("\0")
        return data.decode("cp1252", "replace").rstrip("\0")

    def _bytes(self, name: int) -> bytes:
        return self._stream(f"{name:04X}{_BYTES}")

    def _stream(self, name: str) -> bytes:
        path = "/".join((*self._path, f"__substg1.0_{name}"))
        if not self._storage.exists(path) or self._storage.get_type(path) != 2:  # a stream
            return b""
        return bytes(self._storage.openstream(path).read())

    def _fixed_properties(self) -> dict[int, int]:
        """Return the properties with values of at most eight bytes (MS-OXMSG, section 2.4)."""
        path = "/".join((*self._path, "__properties_version1.0"))
        data = self._storage.openstream(path).read() if self._storage.exists(path) else b""
        begin = 8 if any("attach" in one or "recip" in one for one in self._path[-1:]) else 24
        begin = 32 if not self._path else begin
        found: dict[int, int] = {}
        for at in range(begin, len(data) - 15, 16):
            tag, value = struct.unpack_from("<IxxxxQ", data, at)
            found[tag >> 16] = value
        return found

    def _below(self, prefix: str) -> Iterator[_Storage]:
        """Yield the attachments or recipients in their order."""
        count = len(self._path)
        names = sorted(
            {
                path[count]
                for path in self._storage.listdir(streams=True, storages=True)
                if len(path) > count and tuple(path[:count]) == self._path and path[count].startswith(prefix)
            }
        )
        for name in names[:_MOST]:
            yield _Storage(self._storage, (*self._path, name))


def _person(name: str, address: str) -> str:
    if "@" not in address:  # an address within an organisation
        return name or address
    return address if not name or name == address else f'"{name.replace(chr(34), chr(39))}" <{address}>'
