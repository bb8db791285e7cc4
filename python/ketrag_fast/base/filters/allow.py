"""Conditions of `allow`, which restrict access to documents. A condition that excludes nothing is an error.

A filter only narrows results, so a filter that every document passes is harmless. An `allow` that every
document passes exposes the whole index, and usually comes from an empty variable: `{}`, `{"$and": [{}]}`,
`{"team": {"$nin": []}}`. Such conditions raise InputError. Conditions that no document passes
(`{"team": []}`, `{"$not": {}}`) are valid: they show no documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final

from ketrag_fast.base.filters.condition import Condition, FieldComparison, filter_condition
from ketrag_fast.errors import InputError

MOST_ATOMS: Final = 10
"""Maximum number of distinct comparisons for which all combinations of outcomes are tried."""
_HINT: Final = 'say which documents may be seen, such as \'group=sales\' or {"group": ["sales", "all"]}'
_NEGATED: Final = frozenset(("$ne", "$nin"))

Atom = tuple[Any, ...]
"""One test: field, kind of comparison, and the value with its type."""


def allow_condition(given: str | Mapping[str, Any]) -> Condition:
    """Return the condition of an `allow`, given as text or as a mapping.

    Raises InputError if it cannot be parsed, or if every document passes regardless of its metadata.
    """
    try:
        condition = filter_condition(given)
    except InputError as error:
        raise as_allow(error) from None
    if holds_always(condition):
        raise InputError(
            f"allow: {shown(given)} holds for every document, whatever its metadata: is a variable or a list "
            "empty?",
            hint=_HINT,
        )
    return condition


def as_allow(error: InputError) -> InputError:
    """Reword the error of a filter for `allow`."""
    return InputError(error.message.replace("filter: ", "allow: ", 1), hint=error.hint)


def shown(given: str | Mapping[str, Any]) -> str:
    """Return a condition as the caller wrote it, shortened."""
    text = given if isinstance(given, str) else repr(given)
    return text if len(text) <= 200 else f"{text[:200]}..."


def holds_always(condition: Condition) -> bool:
    """Return whether every document passes, regardless of its metadata.

    Tries all combinations of outcomes of up to `MOST_ATOMS` distinct comparisons, which are treated as
    independent: `year=1 or year!=1` always holds. With more comparisons, only conditions decided by empty
    lists and empty conditions are recognised.
    """
    atoms = list(set(_atoms(condition)))
    if len(atoms) > MOST_ATOMS:
        return _outcome(condition, {}) is True
    for values in product((False, True), repeat=len(atoms)):
        outcomes = dict(zip(atoms, values, strict=True))
        if _possible(outcomes) and _outcome(condition, outcomes) is not True:
            return False
    return True


def _possible(outcomes: Mapping[Atom, bool]) -> bool:
    """Return whether a document can have these outcomes; a missing field passes no comparison."""
    return not any(
        passed and outcomes.get((atom[0], "$exists")) is False for atom, passed in outcomes.items()
    )


def _atoms(condition: Condition) -> Iterator[Atom]:
    if isinstance(condition, FieldComparison):
        yield from _tested(condition)
        return
    for part in condition.parts:
        yield from _atoms(part)


def _tested(one: FieldComparison) -> list[Atom]:
    """Split a comparison into tests. Equality with any of several values is one test per value."""
    if one.name == "$exists":
        return [(one.field, "$exists")]
    kind = "$in" if one.name in ("$eq", "$ne", "$nin") else one.name
    return [(one.field, kind, type(value).__name__, value) for value in one.values]


def _outcome(condition: Condition, outcomes: Mapping[Atom, bool]) -> bool | None:
    """Return whether a condition holds; None if it depends on tests whose outcome is unknown."""
    if isinstance(condition, FieldComparison):
        found = _any(outcomes.get(atom) for atom in _tested(condition))
        negated = condition.name in _NEGATED or (condition.name == "$exists" and condition.values == (False,))
        return _not(found) if negated else found
    parts = [_outcome(part, outcomes) for part in condition.parts]
    if condition.name == "$not":
        return _not(parts[0])
    return _any(parts) if condition.name == "$or" else _not(_any(map(_not, parts)))


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _any(values: Iterable[bool | None]) -> bool | None:
    """Return a three-valued OR: True if any value is True, else None if any is None, else False."""
    listed = list(values)
    if any(value is True for value in listed):
        return True
    return None if None in listed else False
