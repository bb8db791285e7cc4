"""Conditions of `allow`, which restrict access to documents: one that excludes nothing is an error.

A filter narrows an answer, so a filter that every document passes is harmless. An `allow` that every
document passes opens the index, and usually comes from an empty variable: `{}`, `{"$and": [{}]}`,
`{"team": {"$nin": []}}`. Such conditions raise InputError. Conditions that no document passes
(`{"team": []}`, `{"$not": {}}`) are valid and show nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final

from ketrag_fast.base.filters.condition import Condition, FieldComparison
from ketrag_fast.base.filters.parser import filter_condition
from ketrag_fast.errors import InputError

MOST_ATOMS: Final = 10
"""Maximum number of distinct comparisons for which all combinations of outcomes are tried."""
_HINT: Final = 'say which documents may be seen, such as \'group=sales\' or {"group": ["sales", "all"]}'
_NEGATED: Final = frozenset(("$ne", "$nin"))

Atom = tuple[Any, ...]
"""The test of a comparison: field, kind of test, and the value with its type."""


def allow_condition(given: str | Mapping[str, Any]) -> Condition:
    """Return the condition of an `allow`, given as text or as a mapping.

    Raises InputError if it cannot be read, or if every document passes it whatever its metadata.
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
    """Return the error of a filter, worded for `allow`."""
    return InputError(error.message.replace("filter: ", "allow: ", 1), hint=error.hint)


def shown(given: str | Mapping[str, Any]) -> str:
    """Return the condition as the caller wrote it, shortened."""
    text = given if isinstance(given, str) else repr(given)
    return text if len(text) <= 200 else f"{text[:200]}..."


def holds_always(condition: Condition) -> bool:
    """Return whether every document passes, whatever its metadata.

    Tries every combination of outcomes of up to `MOST_ATOMS` distinct comparisons, which count as
    independent: `year=1 or year!=1` always holds. With more of them only what empty lists and empty
    conditions decide is recognised.
    """
    atoms = sorted(set(_atoms(condition)), key=repr)
    if len(atoms) > MOST_ATOMS:
        return _outcome(condition, {}) is True
    for values in product((False, True), repeat=len(atoms)):
        outcomes = dict(zip(atoms, values, strict=True))
        if _possible(outcomes) and _outcome(condition, outcomes) is not True:
            return False
    return True


def _possible(outcomes: Mapping[Atom, bool]) -> bool:
    """Return whether a document may have these outcomes: a field that is missing passes no comparison."""
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
    """Return what a comparison tests. Equality with any of several values is one test for each value."""
    if one.name == "$exists":
        return [(one.field, "$exists")]
    kind = "$in" if one.name in ("$eq", "$in", "$ne", "$nin") else one.name
    return [(one.field, kind, type(value).__name__, value) for value in one.values]


def _outcome(condition: Condition, outcomes: Mapping[Atom, bool]) -> bool | None:
    """Return whether a condition holds; None if that depends on tests without an outcome."""
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
    """Return the disjunction in three values: True if one is, None if one is unknown, else False."""
    listed = list(values)
    if any(value is True for value in listed):
        return True
    return None if None in listed else False
