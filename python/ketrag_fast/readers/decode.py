"""Bytes to text: a byte order mark, else UTF-8, else the named fallback; binary data is refused."""

from __future__ import annotations

import codecs

from ketrag_fast.errors import DocumentError

_MARKS = (  # UTF-32's little-endian mark begins with UTF-16's, so it is asked first
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes(byte for byte in range(32) if byte not in b"\t\n\v\f\r\x1a\x1b")
_SAMPLE = 1 << 16
_MOST_CONTROLS = 0.01  # a share that text in any of the usual encodings stays far below


def mark_of(data: bytes) -> tuple[int, str | None]:
    """(length, encoding) of the byte order mark; (0, None) without one."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return len(mark), encoding
    return 0, None


def decode(data: bytes, fallback: str) -> str:
    """The text; its code points are what all offsets count. Line ends stay as they are."""
    length, encoding = mark_of(data)
    if encoding is not None:
        try:
            return str(data[length:] if length else data, encoding)
        except UnicodeDecodeError as error:
            raise DocumentError(f"marked as {encoding} but is not, at byte {error.start + length}") from None
    refuse_binary(data)
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        where = error.start
    try:
        return str(data, fallback)
    except (UnicodeDecodeError, LookupError) as error:
        reason = f"nor {fallback}" if isinstance(error, UnicodeError) else f"and {fallback!r} is no encoding"
        raise DocumentError(
            f"not UTF-8 (byte {where}) {reason}", hint="name its encoding with the setting fallback_encoding"
        ) from None


def refuse_binary(data: bytes) -> None:
    """DocumentError for what is not text in any encoding that has no mark."""
    zero = data.find(b"\0")
    if zero >= 0:
        raise DocumentError(f"not a text: byte {zero} is zero", hint="save it as UTF-8 if it is UTF-16")
    sample = data[:_SAMPLE]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls > _MOST_CONTROLS * len(sample):
        raise DocumentError("not a text: too many control characters")
