"""The character encoding of a web page."""

from __future__ import annotations

import re
from typing import Final

from ketrag_fast._core import decode_text
from ketrag_fast.readers.decode import Decoded, mark_of

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
