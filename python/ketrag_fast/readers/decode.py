"""Decode bytes: by byte order mark, else as UTF-8, else with the fallback or a guess; reject binary data."""

from __future__ import annotations

import codecs
import re
from typing import Final

from ketrag_fast._core import decode_text
from ketrag_fast.errors import DocumentError
from ketrag_fast.records import dataclass

_MARKS = (  # UTF-32's little-endian mark begins with UTF-16's, so it is tested first
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
NOT_TEXT = "not text: byte"
"""Beginning of the message about a file with zero bytes."""
_ESCAPED = re.compile("[\udc80-\udcff]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x19\x1c-\x1f\x7f-\x9f]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
CONTROLS = bytes(byte for byte in range(32) if byte not in b"\t\n\v\f\r\x1a\x1b")
_BINARY = CONTROLS.translate(None, b"\a\b")  # logs of terminals have bells, and progress bars backspaces
_SAMPLE = 1 << 16
_MARKLESS = 1 << 12
_FEW_WRONG = 4  # valid UTF-8 characters per invalid byte; texts in other encodings have far fewer
_MOST_CONTROLS = 0.01  # share of control characters; text in any common encoding has far fewer


def mark_of(data: bytes) -> tuple[int, str | None]:
    """Return (length, encoding) of the byte order mark; (0, None) if there is none."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return len(mark), encoding
    return 0, None


def markless_utf16(data: bytes) -> str | None:
    """Return the encoding of UTF-16 without a byte order mark, None if the data are something else.

    Characters of one byte, such as blanks, have a zero as the other byte, always on the same side, and the
    text has no control characters.
    """
    head = data[:_MARKLESS]
    zeros = head[0::2].count(0), head[1::2].count(0)
    if len(head) < 16 or len(head) % 2 or min(zeros) or max(zeros) < len(head) / 40:
        return None
    encoding = "utf-16-le" if zeros[1] else "utf-16-be"
    text = head.decode(encoding, "replace")
    return None if _CONTROL.search(text) or "\ufffd" in text[:-1] else encoding


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded text and its encoding; None means UTF-8, or an encoding given by a byte order mark.

    `is_declared`: the file names this encoding. Otherwise it was guessed, and `is_sure` rates the guess.
    """

    text: str
    encoding: str | None = None
    is_sure: bool = True
    is_declared: bool = False


def decode(data: bytes, fallback: str | None = None, declared: str | None = None) -> Decoded:
    """Return the text. All offsets count its code points; line ends are kept.

    The encoding is that of the byte order mark, else UTF-16 if the bytes look like that, else UTF-8 if they
    are valid, else `fallback`, else what
    is `declared` if nearly all bytes are valid in it, else a guess. In a text that is UTF-8 but for a few
    bytes, only these are read in another way.
    """
    length, encoding = mark_of(data)
    if encoding is not None:
        try:
            return Decoded(str(data[length:] if length else data, encoding))
        except UnicodeDecodeError as error:
            raise DocumentError(
                f"byte order mark of {encoding}, but invalid at byte {error.start + length}"
            ) from None
    if b"\0" in data[:_MARKLESS] and (encoding := markless_utf16(data)) is not None:
        return Decoded(str(data, encoding, "replace"), encoding)
    refuse_binary(data)
    return Decoded(*decode_text(data, declared)) if fallback is None else _decode_as(data, fallback)


def _decode_as(data: bytes, fallback: str) -> Decoded:
    try:
        return Decoded(str(data, "utf-8"))
    except UnicodeDecodeError as error:
        where = error.start
    try:
        mixed = str(data, "utf-8", "surrogateescape")
        wrong = len(_ESCAPED.findall(mixed))
        if len(_BEYOND_ASCII.findall(mixed)) - wrong >= _FEW_WRONG * wrong:
            return Decoded(
                _ESCAPED.sub(lambda found: str(found[0].encode("utf-8", "surrogateescape"), fallback), mixed)
            )
        return Decoded(str(data, fallback), fallback)
    except (UnicodeDecodeError, LookupError) as error:
        reason = (
            f"nor {fallback}"
            if isinstance(error, UnicodeError)
            else f"and {fallback!r} is not a known encoding"
        )
        raise DocumentError(
            f"not UTF-8 (byte {where}) {reason}",
            hint="change the setting fallback_encoding; without it the encoding is detected",
        ) from None


def refuse_binary(data: bytes) -> None:
    """Raise DocumentError if data without a byte order mark is not text."""
    zero = data.find(b"\0")
    if zero >= 0:
        raise DocumentError(f"{NOT_TEXT} {zero} is zero", hint="if it is UTF-16, save it as UTF-8")
    sample = data[:_SAMPLE]
    controls = len(sample) - len(sample.translate(None, _BINARY))
    if controls > _MOST_CONTROLS * len(sample):
        raise DocumentError("not text: too many control characters")


_DECLARED = re.compile(rb"<meta[^>]{0,300}?charset\s*=(?:\s*[\"'])?\s*([A-Za-z0-9_.:-]{2,40})", re.I)
_XML_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{2,40})")
_HEAD: Final = 4096
"""Bytes of a page in which the encoding is declared."""


def decode_html(data: bytes, fallback: str | None = None, transport: str | None = None) -> Decoded:
    """Decode a page: by byte order mark, else UTF-8 if valid, else as declared, else the fallback or a guess.

    A declared encoding counts if nearly all bytes are valid in it; `transport` is one from outside the page.
    """
    length, marked = mark_of(data)
    if marked is not None:
        return Decoded(data[length:].decode(marked, "replace"))
    head = data[:_HEAD]
    declared = _DECLARED.search(head) or _XML_DECLARED.search(head)
    name = declared[1].decode("ascii") if declared is not None else None
    found = Decoded(*decode_text(data, transport or name))
    if found.is_declared or found.encoding is None or fallback is None:
        return found
    try:
        return Decoded(data.decode(fallback, "replace"), fallback)
    except LookupError:
        return found
