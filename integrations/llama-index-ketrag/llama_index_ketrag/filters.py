"""LlamaIndex metadata filters as filters of an index."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

_ORDERS: Final = {
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
}


def index_filter(filters: MetadataFilters, node_keys: Collection[str]) -> dict[str, Any] | None:
    """Return a filter that every document passes whose passages pass `filters`, or None.

    The index applies it before ranking, so that matches far down the ranking are found; the nodes then pass
    LlamaIndex's rules. Conditions on `node_keys` (rank, unit, ...) say nothing about a document and are left
    out.
    """
    parts = [_condition(one, node_keys) for one in filters.filters]
    known = [part for part in parts if part is not None]
    if filters.condition in (None, FilterCondition.AND):
        return {"$and": known} if known else None
    if filters.condition == FilterCondition.OR and known and len(known) == len(parts):
        return {"$or": known}
    return None


def _condition(one: Any, node_keys: Collection[str]) -> dict[str, Any] | None:
    if not isinstance(one, MetadataFilter) or one.key in node_keys or one.key.startswith("$"):
        return None
    if one.operator in _ORDERS:
        return {one.key: {_ORDERS[one.operator]: one.value}}
    if one.operator == FilterOperator.EQ and one.value is not None:
        return {one.key: {"$in": _with_truth_values([one.value])}}
    if one.operator == FilterOperator.IN and isinstance(one.value, list):
        return {one.key: {"$in": _with_truth_values(one.value)}}
    return None


def _with_truth_values(values: list[Any]) -> list[Any]:
    """Add True for 1 and False for 0, which are equal in Python and not in an index."""
    return [*values, *(bool(value) for value in values if value in (0, 1))]
