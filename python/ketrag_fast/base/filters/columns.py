"""Store metadata as columns, and find the documents that match a filter.

Each node of a filter costs a few NumPy passes over one column, regardless of the number of values: strings
are numbered when they are read, so a list of thousands of values needs a look-up per value and one pass.
`check` is called between nodes and between slices of rows, so that a filter stops at the query's deadline.
"""

from __future__ import annotations

import json
import math
import operator
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast.base.filters.condition import Condition, FieldComparison, Value, exact_number, kind_of, wrong
from ketrag_fast.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]

Check = Callable[[], object]
"""A function called repeatedly during the work; it raises an exception to stop the work."""

_ORDERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_DEEPEST: Final = 8
"""Maximum nesting depth of fields that are stored as columns."""
_SLICE: Final = 512
"""Number of documents read between two calls of `check`."""
_FEW: Final = 8
"""Maximum number of values that are compared one by one; more values are sorted first."""
_SOURCES: Final = (
    "metadata comes from front matter, columns of tables, mail headers, and `metadata` of JSON lines"
)
_PAUSE: Final = 0.02
"""Seconds between two checks while another thread reads the metadata."""


_LETTERS: Final = str.maketrans(
    {**dict(zip("łøđħŧı", "lodhti", strict=True)), "æ": "ae", "œ": "oe"},
)
"""Letters with strokes, which have no decomposition in Unicode."""


def folded(text: str) -> str:
    """Return a text without accents and case, as filters compare it."""
    parts = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return "".join(part for part in parts if not unicodedata.combining(part))


def _unchecked() -> None:
    """A check that never stops the work."""


@dataclass
class _Listed:
    """The rows of one field and value type; row `i` belongs to document `documents[i]`."""

    documents: NDArray[np.int64]

    def is_whole(self, count: int) -> bool:
        """Return whether each of `count` documents has exactly one row."""
        return len(self.documents) == count and self._ascends

    @cached_property
    def _ascends(self) -> bool:
        return bool((np.diff(self.documents) > 0).all())


@dataclass
class _Numbers(_Listed):
    """Numbers or booleans of one field: row `i` has `values[i]`.

    Integers that float64 cannot represent are Python integers in a column of objects.
    """

    values: NDArray[Any]

    def among(self, values: Sequence[Any]) -> Bools:
        """Return for each row whether its value is one of `values`."""
        if self.values.dtype == object:
            wanted = frozenset(values)
            return np.fromiter((value in wanted for value in self.values), bool, len(self.values))
        values = [value for value in values if type(value) is not int]  # no float64 equals it
        if len(values) > _FEW:
            return np.isin(self.values, np.array(values, self.values.dtype))
        found = np.zeros(len(self.values), bool)
        for value in values:
            found |= self.values == value
        return found

    def ordered(self, name: str, value: Any) -> Bools:
        """Return for each row whether the comparison of its value with `value` by the operator holds."""
        own = self.values.astype(object) if type(value) is int else self.values
        found: Bools = _ORDERS[name](own, value).astype(bool)
        return found


@dataclass
class _Texts(_Listed):
    """Strings of one field: row `i` has the string with number `codes[i]`."""

    codes: NDArray[np.int64]
    numbers: Mapping[str, int]

    @cached_property
    def _sorted(self) -> tuple[list[str], NDArray[np.int64]]:
        """The sorted strings, and for each row the rank of its string."""
        texts = sorted(self.numbers)
        ranks = np.empty(len(texts), np.int64)
        ranks[[self.numbers[text] for text in texts]] = np.arange(len(texts))
        return texts, ranks[self.codes]

    def spellings(self, values: Sequence[Any]) -> list[str]:
        """Return the strings such as "TRUE" of a sheet that are written like the booleans among `values`."""
        wanted = {str(value).lower() for value in values if isinstance(value, bool)}
        return [text for text in self.numbers if text.lower() in wanted] if wanted else []

    def among(self, values: Sequence[Any]) -> Bools:
        """Return for each row whether its string is one of `values`."""
        chosen = np.zeros(len(self.numbers), bool)
        chosen[[self.numbers[value] for value in values if value in self.numbers]] = True
        return chosen[self.codes]

    def containing(self, text: str) -> Bools:
        """Return for each row whether its string contains a text at the beginning of a word.

        Case, accents and the amount of white space do not matter.
        """
        words = map(re.escape, folded(text).split())
        wanted = re.compile(r"(?<![^\W_])" + r"\s+".join(words))
        chosen = np.zeros(len(self.numbers), bool)
        for known, number in self.numbers.items():
            chosen[number] = wanted.search(folded(known)) is not None
        return chosen[self.codes]

    def ordered(self, name: str, value: Any) -> Bools:
        """Return for each row whether the comparison of its string with `value`, by code points, holds."""
        texts, ranks = self._sorted
        bound = (bisect_left if name in ("$gte", "$lt") else bisect_right)(texts, value)
        return ranks >= bound if name in ("$gt", "$gte") else ranks < bound


_Column = _Numbers | _Texts


class Columns:
    """The metadata of `count` documents: a column for each combination of field and value type."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        collected = _Collected()
        collected.add(rows)
        self._set_columns(collected)

    @classmethod
    def _of(cls, collected: _Collected) -> Columns:
        columns = cls.__new__(cls)
        columns._set_columns(collected)
        return columns

    def _set_columns(self, collected: _Collected) -> None:
        self.count = collected.count
        self._columns = {
            field: {kind: rows.column(kind) for kind, rows in kinds.items()}
            for field, kinds in collected.fields.items()
        }

    @property
    def fields(self) -> list[str]:
        """The names of the fields, sorted."""
        return sorted(self._columns)

    def each_text(self, field: str) -> dict[int, str]:
        """Return the text of a field by document, of documents that have one; the last one of several."""
        found: dict[int, str] = {}
        for column in self._columns.get(field, {}).values():
            if isinstance(column, _Texts):
                texts = list(column.numbers)
                rows = zip(column.documents.tolist(), column.codes.tolist(), strict=True)
                found |= {document: texts[code] for document, code in rows}
            elif column.values.dtype != bool:
                rows = zip(column.documents.tolist(), column.values.tolist(), strict=True)
                found |= {document: f"{number:.0f}" for document, number in rows}
        return found

    def _listed(self) -> str:
        """Return the end of an error about an unknown field: a list of the existing fields."""
        return (
            f"; known fields: {', '.join(self.fields[:30])}" if self._columns else ": they have no metadata"
        )

    def fitting(self, condition: Condition, *, names: bool = True, check: Check = _unchecked) -> Bools:
        """Return for each document whether it matches.

        Raises InputError for a field that no document has (`names`: list the existing fields), and
        any exception that `check` raises, which is called at every node.
        """
        check()
        if isinstance(condition, FieldComparison):
            return self._compared(condition, names)
        if condition.name == "$not":
            return ~self.fitting(condition.parts[0], names=names, check=check)
        every = condition.name == "$and"
        whole: Bools = np.full(self.count, every)
        for part in condition.parts:
            fits = self.fitting(part, names=names, check=check)
            if every:
                whole &= fits
            else:
                whole |= fits
        return whole

    def _compared(self, one: FieldComparison, names: bool) -> Bools:
        kinds = self._columns.get(one.field)
        if kinds is None:
            if not self.count:
                return np.zeros(0, bool)
            text = f"no document has a field {one.field!r:.80}{self._listed() if names else ''}"
            raise wrong(text) if self._columns or not names else wrong(text, _SOURCES)
        if one.name == "$exists":
            there = np.zeros(self.count, bool)
            for column in kinds.values():
                there[column.documents] = True
            return there if one.values[0] else ~there
        fits = np.zeros(self.count, bool)
        for kind, column in kinds.items():
            values = [value for value in one.values if kind_of(value) is kind]
            if isinstance(column, _Texts) and one.name not in _ORDERS:
                values += column.spellings(one.values)
            if not values:
                continue
            if one.name in _ORDERS:
                rows = column.ordered(one.name, values[0])
            elif one.name != "$contains":
                rows = column.among(values)
            elif isinstance(column, _Texts):
                rows = column.containing(str(values[0]))
            else:
                continue
            fits |= self._documents(column, rows)
        return ~fits if one.name in ("$ne", "$nin") else fits

    def _documents(self, column: _Column, rows: Bools) -> Bools:
        """Map matching rows to documents. Most columns have exactly one row per document."""
        if column.is_whole(self.count):
            return rows
        fits = np.zeros(self.count, bool)
        fits[column.documents[rows]] = True
        return fits


class ColumnReader:
    """Reads the metadata of an opened index into columns when a filter first needs them.

    One thread reads in slices while others wait. If the `check` of a caller raises, the next caller continues
    from there, so that the columns are completed even if all deadlines are short.
    """

    def __init__(self, rows: Callable[[], Iterator[str]]) -> None:
        """Set `rows`, a function that returns an iterator over the metadata of all documents as JSON."""
        self._rows = rows
        self._lock = Lock()
        self._left: Iterator[str] | None = None
        self._collected = _Collected()
        self._columns: Columns | None = None

    def columns(self, check: Check = _unchecked) -> Columns:
        """Return the columns, reading them first if necessary.

        Raises any exception of `check`, and ValueError, TypeError, AttributeError or RecursionError for rows
        that are not metadata.
        """
        if self._columns is not None:
            return self._columns
        while not self._lock.acquire(timeout=_PAUSE):
            check()
        try:
            while self._columns is None:
                check()
                if not self._read_slice():
                    self._columns = Columns._of(self._collected)
                    self._left, self._collected = None, _Collected()
            return self._columns
        finally:
            self._lock.release()

    def _read_slice(self) -> bool:
        """Read the next slice of rows; return False at the end."""
        try:
            if self._left is None:
                self._left, self._collected = self._rows(), _Collected()
            rows = [json.loads(row) for row in islice(self._left, _SLICE)]
            self._collected.add(rows)
        except BaseException:
            self._left = None
            raise
        return bool(rows)


class _Rows:
    """The documents and values of one field and value type."""

    def __init__(self) -> None:
        self.documents: list[int] = []
        self.values: list[Any] = []
        self.numbers: dict[str, int] = {}

    def add(self, document: int, value: Value) -> None:
        self.documents.append(document)
        if isinstance(value, str):
            self.values.append(self.numbers.setdefault(value, len(self.numbers)))
        else:
            self.values.append(value)

    def column(self, kind: type) -> _Column:
        documents = np.array(self.documents, np.int64)
        if kind is str:
            return _Texts(documents, np.array(self.values, np.int64), self.numbers)
        is_exact = any(type(value) is int for value in self.values)
        return _Numbers(documents, np.array(self.values, object if is_exact else kind))


class _Collected:
    """Rows of metadata, collected by field and value type."""

    def __init__(self) -> None:
        self.count = 0
        self.fields: dict[str, dict[type, _Rows]] = {}

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        for metadata in rows:
            for field, value in _flat(metadata, "", 0):
                kinds = self.fields.setdefault(field, {})
                kind = kind_of(value)
                if kind not in kinds:
                    kinds[kind] = _Rows()
                kinds[kind].add(self.count, value)
            self.count += 1


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
            elif isinstance(one, (int, float)) and abs(one) != math.inf and one == one:
                yield field, exact_number(one)
