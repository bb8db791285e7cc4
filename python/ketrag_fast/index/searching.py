"""Search the open state of an index: ranked, by exact pattern, and by location."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ketrag_fast import _core
from ketrag_fast.base.filters import allow_condition, filter_condition
from ketrag_fast.errors import InputError
from ketrag_fast.index.descriptions import description_for, descriptions_of
from ketrag_fast.index.state import IndexState
from ketrag_fast.query.open_generation import FilterMask
from ketrag_fast.query.query import Clock, Filter, Query, QueryFields, as_query, check_top
from ketrag_fast.query.search import Globs, Searcher
from ketrag_fast.types import Excerpt, Files, Hits, Match

_TOKENS = 1_000
"""Token budget per passage."""
_PARTS = 3
"""Number of passages to rank per hit, because up to three neighbours are merged into one."""


def search(
    state: IndexState,
    query: str | Query,
    n: int,
    fields: QueryFields,
    *,
    glob: Globs = None,
    grep: str | None = None,
) -> Hits:
    """Return the hits of a query."""
    count = check_top(n)
    query = as_query(query, fields)
    pattern = None if grep is None else pattern_of(grep)
    if query.top is None:
        query = replace(query, top=count * _PARTS)
    if query.budget is None:
        query = replace(query, budget=count * _PARTS * _TOKENS)
    folder = state.path
    state, query = state.visible(query)
    searcher = Searcher(state.opened, state.folder)
    hits = searcher.search(state.path, query, count, glob, pattern)
    described = descriptions_of(folder) if hits else {}
    if not described:
        return hits
    rows = (replace(hit, description=description_for(hit.path or "", described)) for hit in hits)
    return replace(hits, hits=tuple(rows))


def pattern_of(
    pattern: str, *, ignore_case: bool = False, words: bool = False, fixed: bool = False
) -> _core.Pattern:
    """Compile a pattern. Raises InputError if it is empty or invalid."""
    if not isinstance(pattern, str) or not pattern:
        raise InputError("the pattern is empty", hint="give a text or a regular expression")
    text = pattern.encode("utf-8", "replace").decode("utf-8")
    return _core.Pattern(text, any_case=ignore_case, words=words, literal=fixed)


def _open(
    state: IndexState, chosen: Filter | None, allow: Filter | None, clock: Clock
) -> tuple[Searcher, FilterMask | None]:
    """Return a searcher over the documents that `allow` permits, and the mask of a filter."""
    if allow is not None:
        state = state.restricted(allow_condition(allow))
    opened = state.opened
    condition = opened.default_condition if chosen is None else filter_condition(chosen)
    return Searcher(opened, state.folder), opened.filtered(condition, clock.left)


def grep(
    state: IndexState,
    pattern: _core.Pattern,
    *,
    glob: Globs = None,
    filter: Filter | None = None,  # noqa: A002 - as in `Query`
    allow: Filter | None = None,
    limit: int | None = None,
    deadline: float | None = None,
) -> list[Match]:
    """Return the lines that match a pattern."""
    clock = Clock(state.opened.settings.deadline if deadline is None else deadline, 1)
    searcher, filtered = _open(state, filter, allow, clock)
    return searcher.grep(pattern, filtered, glob, None if limit is None else check_top(limit), clock.left)


def grep_counts(
    state: IndexState,
    pattern: _core.Pattern,
    *,
    glob: Globs = None,
    filter: Filter | None = None,  # noqa: A002 - as in `Query`
    allow: Filter | None = None,
) -> dict[str, int]:
    """Return the number of matching lines by file."""
    clock = Clock(state.opened.settings.deadline, 1)
    searcher, filtered = _open(state, filter, allow, clock)
    return searcher.counts(pattern, filtered, glob, clock.left)


def files(
    state: IndexState,
    *,
    glob: Globs = None,
    filter: Filter | None = None,  # noqa: A002 - as in `Query`
    allow: Filter | None = None,
) -> Files:
    """Return the indexed files."""
    searcher, filtered = _open(state, filter, allow, Clock(None, 1))
    return searcher.files(filtered, glob)


def excerpt(
    state: IndexState,
    path: str | os.PathLike[str],
    lines: int | Sequence[int] | None,
    *,
    filter: Filter | None = None,  # noqa: A002 - as in `Query`
    allow: Filter | None = None,
) -> Excerpt:
    """Return a range of lines of the indexed text of a file."""
    from ketrag_fast.query.excerpts import Excerpts, Part, split_position, unknown

    searcher, filtered = _open(state, filter, allow, Clock(None, 1))
    excerpts = Excerpts(searcher)
    name = os.fspath(path)
    if lines is not None:
        return excerpts.excerpt(name, Part(lines=_range(lines)), filtered)
    for file, part in split_position(name):
        if excerpts.has(file):
            return excerpts.excerpt(file, part, filtered)
    raise unknown(name)


def _range(lines: Any) -> tuple[int, int | None]:
    """Return the first and last line; the last is None if only one number is given."""
    first, last = (lines, None) if isinstance(lines, int) else (lines[0], lines[-1])
    if not isinstance(first, int) or first < 1 or (last is not None and last < first):
        raise InputError(f"lines must be a range from 1 up, got {lines!r}", hint="such as (93, 110)")
    return first, last
