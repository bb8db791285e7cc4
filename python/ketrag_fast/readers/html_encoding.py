"""The character encoding of a web page."""

from __future__ import annotations

import codecs
import re
from typing import Final

from ketrag_fast.readers.decode import mark_of
from ketrag_fast.readers.optional_imports import import_optional

_DECLARED = re.compile(rb"<meta[^>]{0,300}?charset\s*=(?:\s*[\"'])?\s*([A-Za-z0-9_.:-]{2,40})", re.I)
_XML_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{2,40})")
_SEVEN_BITS: Final = ("iso-2022", "hz", "utf-7")


def decode_html(data: bytes, fallback: str) -> str:
    """Decode a page: by byte order mark, else UTF-8 if valid, else as declared, else by detection."""
    length, marked = mark_of(data)
    if marked is not None:
        return data[length:].decode(marked, "replace")
    head = data[:4096]
    declared = _DECLARED.search(head) or _XML_DECLARED.search(head)
    name = declared[1].decode("ascii") if declared is not None else ""
    if not name.lower().startswith(_SEVEN_BITS):
        try:
            return data.decode("utf-8")  # valid UTF-8 is UTF-8, whatever the page declares
        except UnicodeDecodeError:
            pass
    try:
        known = codecs.lookup(name).name if name else ""
        known = {"iso8859-1": "cp1252", "ascii": "cp1252"}.get(known, known)
        if known and not known.startswith(
            ("utf-16", "utf-32")
        ):  # a declaration in these could not have been read
            return _decode(data, known)
    except (LookupError, UnicodeError, ValueError):
        pass
    guess = import_optional("resiliparse.parse.encoding", "a web page").detect_encoding(data[: 1 << 16])
    for name in (guess, fallback, "cp1252"):
        try:
            return data.decode(name or fallback, "replace")
        except LookupError:
            continue
    return data.decode("latin-1")


def _decode(data: bytes, encoding: str) -> str:
    """Decode with the declared encoding, replacing stray bytes. Raises if there are too many."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
        if text.count("\ufffd") > 10 + len(text) // 200:
            raise
        return text
