"""The query: text, mode, limits and filters, validated on construction."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict

from ketrag_fast.errors import ConfigError, InputError
from ketrag_fast.query.limits import (
    check_budget,
    check_deadline,
    check_hops,
    check_min_score,
    check_text,
    check_top,
)

if TYPE_CHECKING:
    from ketrag_fast.base.filters import Condition

Filter = str | Mapping[str, Any]
"""A condition on document metadata: `"year>=1990 and lang=en"` or `{"year": {"$gte": 1990}}`."""


class QueryFields(TypedDict, total=False):
    """Keyword arguments of `Index.retrieve`: the fields of a `Query` except its text."""

    mode: str | None
    budget: int | None
    top: int | None
    min_score: float | None
    filter: Filter | None
    allow: Filter | None
    deadline: float | None
    explain: bool
    hops: Sequence[str]
    newest: bool | None


@dataclass(frozen=True, slots=True)
class Query:
    """A query: text, mode, limits and filters. A field that is None takes its value from the settings.

    Attributes:
        text: The question.
        mode: Name of the retrieval mode, or "auto".
        budget: Maximum size of the context in tokens.
        top: Maximum number of passages.
        min_score: Minimum relevance of a passage, from 0 to 1 (`Passage.relevance`).
        filter: Condition on document metadata. Only passages of matching documents are returned; other
            documents may lead to them.
        allow: Condition on metadata that selects the documents that the caller may see. The result is the
            same as from an index of these documents alone (see `Index.allowed`).
        deadline: Time limit in seconds.
        explain: Whether each passage includes the reasons why it was retrieved (`Passage.why`).
        hops: Names or sub-questions on the way to the answer that the caller already knows. Passages are
            ranked by the question and the hops; a reranker and a language model get the question alone.
        newest: Whether newer documents come first among passages of comparable relevance.

    Raises:
        EmptyQuery: The text is empty.
        ConfigError: `mode` is not a str, `budget` or `top` is negative or not a whole number, or `min_score`
            is not from 0 to 1.
        InputError: The text or a hop is not a str, a condition cannot be parsed, or the deadline is not a
            number.

    Examples:
        >>> from dataclasses import replace
        >>> from ketrag_fast import Query
        >>> query = Query("Who commanded the Fram?", budget=500, filter="year>=1890")
        >>> replace(query, mode="bm25").budget
        500
        >>> Query("Who?", budget=-1)
        Traceback (most recent call last):
            ...
        ketrag_fast.errors.ConfigError: budget must not be negative, got -1
    """

    text: str
    mode: str | None = None
    budget: int | None = None
    top: int | None = None
    filter: Filter | None = field(default=None, hash=False)
    allow: Filter | None = field(default=None, hash=False)
    deadline: float | None = None
    explain: bool = False
    hops: Sequence[str] = ()
    newest: bool | None = None
    min_score: float | None = None
    condition: Condition | None = field(default=None, init=False, repr=False, compare=False)
    """The parsed `filter`."""
    visible: Condition | None = field(default=None, init=False, repr=False, compare=False)
    """The parsed `allow`."""

    def __post_init__(self) -> None:
        check_text(self.text)
        if self.mode is not None and not isinstance(self.mode, str):
            raise ConfigError(f"mode must be a str, got a {type(self.mode).__name__}")
        if self.newest is not None and not isinstance(self.newest, bool):
            raise ConfigError(f"newest must be a bool, got a {type(self.newest).__name__}")
        assign = object.__setattr__  # the dataclass is frozen
        if self.budget is not None:
            assign(self, "budget", check_budget(self.budget))
        if self.top is not None:
            assign(self, "top", check_top(self.top))
        if self.min_score is not None:
            assign(self, "min_score", check_min_score(self.min_score))
        assign(self, "hops", check_hops(self.hops))
        if self.deadline is not None:
            check_deadline(self.deadline)
        if self.filter is not None:
            from ketrag_fast.base.filters import filter_condition

            assign(self, "condition", filter_condition(self.filter))
        if self.allow is not None:
            from ketrag_fast.base.filters import allow_condition

            assign(self, "visible", allow_condition(self.allow))

    def without_allow(self, deadline: float | None) -> Query:
        """Return the query for an index that holds only the allowed documents, with the time that is left."""
        return replace(self, allow=None, deadline=deadline)


@dataclass(frozen=True, slots=True)
class QueryBatch:
    """Queries with equal options, which are ranked together.

    `positions` are their positions in the caller's list.
    """

    query: Query
    """The first query. All fields except the text are the same for every query of the batch."""
    questions: list[str]
    positions: list[int]


def as_query(query: str | Query, fields: QueryFields) -> Query:
    """Return a query from a text and fields, or an existing query with these fields replaced."""
    if isinstance(query, Query):
        return replace(query, **fields) if fields else query
    return Query(query, **fields)


def batches_of(queries: Sequence[str | Query], fields: QueryFields) -> list[QueryBatch]:
    """Return the queries grouped by their options, in order of first appearance.

    `fields` applies to texts and replaces the fields of `Query` values.
    """
    if isinstance(queries, (str, bytes, Query)):
        raise InputError(
            "expected a list of queries, got a single one", hint="retrieve_many([TEXT]), or retrieve(TEXT)"
        )
    batches: dict[Hashable, QueryBatch] = {}
    for position, item in enumerate(queries):
        key: Hashable = None  # all texts have the same options, which are validated once
        query: Query | None = None
        if isinstance(item, Query):
            query = as_query(item, fields)
            key = _options_of(query)
        else:
            check_text(item, position)
        batch = batches.get(key)
        if batch is None:
            query = query or as_query(item, fields)
            batch = batches[key] = QueryBatch(query, [], [])
        batch.questions.append(item.text if isinstance(item, Query) else item)
        batch.positions.append(position)
    return list(batches.values())


def _options_of(query: Query) -> Hashable:
    """Return a key that is equal for queries with equal options. Conditions compare by their text."""
    conditions = repr(query.condition), repr(query.visible)
    options = (
        query.mode,
        query.budget,
        query.top,
        query.min_score,
        query.deadline,
        query.explain,
        query.hops,
        query.newest,
    )
    return *options, conditions
