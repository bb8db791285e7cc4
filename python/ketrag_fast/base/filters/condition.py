"""A filter as a tree, from a mapping as people know it from databases of documents.

    {"year": {"$gte": 1990}, "lang": ["en", "de"], "$not": {"draft": True}}

A plain value means equality, a list any of its values. A document's field that holds a list fits where one of
its values does; a field inside a field is `author.name`. `$ne` and `$nin` also fit documents without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ketrag_fast.errors import InputError

Value = str | float | bool
DEEPEST: Final = 60
"""Levels of nesting."""
MOST: Final = 10_000
"""Conditions and values of one filter: each comparison, each value it names, and each `and`, `or`, `not` and
empty mapping counts one.
"""
COMPARISONS: Final = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists")
_HINT: Final = 'such as \'year>=1990 and lang=en\', or {"year": {"$gte": 1990}, "lang": "en"}'


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """A field against values; `name` is one of `COMPARISONS`."""

    field: str
    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """Conditions of which all (`$and`), any (`$or`) or, of one, not that (`$not`) must hold."""

    name: str
    parts: tuple[Condition, ...]


Condition = FieldComparison | Joined


class Allowance:
    """Counts down the conditions and values that one filter may hold."""

    def __init__(self) -> None:
        self._left = MOST

    def take(self, count: int) -> None:
        """Raises InputError when the filter holds more than `MOST`."""
        self._left -= count
        if self._left < 0:
            raise wrong(f"it holds more than {MOST:,} conditions and values")


def wrong(text: str) -> InputError:
    """What is not a filter."""
    return InputError(f"filter: {text}", hint=_HINT)


def condition_of(given: Any) -> Condition:
    """The tree of a mapping. Raises InputError where it makes no sense."""
    return _mapping(given, 0, Allowance())


def _mapping(given: Any, depth: int, left: Allowance) -> Condition:
    if depth > DEEPEST:
        raise wrong(f"it is nested more than {DEEPEST} deep")
    if not isinstance(given, Mapping):
        raise wrong(f"a {type(given).__name__} stands where a mapping is due")
    parts: list[Condition] = []
    for name, value in given.items():
        if not isinstance(name, str):
            raise wrong(f"{name!r:.80} is no name of a field")
        if name in ("$and", "$or"):
            if not isinstance(value, (list, tuple)) or not value:
                raise wrong(f"{name} takes a list of conditions")
            left.take(1)
            parts.append(Joined(name, tuple(_mapping(one, depth + 1, left) for one in value)))
        elif name == "$not":
            left.take(1)
            parts.append(Joined(name, (_mapping(value, depth + 1, left),)))
        elif name.startswith("$"):
            raise wrong(f"there is no {name:.80}; it has $and, $or, $not, {', '.join(COMPARISONS)}")
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
        raise wrong(f"nothing is said of {field!r:.80}")
    return [
        make_comparison(field, str(name), one if name in ("$in", "$nin") else [one], left)
        for name, one in value.items()
    ]


def make_comparison(field: str, name: str, values: Sequence[Any], left: Allowance) -> FieldComparison:
    """One comparison, checked; it counts against what is `left`."""
    if name not in COMPARISONS:
        raise wrong(f"there is no {name:.80} of a field; there are {', '.join(COMPARISONS)}")
    if not isinstance(values, (list, tuple)):
        raise wrong(f"{name} of {field!r:.80} takes a list")
    left.take(1 + len(values))
    return FieldComparison(field, name, tuple(_value(field, name, one) for one in values))


def _value(field: str, name: str, value: Any) -> Value:
    if name == "$exists":
        if not isinstance(value, bool):
            raise wrong(f"$exists of {field!r:.80} is true or false")
        return value
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        try:
            number = float(value)
        except OverflowError:
            raise wrong(f"a number of {field!r:.80} is too large") from None
        if math.isfinite(number):
            return number
    raise wrong(f"{value!r:.80} of {field!r:.80} is neither a text nor a number, true or false")
