"""Parts of a PDF outside the text of its pages: comments, data of XFA forms, and attached files."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ketrag_fast.base.safe_xml import Handler, parse
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.office.charts import comment_line

_MOST: Final = 1_000
"""Comments of a page, fields of a form, and attached files that are read or listed."""
_LONGEST: Final = 10_000
"""Characters of a comment."""
_LARGEST_XFA: Final = 20_000_000
_HIDDEN: Final = 2
"""Flag of annotations that are hidden."""


class Remark(NamedTuple):
    """A comment on a page, which is counted from 1."""

    page: int
    text: str


def remarks_of(page: Any, number: int, raw: Any) -> list[Remark]:
    """Return the comments on a page: notes, texts of marks such as highlights, and typed text.

    Stamps and fields are drawn on the page, as typed text often is; links and pop-ups repeat others.
    """
    kinds = (
        *(raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_HIGHLIGHT, raw.FPDF_ANNOT_UNDERLINE, raw.FPDF_ANNOT_SQUIGGLY),
        *(raw.FPDF_ANNOT_STRIKEOUT, raw.FPDF_ANNOT_CARET, raw.FPDF_ANNOT_SQUARE, raw.FPDF_ANNOT_CIRCLE),
        *(
            raw.FPDF_ANNOT_FREETEXT,
            raw.FPDF_ANNOT_INK,
            raw.FPDF_ANNOT_LINE,
            raw.FPDF_ANNOT_POLYGON,
            raw.FPDF_ANNOT_POLYLINE,
        ),
    )
    found: list[Remark] = []
    for at in range(min(raw.FPDFPage_GetAnnotCount(page.raw), _MOST)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, at)
        if not annotation:
            continue
        try:
            is_shown = not raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN
            if is_shown and raw.FPDFAnnot_GetSubtype(annotation) in kinds:
                text = _value(annotation, b"Contents", raw)
                author = " ".join(_value(annotation, b"T", raw).split())
                found += [Remark(number, comment_line(author, text))] if text else []
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    return found


def _value(annotation: Any, key: bytes, raw: Any) -> str:
    text = _text(lambda buffer, size: raw.FPDFAnnot_GetStringValue(annotation, key, buffer, size))
    lines = (" ".join(line.split()) for line in text.replace("\r", "\n").split("\n"))
    return "\n".join(filter(None, lines))


def _text(call: Callable[[Any, int], int]) -> str:
    """Return a text in UTF-16 that a function of PDFium writes into a buffer."""
    size = call(None, 0)
    if not 2 < size <= 2 * _LONGEST:
        return ""
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    call(buffer, size)
    return bytes(buffer).decode("utf-16-le", "ignore").replace("\0", "")


def attached_names(document: Any, raw: Any) -> list[str]:
    """Return the names of the files that are attached to a document."""
    names: list[str] = []
    for at in range(min(raw.FPDFDoc_GetAttachmentCount(document.raw), _MOST)):
        file = raw.FPDFDoc_GetAttachment(document.raw, at)
        name = _file_name(file, raw) if file else ""
        names.append(" ".join(name.split())[:200] or f"attachment-{at + 1}")
    return names


def _file_name(file: Any, raw: Any) -> str:
    return _text(lambda buffer, size: raw.FPDFAttachment_GetName(file, buffer, size))


def form_lines(document: Any, raw: Any) -> list[str]:
    """Return `label: value` for each field of an XFA form that has a value. Raises DocumentError."""
    packets: dict[str, bytes] = {}
    for at in range(min(max(raw.FPDF_GetXFAPacketCount(document.raw), 0), _MOST)):
        name = _bytes(_packet(raw.FPDF_GetXFAPacketName, document, at)).rstrip(b"\0")
        content = _bytes(_packet(raw.FPDF_GetXFAPacketContent, document, at))
        packets[name.decode("ascii", "replace") or str(at)] = content
    labels, values = _Labels(), _Values()
    # A form is one stream, or each of its packets is one.
    whole = b"".join(packets.values()) if "preamble" in packets else b""
    for packet in [whole] if whole else packets.values():
        if b"<template" in packet[:_LARGEST_XFA]:
            parse([packet], labels, "the form")
        if b"datasets" in packet[:_LARGEST_XFA]:
            parse([packet], values, "the form")
    return [f"{labels.found.get(name, name)}: {value}" for name, value in values.found[:_MOST]]


def _packet(function: Callable[..., Any], document: Any, at: int) -> Callable[[Any, int], int]:
    def call(buffer: Any, size: int) -> int:
        length = ctypes.c_ulong(0)
        is_there = function(document.raw, at, buffer, size, length)
        return length.value if is_there else 0

    return call


def _bytes(call: Callable[[Any, int], int]) -> bytes:
    size = call(None, 0)
    if size > _LARGEST_XFA:
        raise DocumentError(f"the form has a part of more than {_LARGEST_XFA:,} bytes")
    buffer = ctypes.create_string_buffer(max(size, 1))
    length = call(buffer, size) if size else 0
    return buffer.raw[: min(length, size)]


class _Labels(Handler):
    """Collects the captions of fields by their names."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._fields: list[str] = []
        self._caption = 0
        self._parts: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in ("field", "exclGroup"):
            self._fields.append(attributes.get("name", ""))
        elif name == "caption":
            self._caption, self._parts = self._caption + 1, []

    def text(self, text: str) -> None:
        if self._caption:
            self._parts.append(text)

    def end(self, name: str) -> None:
        if name == "caption" and self._caption:
            self._caption -= 1
            text = " ".join("".join(self._parts).split()).rstrip(":")
            if text and self._fields and self._fields[-1]:
                self.found.setdefault(self._fields[-1], text[:200])
        elif name in ("field", "exclGroup") and self._fields:
            self._fields.pop()


class _Values(Handler):
    """Collects the elements of the data that have a text and no elements inside."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._depth = 0  # inside of the data
        self._parts: list[str] = []
        self._is_leaf = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._depth or name == "data":
            self._depth += 1
        self._parts, self._is_leaf = [], True

    def text(self, text: str) -> None:
        if self._depth:
            self._parts.append(text)

    def end(self, name: str) -> None:
        text = " ".join("".join(self._parts).split())
        if self._depth > 1 and self._is_leaf and text:
            self.found.append((name, text))
        self._depth -= self._depth > 0
        self._parts, self._is_leaf = [], False


def added(lines: Sequence[tuple[int, str]], text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines `label: value`, with their pages, whose value the pages do not print."""
    printed = " ".join(text.split())
    for page, line in lines:
        if " ".join(line.partition(": ")[2].split()) not in printed:
            yield page, line
