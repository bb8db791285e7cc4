"""Metadata as columns, and which documents fit a filter."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast.filters.condition import Comparison, Condition, Value, wrong

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]

_ORDERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_equal: Final[Callable[[Any, Any], Any]] = operator.eq
_DEEPEST: Final = 8
"""Levels of fields within fields that are columns."""


class Columns:
    """The fields of `count` documents' metadata: for each kind of value the documents, and the values."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        found: dict[str, dict[type, tuple[list[int], list[Any]]]] = {}
        count = 0
        for document, metadata in enumerate(rows):
            count += 1
            for field, value in _flat(metadata, "", 0):
                kind: type = type(value)
                documents, values = found.setdefault(field, {}).setdefault(kind, ([], []))
                documents.append(document)
                values.append(value)
        self.count = count
        self._columns = {
            field: {kind: (np.array(at), _array(kind, values)) for kind, (at, values) in kinds.items()}
            for field, kinds in found.items()
        }

    @property
    def fields(self) -> list[str]:
        """Their names, sorted."""
        return sorted(self._columns)

    def fitting(self, condition: Condition, *, names: bool = True) -> Bools:
        """For each document whether it fits. Raises InputError for a field that no document has; with
        `names` it lists those that there are.
        """
        if isinstance(condition, Comparison):
            return self._compared(condition, names)
        parts = [self.fitting(part, names=names) for part in condition.parts]
        if condition.name == "$not":
            return ~parts[0]
        whole: Bools = np.full(self.count, condition.name == "$and")
        for part in parts:
            whole = whole & part if condition.name == "$and" else whole | part
        return whole

    def _compared(self, one: Comparison, names: bool) -> Bools:
        kinds = self._columns.get(one.field)
        if kinds is None:
            if not self.count:
                return np.zeros(0, bool)
            listed = f"; there are: {', '.join(self.fields[:30]) or 'none'}" if names else ""
            raise wrong(f"no document has a field {one.field!r:.80}{listed}")
        if one.name == "$exists":
            there = np.zeros(self.count, bool)
            for documents, _ in kinds.values():
                there[documents] = True
            return there if one.values[0] else ~there
        fits = np.zeros(self.count, bool)
        for value in one.values:
            if type(value) not in kinds:
                continue
            documents, values = kinds[type(value)]
            compare = _ORDERS.get(one.name, _equal)
            near = compare(values, value)
            fits[documents[np.asarray(near, bool)]] = True
        return ~fits if one.name in ("$ne", "$nin") else fits


def _flat(metadata: Mapping[str, Any], before: str, depth: int) -> Iterator[tuple[str, Value]]:
    for name, value in metadata.items():
        field = f"{before}{name}"
        if isinstance(value, Mapping):
            if depth < _DEEPEST:
                yield from _flat(value, f"{field}.", depth + 1)
            continue
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, (bool, str)):
                yield field, one
            elif isinstance(one, (int, float)):
                yield field, _number(one)


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _array(kind: type, values: list[Any]) -> NDArray[Any]:
    """Texts stay Python's: one long one would make every row of a NumPy text array as long."""
    return np.array(values, object if kind is str else kind)
