"""Parse a filter from a mapping, in the form that document databases use, into a tree.

    {"year": {"$gte": 1990}, "lang": ["en", "de"], "$not": {"draft": True}}

A plain value means equality; a list means equality with any of its values. A field that holds a list matches
if one of its values does. A nested field is written `author.name`. `$ne` and `$nin` also match documents
without the field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ketrag_fast.errors import InputError

Value = str | float | bool
DEEPEST: Final = 60
"""Maximum nesting depth of a filter."""
MOST: Final = 10_000
"""Maximum size of a filter: each comparison, each of its values, and each `and`, `or`, `not`
and empty mapping counts as 1.
"""
COMPARISONS: Final = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists")
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
