"""Metadata filters, which restrict a query, a listing or a removal to matching documents."""

from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.filters.allow import allow_condition
from ketrag_fast.base.filters.condition import Condition, condition_of, filter_condition, parse_filter

if TYPE_CHECKING:
    from ketrag_fast.base.filters.columns import Check, ColumnReader, Columns

_ARRAYS: Final = ("Check", "ColumnReader", "Columns")
"""Names of the module that imports NumPy, which a condition alone does not need."""

__all__ = [
    "Check",
    "ColumnReader",
    "Columns",
    "Condition",
    "allow_condition",
    "condition_of",
    "filter_condition",
    "parse_filter",
]


def __getattr__(name: str) -> Any:
    if name not in _ARRAYS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ketrag_fast.base.filters import columns

    return getattr(columns, name)
