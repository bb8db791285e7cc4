"""Fields of forms: check boxes and radio buttons as `[x]` and `[ ]`, and names that a page does not print."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

Placed = tuple[float, float, float, float, str]
"""A text and its box in PDF coordinates: left, top, right, bottom."""

MOST_FIELDS: Final = 20_000
"""Maximum number of fields of a page that are read; the others are drawn as the page draws them."""
_LONGEST_NAME: Final = 200
_LEAST_LETTERS: Final = 4
"""Shorter words of a name, such as "of the", are on most pages."""
_LINE: Final = 14.0
"""Height of a line in points: the name is at the first line of a higher field."""
_UNSEEN: Final = 2 | 32
"""Flags of annotations that viewers do not show: hidden, and not shown on a screen."""
_WORDS = re.compile(r"[^\W\d_]+")
_NO_NAME = re.compile(r"[\[\]#\d]")


class Field(NamedTuple):
    """A field of a form that has a value. `is_box`: a check box or a radio button."""

    box: tuple[float, float, float, float]
    name: str
    is_box: bool
    is_checked: bool


def take_fields(page: Any, form: Any, raw: Any) -> list[Field]:
    """Return the fields of a page that have a value, and remove check boxes and radio buttons from it."""
    found: list[Field] = []
    boxes: list[int] = []
    for number in range(min(raw.FPDFPage_GetAnnotCount(page.raw), MOST_FIELDS)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, number)
        if not annotation:
            continue
        try:
            field = _field(form, annotation, raw)
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
        if field is not None:
            found.append(field)
            if field.is_box:
                boxes.append(number)
    for number in reversed(boxes):
        raw.FPDFPage_RemoveAnnot(page.raw, number)
    return found


def _field(form: Any, annotation: Any, raw: Any) -> Field | None:
    if raw.FPDFAnnot_GetSubtype(annotation) != raw.FPDF_ANNOT_WIDGET:
        return None
    if raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
        return None
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    is_radio = kind == raw.FPDF_FORMFIELD_RADIOBUTTON
    is_box = is_radio or kind == raw.FPDF_FORMFIELD_CHECKBOX
    is_text = kind in (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX)
    rect = raw.FS_RECTF()
    if not (is_box or is_text) or not raw.FPDFAnnot_GetRect(annotation, rect):
        return None

    def text_of(function: Callable[..., int]) -> str:
        size = function(form, annotation, None, 0)
        if not 2 < size <= 2 * _LONGEST_NAME:
            return ""
        buffer = (ctypes.c_ushort * (size // 2 + 1))()
        function(form, annotation, buffer, size)
        return " ".join(bytes(buffer).decode("utf-16-le", "ignore").replace("\0", "").split())

    box = (rect.left, max(rect.top, rect.bottom), rect.right, min(rect.top, rect.bottom))
    if is_radio:
        name = _readable(text_of(raw.FPDFAnnot_GetFormFieldExportValue))
    else:
        name = text_of(raw.FPDFAnnot_GetFormFieldAlternateName)
        name = name or _readable(text_of(raw.FPDFAnnot_GetFormFieldName))
    if is_text:
        is_empty = raw.FPDFAnnot_GetFormFieldValue(form, annotation, None, 0) <= 2
        return None if is_empty or not name else Field(box, name, is_box=False, is_checked=False)
    return Field(box, name, is_box=True, is_checked=bool(raw.FPDFAnnot_IsChecked(form, annotation)))


def _readable(name: str) -> str:
    """Return the words of a name of a program, or nothing if it is only an identifier.

    >>> _readable("order.iban_number"), _readable("topmostSubform[0].f1_01[0]")
    ('iban number', '')
    """
    last = name.rpartition(".")[2].removesuffix("[0]")
    if _NO_NAME.search(last) or len(last) < 3:
        return ""
    return " ".join(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", last.replace("_", " ").replace("-", " ")).split())


def placed_texts(fields: list[Field], printed: str) -> Iterator[Placed]:
    """Yield the texts that are added to a page whose own text is `printed`.

    A name is added only if most of its words are missing on the page: a label that is printed is enough.
    """
    words = {word.casefold() for word in _WORDS.findall(printed)}
    for field in fields:
        left, top, right, bottom = field.box
        own = [word.casefold() for word in _WORDS.findall(field.name) if len(word) >= _LEAST_LETTERS]
        is_printed = 2 * sum(word in words for word in own) >= len(own)
        if field.is_box:
            sign = "[x]" if field.is_checked else "[ ]"
            yield left, top, right, bottom, sign if is_printed else f"{sign} {field.name}"
        elif not is_printed:
            yield left - 2.0, top, left, max(bottom, top - _LINE), field.name.rstrip(": ") + ":"
