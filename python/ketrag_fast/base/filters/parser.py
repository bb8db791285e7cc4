"""Parse the short form of a filter: `year>=1990 and (lang=en or lang=de) and not draft=true`.

    FIELD = VALUE   also ==, !=, <, <=, >, >=;   FIELD in (VALUE, ...);   FIELD exists

A value is a number, `true`, `false`, a word, or a quoted string. `and` binds tighter than `or`. A text that
starts with a brace is parsed as the long form in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from ketrag_fast.base.filters.condition import (
    DEEPEST,
    Allowance,
    Condition,
    FieldComparison,
    Joined,
    Value,
    condition_of,
    make_comparison,
    wrong,
)

LONGEST: Final = 100_000
_NAMES: Final = {"=": "$eq", "==": "$eq", "!=": "$ne", "<": "$lt", "<=": "$lte", ">": "$gt", ">=": "$gte"}
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign>==|!=|<=|>=|[=<>(),])|(?P<word>[^\s=<>!(),"']+))"""
)
_INTEGER: Final = re.compile(r"[+-]?\d{1,300}")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_JOINS: Final = ("and", "or", "not", "in", "exists")


def filter_condition(given: str | Mapping[str, Any]) -> Condition:
    """Parse a filter given as text or as a mapping. Raises InputError if it is invalid."""
    return parse_filter(given) if isinstance(given, str) else condition_of(given)


def parse_filter(text: str) -> Condition:
    """Parse a filter in short form or as JSON. Raises InputError with the position of the mistake."""
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

    def _next(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        if self._at == len(self._text):
            self.kind, self.value = None, ""
            return
        match = _TOKEN.match(self._text, self._at)
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

    def _takes(self, sign: str) -> bool:
        if self.kind == "sign" and self.value == sign:
            self._next()
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
            if not self._takes("("):
                raise self.unexpected("an opening bracket")
            values = [self._value()]
            while self._takes(","):
                values.append(self._value())
            if not self._takes(")"):
                raise self.unexpected("a comma or a closing bracket")
            return make_comparison(field, "$in", values, self._left)
        if self.kind != "sign" or self.value not in _NAMES:
            raise self.unexpected("=, !=, <, <=, >, >=, in or exists")
        name = _NAMES[self.value]
        self._next()
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
