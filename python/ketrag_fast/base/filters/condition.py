"""Parse a filter into a tree, from a mapping in the form that document databases use, or from its short form.

    {"year": {"$gte": 1990}, "lang": ["en", "de"], "$not": {"draft": True}}

A plain value means equality; a list means equality with any of its values. A field that holds a list matches
if one of its values does. A nested field is written `author.name`. `$ne` and `$nin` also match documents
without the field. `parse_filter` reads the short form.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ketrag_fast.errors import InputError
from ketrag_fast.records import dataclass

Value = str | float | bool
DEEPEST: Final = 60
"""Maximum nesting depth of a filter."""
MOST: Final = 10_000
"""Maximum size of a filter: each comparison, each of its values, and each `and`, `or`, `not`
and empty mapping counts as 1.
"""
COMPARISONS: Final = (*("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$contains", "$exists"),)
_HINT: Final = 'such as \'year>=1990 and lang=en\', or {"year": {"$gte": 1990}, "lang": "en"}'


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """A field compared with values; `name` is one of `COMPARISONS`."""

    field: str
    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """A conjunction (`$and`), a disjunction (`$or`) or the negation of one condition (`$not`)."""

    name: str
    parts: tuple[Condition, ...]


Condition = FieldComparison | Joined


class Allowance:
    """A counter of the conditions and values that a filter may still contain."""

    def __init__(self) -> None:
        self._left = MOST

    def take(self, count: int) -> None:
        """Raise InputError when the filter contains more than `MOST`."""
        self._left -= count
        if self._left < 0:
            raise wrong(f"it has more than {MOST:,} conditions and values")


def wrong(text: str, hint: str = _HINT) -> InputError:
    """Return the error for an invalid filter."""
    return InputError(f"filter: {text}", hint=hint)


def condition_of(given: Any) -> Condition:
    """Parse a mapping into a tree. Raises InputError for an invalid filter."""
    return _mapping(given, 0, Allowance())


def _mapping(given: Any, depth: int, left: Allowance) -> Condition:
    if depth > DEEPEST:
        raise wrong(f"it is nested more than {DEEPEST} deep")
    if not isinstance(given, Mapping):
        raise wrong(f"expected a mapping, got a {type(given).__name__}")
    parts: list[Condition] = []
    for name, value in given.items():
        if not isinstance(name, str):
            raise wrong(f"the name of a field must be a text, got {name!r:.80}")
        if name in ("$and", "$or"):
            if not isinstance(value, (list, tuple)) or not value:
                raise wrong(f"{name} must be a non-empty list of conditions")
            left.take(1)
            parts.append(Joined(name, tuple(_mapping(one, depth + 1, left) for one in value)))
        elif name == "$not":
            left.take(1)
            parts.append(Joined(name, (_mapping(value, depth + 1, left),)))
        elif name.startswith("$"):
            raise wrong(f"unknown operator {name:.80}; expected $and, $or, $not, {', '.join(COMPARISONS)}")
        else:
            parts += _field(name, value, left)
    if len(parts) == 1:
        return parts[0]
    left.take(1)
    return Joined("$and", tuple(parts))


def _field(field: str, value: Any, left: Allowance) -> list[Condition]:
    if not isinstance(value, Mapping):
        many = isinstance(value, (list, tuple))
        return [make_comparison(field, "$in" if many else "$eq", value if many else [value], left)]
    if not value:
        raise wrong(f"{field!r:.80} has no condition")
    return [
        make_comparison(field, str(name), one if name in ("$in", "$nin") else [one], left)
        for name, one in value.items()
    ]


def make_comparison(field: str, name: str, values: Sequence[Any], left: Allowance) -> FieldComparison:
    """Return one validated comparison, and subtract its size from `left`."""
    if name not in COMPARISONS:
        raise wrong(f"unknown operator {name:.80} of a field; expected one of {', '.join(COMPARISONS)}")
    if not isinstance(values, (list, tuple)):
        raise wrong(f"{name} of {field!r:.80} must be a list")
    left.take(1 + len(values))
    return FieldComparison(field, name, tuple(_value(field, name, one) for one in values))


def _value(field: str, name: str, value: Any) -> Value:
    if name == "$exists":
        if not isinstance(value, bool):
            raise wrong(f"$exists of {field!r:.80} must be true or false")
        return value
    if name == "$contains" and not (isinstance(value, str) and value.strip()):
        raise wrong(f"~ of {field!r:.80} needs a text that is not empty")
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        try:
            is_finite = math.isfinite(value)
        except OverflowError:
            raise wrong(f"a number of {field!r:.80} is too large") from None
        if is_finite:
            return exact_number(value)
    raise wrong(f"{value!r:.80} of {field!r:.80} is not a text, a finite number, true or false")


def exact_number(value: float) -> float:
    """Convert a number to float; return an integer unchanged if no float equals it."""
    try:
        number = float(value)
    except OverflowError:
        return int(value)
    return number if number == value else int(value)


def kind_of(value: Value) -> type:
    """Return the type of the column that contains a value: `str`, `float` or `bool`."""
    return float if type(value) is int else type(value)


LONGEST: Final = 100_000
_NAMES: Final = {
    "=": "$eq",
    "==": "$eq",
    "!=": "$ne",
    "<": "$lt",
    "<=": "$lte",
    ">": "$gt",
    ">=": "$gte",
    "~": "$contains",
}
_QUOTES: Final = r"""(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|"""
_TOKEN: Final = re.compile(_QUOTES + r"""(?P<sign>==|!=|<=|>=|[=<>~(),])|(?P<word>[^\s=<>~!(),"']+))""")
_VALUE_TOKEN: Final = re.compile(_QUOTES + r"""(?P<sign>==|!=|<=|>=|[=<>(),])|(?P<word>[^\s=<>!(),"']+))""")
"""A token where a value is expected: it may contain a tilde."""
_INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9]\d{0,299})")
"""A number, but not a code such as `007`, which tables and records keep as text."""
_NUMBER: Final = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_JOINS: Final = ("and", "or", "not", "in", "exists")


def filter_condition(given: str | Mapping[str, Any]) -> Condition:
    """Parse a filter given as text or as a mapping. Raises InputError if it is invalid."""
    return parse_filter(given) if isinstance(given, str) else condition_of(given)


def parse_filter(text: str) -> Condition:
    """Parse the short form: `year>=1990 and (lang=en or lang=de) and not draft=true`.

        FIELD = VALUE   also ==, !=, <, <=, >, >=;   FIELD in (VALUE, ...);   FIELD exists
        FIELD ~ TEXT    a text with words that begin so, in any case and without accents

    A value is a number, `true`, `false`, a word, or a quoted string. `and` binds tighter than `or`. A text
    that starts with a brace is the long form in JSON. Raises InputError with the position of the mistake.
    """
    if text.lstrip().startswith("{"):
        return _from_json(text)
    if len(text) > LONGEST:
        raise wrong(f"it has {len(text):,} characters, more than {LONGEST:,}")
    reader = _FilterParser(text)
    if reader.kind is None:
        raise wrong("it is empty")
    found = reader.either(0)
    if reader.kind is not None:
        raise reader.unexpected("and, or, or the end")
    return found


def _from_json(text: str) -> Condition:
    try:
        given = json.loads(text)
    except RecursionError:
        raise wrong(f"it is nested more than {DEEPEST} deep") from None
    except ValueError as error:
        raise wrong(f"it starts with a brace but is not valid JSON: {error}") from None
    return condition_of(given)


class _FilterParser:
    """A recursive-descent parser that reads one token ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.kind: str | None = None
        self.value = ""
        self._left = Allowance()
        self._next()

    def _next(self, *, is_value: bool = False) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        if self._at == len(self._text):
            self.kind, self.value = None, ""
            return
        match = _VALUE_TOKEN.match(self._text, self._at) if is_value else _TOKEN.match(self._text, self._at)
        if match is None:
            raise wrong(f"cannot be read at character {self._at + 1}: {self._text[self._at : self._at + 40]}")
        self._at, self.kind = match.end(), match.lastgroup
        self.value = match[self.kind] if self.kind is not None else ""

    def unexpected(self, expected: str) -> Exception:
        """Return the error for a token other than `expected`."""
        here = "the end" if self.kind is None else f"{self.value:.40}"
        return wrong(f"expected {expected}, found {here} at character {self._at}")

    def _is(self, word: str) -> bool:
        return self.kind == "word" and self.value.lower() == word

    def _takes(self, sign: str, *, before_value: bool = False) -> bool:
        if self.kind == "sign" and self.value == sign:
            self._next(is_value=before_value)
            return True
        return False

    def either(self, depth: int) -> Condition:
        return self._joined("or", "$or", depth)

    def _joined(self, word: str, name: str, depth: int) -> Condition:
        below = self._one if word == "and" else lambda depth: self._joined("and", "$and", depth)
        parts = [below(depth)]
        while self._is(word):
            self._next()
            parts.append(below(depth))
        if len(parts) == 1:
            return parts[0]
        self._left.take(1)
        return Joined(name, tuple(parts))

    def _one(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise wrong(f"it is nested more than {DEEPEST} deep")
        if self._is("not"):
            self._next()
            self._left.take(1)
            return Joined("$not", (self._one(depth + 1),))
        if self._takes("("):
            found = self.either(depth + 1)
            if not self._takes(")"):
                raise self.unexpected("a closing bracket")
            return found
        return self._comparison()

    def _comparison(self) -> FieldComparison:
        if self.kind not in ("word", "quoted") or (self.kind == "word" and self.value.lower() in _JOINS):
            raise self.unexpected("the name of a field")
        field = _plain(self.value) if self.kind == "quoted" else self.value
        self._next()
        if self._is("exists"):
            self._next()
            return make_comparison(field, "$exists", [True], self._left)
        if self._is("in"):
            self._next()
            if not self._takes("(", before_value=True):
                raise self.unexpected("an opening bracket")
            values = [self._value()]
            while self._takes(",", before_value=True):
                values.append(self._value())
            if not self._takes(")"):
                raise self.unexpected("a comma or a closing bracket")
            return make_comparison(field, "$in", values, self._left)
        if self.kind != "sign" or self.value not in _NAMES:
            raise self.unexpected("=, !=, <, <=, >, >=, ~, in or exists")
        name = _NAMES[self.value]
        self._next(is_value=True)
        return make_comparison(field, name, [self._value()], self._left)

    def _value(self) -> Value:
        if self.kind not in ("word", "quoted"):
            raise self.unexpected("a value")
        quoted, text = self.kind == "quoted", self.value
        self._next()
        if quoted:
            return _plain(text)
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        if _INTEGER.fullmatch(text):
            return int(text)
        return float(text) if _NUMBER.fullmatch(text) else text


def _plain(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted[1:-1])
