"""Track a growing JSON text in its form, and find the text that must follow.

llama.cpp does not report what a grammar forces. The forms of `json_form` do: each value is determined by its
first character, so one pass over the text keeps a stack of open forms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ketrag_fast.models.llms.llama.json_form import (
    EitherForm,
    Form,
    ListForm,
    NumberForm,
    ObjectForm,
    TextForm,
    WordsForm,
    compact,
    starts_of,
)


@dataclass(frozen=True, slots=True)
class _Due:
    """A fixed text that must follow."""

    text: str


@dataclass(frozen=True, slots=True)
class _InText:
    """Inside a string after `count` characters; `escape` is set within an escape."""

    form: TextForm
    count: int = 0
    escape: int = 0


@dataclass(frozen=True, slots=True)
class _InWords:
    """The remaining texts of the constants that match so far."""

    tails: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _InNumber:
    """A partial number; the next character determines whether it ends."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class _InRow:
    """After `count` items of the open part of an array."""

    form: ListForm
    count: int = 0


_Open: TypeAlias = _Due | _InText | _InWords | _InNumber | _InRow | Form


_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_LONGEST_NUMBER: Final = 64
"""Maximum length of a number in characters; the grammar writes up to 39."""
_FAR: Final = 256  # maximum number of forced parts at a time


class MismatchError(ValueError):
    """The text does not have the form."""


class JsonCursor:
    """A cursor that is fed with the growing text; `forced` returns the text that must follow."""

    def __init__(self, form: Form) -> None:
        self._stack: list[_Open] = [form]

    @property
    def finished(self) -> bool:
        """Whether the value is complete and nothing can follow."""
        return not self._stack

    def copy(self) -> JsonCursor:
        """Return an independent copy."""
        twin = JsonCursor.__new__(JsonCursor)
        twin._stack = list(self._stack)
        return twin

    def feed(self, text: str) -> None:
        """Advance by a text. Raises MismatchError, after which the cursor cannot be used."""
        for sign in text:
            self._step(sign)

    def _step(self, sign: str) -> None:
        stack = self._stack
        while True:
            if not stack:
                raise MismatchError(f"{sign!r} after the end")
            top = stack.pop()
            match top:
                case _Due(text):
                    if text[0] != sign:
                        raise MismatchError(f"expected {text[0]!r}, got {sign!r}")
                    if text[1:]:
                        stack.append(_Due(text[1:]))
                    return
                case _InText(_, count, escape):
                    if escape:
                        # -1 directly after the backslash, else the number of hexadecimal digits left
                        if sign not in ('"\\/bfnrtu' if escape < 0 else "0123456789abcdefABCDEF"):
                            raise MismatchError(f"{sign!r} in an escape")
                        left = (4 if sign == "u" else 0) if escape < 0 else escape - 1
                        stack.append(replace(top, escape=left, count=count + (left == 0)))
                    elif sign == "\\":
                        stack.append(replace(top, escape=-1))
                    elif sign != '"':
                        stack.append(replace(top, count=count + 1))
                    return
                case _InWords(tails):
                    fitting = tuple(tail[1:] for tail in tails if tail[:1] == sign)
                    if not fitting:
                        if "" not in tails:
                            raise MismatchError(f"{sign!r} fits no constant")
                        continue  # a complete constant that is the prefix of another
                    if any(fitting):
                        stack.append(_InWords(fitting))
                    return
                case _InNumber(text):
                    if sign in "0123456789.eE+-":
                        if len(text) >= _LONGEST_NUMBER:
                            raise MismatchError(f"a number of more than {_LONGEST_NUMBER} characters")
                        stack.append(_InNumber(text + sign))
                        return
                    if not _NUMBER.fullmatch(text):
                        raise MismatchError(f"{text!r} is not a number")
                case _InRow(form, count):
                    if self._row(form, count, sign):
                        return
                case _:
                    self._enter(top, sign)

    def _row(self, form: ListForm, count: int, sign: str) -> bool:
        """Handle a character between array items; return False if it belongs to the next item."""
        at_start = count == 0 and not form.first
        if sign == "]" and count >= form.least:
            return True
        if form.rest is None or (form.most is not None and count >= form.most):
            raise MismatchError(f"expected the end of an array, got {sign!r}")
        if not at_start and sign != ",":
            raise MismatchError(f"{sign!r} between the items of an array")
        self._stack += [_InRow(form, count + 1), form.rest]
        return not at_start

    def _enter(self, form: _Open, sign: str) -> None:
        """Replace the form of a value that begins here by its parts."""
        match form:
            case EitherForm(forms):
                fitting = [one for one in forms if sign in starts_of(one)]
                if not fitting:
                    raise MismatchError(f"{sign!r} begins none of the alternatives")
                self._stack.append(fitting[0])
            case _:
                self._stack += reversed(_parts(form))

    def forced(self) -> str:
        """Return the text that must follow, or "" if the model has a choice."""
        out: list[str] = []
        stack = list(self._stack)
        while stack and len(out) < _FAR:
            top = stack.pop()
            match top:
                case _Due(text):
                    out.append(text)
                case _InText(form, count, escape):
                    if escape or form.most is None or count < form.most:
                        break
                    out.append('"')
                case _InWords(tails):
                    common = _common(tails)
                    # do not stop inside a constant: its tokens would differ from the model's
                    if len(tails) > 1:
                        out.append(common[:1] if common[:1] == '"' else "")
                        break
                    out.append(common)
                case _InRow(form, count):
                    start = count == 0 and not form.first
                    if form.rest is None or (form.most is not None and count >= form.most):
                        out.append("]")
                    elif count < form.least:
                        out.append("" if start else ",")
                        stack += [_InRow(form, count + 1), form.rest]
                    else:
                        break
                case _InNumber() | NumberForm() | EitherForm():
                    break
                case _:
                    stack += reversed(_parts(top))
        return "".join(out)


def _common(texts: tuple[str, ...]) -> str:
    first, last = min(texts), max(texts)
    same = (n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(same, len(first))]


def _parts(form: _Open) -> list[_Open]:
    match form:
        case WordsForm(texts):
            return [_InWords(texts)]
        case TextForm():
            return [_Due('"'), _InText(form)]
        case NumberForm():
            return [_InNumber()]
        case ListForm(first):
            parts: list[_Open] = [_Due("[")]
            for number, one in enumerate(first):
                parts += [_Due(","), one] if number else [one]
            return [*parts, _InRow(form)]
        case ObjectForm(members):
            out: list[_Open] = []
            for number, (key, value) in enumerate(members):
                out += [_Due(("," if number else "{") + compact(key) + ":"), value]
            return [*out, _Due("}")]
        case _:
            return [form]
