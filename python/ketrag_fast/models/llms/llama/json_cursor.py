"""Where a growing JSON text stands in its form, and what must come next.

A grammar inside llama.cpp cannot be asked what it forces. The forms of `json_form` can: each value is
known by its first character, so one pass over the text keeps a stack of what is still open.
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
    """This text, and nothing else."""

    text: str


@dataclass(frozen=True, slots=True)
class _InText:
    """Inside a string after `count` characters; `escape` is set within an escape."""

    form: TextForm
    count: int = 0
    escape: int = 0


@dataclass(frozen=True, slots=True)
class _InWords:
    """What may still follow of each word that fits so far."""

    tails: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _InNumber:
    """A number so far: its end is known by what follows."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class _InRow:
    """After `count` items of the open part of an array."""

    form: ListForm
    count: int = 0


_Open: TypeAlias = _Due | _InText | _InWords | _InNumber | _InRow | Form


_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_LONGEST_NUMBER: Final = 64
"""Characters; the grammar writes at most 39."""
_FAR: Final = 256  # parts; what is forced beyond them is found when they are written


class MismatchError(ValueError):
    """The text does not have the form."""


class JsonCursor:
    """Feed it the text as it grows; `forced` is what must follow, as far as that is certain."""

    def __init__(self, form: Form) -> None:
        self._stack: list[_Open] = [form]

    @property
    def finished(self) -> bool:
        """Whether the value is complete and nothing can follow."""
        return not self._stack

    def copy(self) -> JsonCursor:
        """One that goes its own way from here."""
        twin = JsonCursor.__new__(JsonCursor)
        twin._stack = list(self._stack)
        return twin

    def feed(self, text: str) -> None:
        """Goes on by this text. Raises MismatchError, after which the cursor is of no use."""
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
                        raise MismatchError(f"{sign!r} where {text[0]!r} is due")
                    if text[1:]:
                        stack.append(_Due(text[1:]))
                    return
                case _InText(_, count, escape):
                    if escape:
                        # after the backslash (-1), or so many hexadecimal digits before the end
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
                            raise MismatchError(f"{sign!r} begins no word")
                        continue  # a complete word that is the beginning of another
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
                        raise MismatchError(f"{text!r} is no number")
                case _InRow(form, count):
                    if self._row(form, count, sign):
                        return
                case _:
                    self._enter(top, sign)

    def _row(self, form: ListForm, count: int, sign: str) -> bool:
        """One character between the items of an array; False if it belongs to the item that begins."""
        at_start = count == 0 and not form.first
        if sign == "]" and count >= form.least:
            return True
        if form.rest is None or (form.most is not None and count >= form.most):
            raise MismatchError(f"{sign!r} where an array must end")
        if not at_start and sign != ",":
            raise MismatchError(f"{sign!r} between the items of an array")
        self._stack += [_InRow(form, count + 1), form.rest]
        return not at_start

    def _enter(self, form: _Open, sign: str) -> None:
        """Replaces a value that begins here by its parts."""
        match form:
            case EitherForm(forms):
                fitting = [one for one in forms if sign in starts_of(one)]
                if not fitting:
                    raise MismatchError(f"{sign!r} begins none of the alternatives")
                self._stack.append(fitting[0])
            case _:
                self._stack += reversed(_parts(form))

    def forced(self) -> str:
        """The text that must follow, whatever the model thinks; "" where it has a choice."""
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
                    # part of a word is no place to stop at: its tokens would not be the model's own
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
