"""The query: text, mode, limits and filters, validated on construction, and the clock of a query."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Final, TypedDict

from ketrag_fast import _core
from ketrag_fast.base.config.fields import LONGEST_SECONDS, short_repr
from ketrag_fast.errors import ConfigError, DeadlineExceeded, EmptyQuery, InputError
from ketrag_fast.records import dataclass, field, replace

if TYPE_CHECKING:
    from ketrag_fast.base.filters import Condition
    from ketrag_fast.query.conversation import Continued
    from ketrag_fast.types import Answer, Turn

ENDLESS: Final = 2**62
"""Limit of token and passage counts: above the size of any index, and twice it fits the core's integers."""
MOST_HOPS: Final = 20
_MOST_THREADS: Final = 4096

Filter = str | Mapping[str, Any]
"""A condition on document metadata: `"year>=1990 and lang=en"` or `{"year": {"$gte": 1990}}`."""


_OTHER_NAMES: Final = {
    **dict.fromkeys(("k", "n", "limit", "top_k", "n_results", "num_results"), "top (of search: limit)"),
    **dict.fromkeys(("max_tokens", "tokens"), "budget"),
    **dict.fromkeys(("where", "filters"), "filter"),
    **dict.fromkeys(("system", "strategy"), "mode"),
    **dict.fromkeys(("timeout", "seconds"), "deadline"),
}
"""Names that other libraries have for the arguments of a query."""


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
    literal: bool
    only: str | None
    history: Sequence[Turn | Answer | Mapping[str, Any]]


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
        history: Turns of a conversation before this question, oldest first: `Turn`, answers of `ask`, or the
            JSON of turns. A question that does not stand alone takes names and words from the last ones.
        newest: Whether newer documents come first among passages of comparable relevance.
        literal: Read the text as plain words: quotes, `-`, `*` and fields have no meaning, and words that no
            document has are not replaced by similar ones. For programs that pass on the text of others.
        only: Only files of a repository that are "code", "docs", "config" or "tests", by their paths.

    Raises:
        EmptyQuery: The text is empty.
        ConfigError: `mode` is not a str, `budget` or `top` is negative or not a whole number, or `min_score`
            is not from 0 to 1, or `only` is unknown.
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
    literal: bool = False
    history: Sequence[Turn | Answer | Mapping[str, Any]] = field(default=(), hash=False)
    only: str | None = None
    condition: Condition | None = field(default=None, init=False, repr=False, compare=False)
    """The parsed `filter`."""
    visible: Condition | None = field(default=None, init=False, repr=False, compare=False)
    """The parsed `allow`."""
    continued: Continued | None = field(default=None, init=False, repr=False, compare=False)
    """The names and words that the question takes from `history`; None without history."""

    def __post_init__(self) -> None:
        check_text(self.text)
        if self.mode is not None and not isinstance(self.mode, str):
            raise ConfigError(f"mode must be a str, got a {type(self.mode).__name__}")
        if self.newest is not None and not isinstance(self.newest, bool):
            raise ConfigError(f"newest must be a bool, got a {type(self.newest).__name__}")
        if not isinstance(self.literal, bool):
            raise ConfigError(f"literal must be a bool, got a {type(self.literal).__name__}")
        if self.only is not None:
            from ketrag_fast.base.scopes import check_scope

            check_scope(self.only)
        assign = object.__setattr__  # the dataclass is frozen
        if self.budget is not None:
            assign(self, "budget", check_budget(self.budget))
        if self.top is not None:
            assign(self, "top", check_top(self.top))
        if self.min_score is not None:
            assign(self, "min_score", check_min_score(self.min_score))
        assign(self, "hops", check_hops(self.hops))
        if self.history:
            from ketrag_fast.query.conversation import check_history, continue_question

            turns = check_history(self.history)
            assign(self, "history", turns)
            assign(self, "continued", continue_question(self.text, turns))
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
    for name in fields:
        if name not in QueryFields.__annotations__:
            raise _unknown_field(name)
    if isinstance(query, Query):
        return replace(query, **fields) if fields else query
    return Query(query, **fields)


def _unknown_field(name: str) -> ConfigError:
    """Return the error for an argument that no query has, with the name that was probably meant."""
    from difflib import get_close_matches

    known = list(QueryFields.__annotations__)
    meant = _OTHER_NAMES.get(name) or next(iter(get_close_matches(name, known, 1)), None)
    hint = f"did you mean {meant}?" if meant else f"arguments are {', '.join(known)}"
    return ConfigError(f"a query has no argument {name!r}", hint=hint)


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
            has_own_plan = fields.get("history") or (not fields.get("literal") and has_marks(item))
            if has_own_plan:  # its phrases and fields select passages, or it takes names from its history
                query, key = as_query(item, fields), item
        batch = batches.get(key)
        if batch is None:
            query = query or as_query(item, fields)
            batch = batches[key] = QueryBatch(query, [], [])
        batch.questions.append(item.text if isinstance(item, Query) else item)
        batch.positions.append(position)
    return list(batches.values())


def _options_of(query: Query) -> Hashable:
    """Return a key that is equal for queries with equal options. Conditions compare by their text."""
    conditions = repr(query.condition), repr(query.visible)  # as values, True and 1 are equal
    has_own_plan = query.history or (not query.literal and has_marks(query.text))
    text = query.text if has_own_plan else "-"
    return replace(query, text=text, filter=None, allow=None), conditions


def has_marks(text: str) -> bool:
    """Return whether a text has marks of the query language: phrases, exclusions, prefixes or fields."""
    return bool(_core.query_parts(core_text(text)))


def check_text(text: str, position: int | None = None) -> str:
    """Return the text of a query. `position` is its position in a list, for the error message.

    Raises EmptyQuery if it is blank, InputError if it is not a str.
    """
    name = "the question" if position is None else f"question {position}"
    if not isinstance(text, str):
        raise InputError(f"{name} is of type {type(text).__name__}", hint="pass a str or a Query")
    if not text.strip():
        raise EmptyQuery(f"{name} is empty", hint="give at least one word")
    return text


def check_hops(hops: Sequence[str]) -> tuple[str, ...]:
    """Return the hops of a query. Raises InputError if they are not a short list of strings."""
    if isinstance(hops, str) or not all(isinstance(hop, str) and hop.strip() for hop in hops):
        raise InputError("hops must be a list of texts that are not empty", hint='such as ["Orion Pictures"]')
    if len(hops) > MOST_HOPS:
        raise InputError(f"hops must be at most {MOST_HOPS}, got {len(hops)}", hint="leave out older ones")
    return tuple(hops)


def core_text(text: str) -> str:
    """Return a text in the form that the core accepts.

    A lone surrogate (a byte that could not be decoded) has no UTF-8 form, and no keyword contains one.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def whole(name: str, value: Any) -> int:
    """Return a Python or NumPy integer as an int. Raises ConfigError for any other type."""
    try:
        return index(value)
    except TypeError:
        raise ConfigError(f"{name} must be a whole number, got a {type(value).__name__}") from None


def check_budget(tokens: int) -> int:
    """Return a budget that fits the core's integers. Raises ConfigError if it is negative or not whole."""
    return _count("budget", tokens, "tokens")


def check_top(passages: int) -> int:
    """Return a number of passages that fits the core's integers. Raises ConfigError if it is negative."""
    return _count("top", passages, "passages")


def _count(name: str, value: int, of: str) -> int:
    number = whole(name, value)
    if number < 0:
        raise ConfigError(
            f"{name} must not be negative, got {short_repr(number)}", hint=f"give a number of {of}"
        )
    return min(number, ENDLESS)


def check_threads(threads: int) -> int:
    """Return a valid number of threads. Raises InputError if it is out of range."""
    if not 0 <= whole("threads", threads) <= _MOST_THREADS:
        raise InputError(f"threads must be from 0 to {_MOST_THREADS}, got {short_repr(threads)}")
    return threads


def check_min_score(relevance: float) -> float:
    """Return a minimum relevance. Raises ConfigError if it is not a number from 0 to 1."""
    number = isinstance(relevance, (int, float)) and not isinstance(relevance, bool)
    if not (number and 0 <= relevance <= 1):
        raise ConfigError(
            f"min_score must be from 0 to 1, got {short_repr(relevance)}", hint="0 keeps every passage"
        )
    return float(relevance)


def check_deadline(seconds: float) -> float:
    """Return a deadline in seconds. Raises InputError if it is negative, infinite or not a number."""
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not (number and 0 <= seconds < float("inf")):
        raise InputError(
            f"deadline must be a number of seconds from 0 up, got {short_repr(seconds)}",
            hint="leave it out for no limit",
        )
    return seconds


class Clock:
    """Measures the time left for a batch of queries, from validation to the last context."""

    def __init__(self, seconds: float | None, queries: int) -> None:
        """Start the clock. `seconds` is the deadline of one query, None for no limit."""
        self._start = time.monotonic()
        self._queries = max(queries, 1)
        self._seconds = None if seconds is None else min(check_deadline(seconds), LONGEST_SECONDS)

    def left(self) -> float | None:
        """Return the seconds left for the batch, or None without a limit. Raises DeadlineExceeded at 0."""
        if self._seconds is None:
            return None
        left = self._seconds * self._queries - (time.monotonic() - self._start)
        if left <= 0:
            raise DeadlineExceeded(
                f"the deadline of {self._seconds:g} s passed before anything was ranked",
                hint="allow more time, or use a faster mode",
            )
        return left

    def each(self) -> float | None:
        """Return the seconds left, divided by the number of queries in the batch."""
        left = self.left()
        return None if left is None else left / self._queries
