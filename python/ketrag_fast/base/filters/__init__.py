"""Metadata filters, which restrict a query, a listing or a removal to matching documents."""

from ketrag_fast.base.filters.allow import allow_condition
from ketrag_fast.base.filters.columns import Check, ColumnReader, Columns
from ketrag_fast.base.filters.condition import Condition, condition_of, filter_condition, parse_filter

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
