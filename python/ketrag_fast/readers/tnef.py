"""The parts of a `winmail.dat` (TNEF, MS-OXTNEF): the text of an Outlook message and its attachments."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.records import dataclass, field

_SIGNATURE: Final = b"\x78\x9f\x3e\x22"
_BODY: Final = 0x800C
_NEW_FILE: Final = 0x9002
_FILE_NAME: Final = 0x8010
_FILE_DATA: Final = 0x800F
_MESSAGE_PROPERTIES: Final = 0x9003
_FILE_PROPERTIES: Final = 0x9005
_PROPERTY_BODY: Final = 0x1000
_PROPERTY_RTF: Final = 0x1009
_PROPERTY_HTML: Final = 0x1013
_PROPERTY_DATA: Final = 0x3701
_PROPERTY_NAMES: Final = (0x3707, 0x3001)
_MOST_FILES: Final = 1_000
_MOST_RTF: Final = 50_000_000
_FIXED: Final = {1: 4, 2: 4, 3: 4, 4: 4, 5: 8, 6: 8, 7: 8, 10: 4, 11: 4, 20: 8, 64: 8, 72: 16}
"""Bytes of the values of MAPI types, with their padding; other types have a length."""
_DICTIONARY: Final = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript "
    b"\\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par "
    b"\\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)


@dataclass(slots=True)
class Envelope:
    """What a `winmail.dat` has: its text in up to three forms, and files with their names."""

    text: str = ""
    html: bytes = b""
    rtf: bytes = b""
    files: list[tuple[str, bytes]] = field(default_factory=list)
    problem: str = ""
    """Why it was not read whole."""


def read_envelope(data: bytes) -> Envelope:
    """Return parts of a `winmail.dat` before the first damaged one. Raises DocumentError for other files."""
    if not data.startswith(_SIGNATURE):
        raise DocumentError("winmail.dat is not in the format of Outlook (TNEF)")
    found = Envelope()
    try:
        for name, value in _attributes(data):
            _take(found, name, value)
    except (struct.error, IndexError, ValueError) as error:
        found.problem = f"winmail.dat is damaged: {error}"
    return found


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 6
    while at + 9 <= len(data):
        name, length = struct.unpack_from("<HxxI", data, at + 1)
        at += 9
        value = data[at : at + length]
        at += length + 2
        if int.from_bytes(data[at - 2 : at], "little") != sum(value) % 65_536:
            raise ValueError("a checksum is wrong")
        yield name, value
    if at != len(data):
        raise ValueError("it is cut off")


def _take(found: Envelope, name: int, value: bytes) -> None:
    if name == _BODY:
        found.text = _plain(value)
    elif name == _NEW_FILE and len(found.files) < _MOST_FILES:
        found.files.append(("", b""))
    elif name == _FILE_NAME and found.files:
        found.files[-1] = (_plain(value), found.files[-1][1])
    elif name == _FILE_DATA and found.files:
        found.files[-1] = (found.files[-1][0], value)
    elif name == _MESSAGE_PROPERTIES:
        for kind, own in _properties(value):
            if kind == _PROPERTY_HTML:
                found.html = own
            elif kind == _PROPERTY_RTF:
                found.rtf = uncompressed_rtf(own)
            elif kind == _PROPERTY_BODY:
                found.text = found.text or _plain(own)
    elif name == _FILE_PROPERTIES and found.files:
        title, content = found.files[-1]
        for kind, own in _properties(value):
            if kind in _PROPERTY_NAMES:
                title = _plain(own) if kind == _PROPERTY_NAMES[0] or not title else title
            elif kind == _PROPERTY_DATA and not content:
                content = own
        found.files[-1] = (title, content)


def _properties(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the MAPI properties with their first values; texts of 16 bits as UTF-8."""
    (count,) = struct.unpack_from("<I", data)
    at = 4
    for _ in range(min(count, 10_000)):
        kind, name = struct.unpack_from("<HH", data, at)
        at += 4
        if name >= 0x8000:  # a named property: its name, a number or a text, follows
            (is_text,) = struct.unpack_from("<I", data, at + 16)
            (length,) = struct.unpack_from("<I", data, at + 20)
            at += 24 + ((length + 3) // 4 * 4 if is_text else 0)
        plain = kind & 0xFFF
        values = 1
        if kind & 0x1000 or plain not in _FIXED:
            (values,) = struct.unpack_from("<I", data, at)
            at += 4
        first = b""
        for number in range(min(values, 10_000)):
            if plain in _FIXED:
                length = _FIXED[plain]
            else:
                (length,) = struct.unpack_from("<I", data, at)
                at += 4
            value = data[at : at + length]
            first = value if number == 0 else first
            at += (length + 3) // 4 * 4
        if plain == 0x1F:
            first = first.decode("utf-16-le", "replace").encode()
        yield name, first


def _plain(value: bytes) -> str:
    value = value.rstrip(b"\0")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("cp1252", "replace")


def uncompressed_rtf(data: bytes) -> bytes:
    """Return RTF that Outlook has compressed (MS-OXRTFCP)."""
    _, size, magic = struct.unpack_from("<II4s", data)
    if magic == b"MELA":
        return data[16 : 16 + size]
    if magic != b"LZFu" or size > _MOST_RTF:
        raise ValueError("unknown compression of its RTF")
    window = bytearray(_DICTIONARY.ljust(4096, b" "))
    write, at = len(_DICTIONARY), 16
    out = bytearray()
    while at < len(data) and len(out) < size:
        flags = data[at]
        at += 1
        for bit in range(8):
            if at >= len(data) or len(out) >= size:
                break
            if not flags >> bit & 1:
                out.append(data[at])
                window[write] = data[at]
                write = (write + 1) % 4096
                at += 1
                continue
            token = int.from_bytes(data[at : at + 2], "big")
            at += 2
            start, length = token >> 4, (token & 15) + 2
            if start == write:
                return bytes(out)
            for place in range(start, start + length):
                byte = window[place % 4096]
                out.append(byte)
                window[write] = byte
                write = (write + 1) % 4096
    return bytes(out)
