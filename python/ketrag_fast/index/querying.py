"""Run queries against the open state of an index: contexts, answers, themes, and searches of its texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.index.state import IndexState
from ketrag_fast.query.plan import QueryPlan, plan_query
from ketrag_fast.query.query import (
    Clock,
    Filter,
    Query,
    QueryFields,
    as_query,
    batches_of,
    check_budget,
    check_threads,
    check_top,
)
from ketrag_fast.query.retrieval import run_plan
from ketrag_fast.records import replace
from ketrag_fast.types import Context

if TYPE_CHECKING:
    from ketrag_fast.base.filters import Condition
    from ketrag_fast.base.progress import Callback
    from ketrag_fast.index.left_out import LeftOutFiles
    from ketrag_fast.index.unindexed import UnindexedFiles
    from ketrag_fast.query.open_generation import FilterMask
    from ketrag_fast.query.search import Globs, Searcher
    from ketrag_fast.types import Answer, Excerpt, Failure, Files, Hits, Match, Themes, ThemeSummaries

_TOKENS = 1_000
"""Token budget per passage of a search."""
_PARTS = 3
"""Number of passages to rank per hit, because up to three neighbours are merged into one."""


def retrieve(state: IndexState, query: str | Query, fields: QueryFields) -> Context:
    """Return the context of a query."""
    query = as_query(query, fields)
    return run_plan(plan(state, query), [query.text])[0][0]


def plan(state: IndexState, query: Query) -> QueryPlan:
    """Return the plan of a query over the documents that it allows."""
    state, query = state.visible(query)
    return plan_query(state.opened, state.path, query)


def retrieve_many(
    state: IndexState,
    queries: Sequence[str | Query],
    fields: QueryFields,
    threads: int | None,
    budgets: Sequence[int] | None = None,
) -> list[list[Context]]:
    """Return a list of contexts for each query, one per budget; without `budgets`, one context."""
    if budgets is not None:
        if "budget" in fields:
            raise InputError("budget cannot be combined with budgets", hint="leave out budget")
        budgets = [check_budget(budget) for budget in budgets]
    batches = batches_of(queries, fields)
    workers = check_threads(state.opened.settings.threads if threads is None else threads)
    rows: list[list[Context]] = [[]] * len(queries)
    for batch in batches:
        count = len(batch.questions)
        own, query = state.visible(batch.query, count)
        plan = plan_query(own.opened, own.path, query, budgets=budgets, count=count)
        contexts = run_plan(plan, batch.questions, workers)
        for position, row in zip(batch.positions, contexts, strict=True):
            rows[position] = row
    return rows


def ask(state: IndexState, query: str | Query, fields: QueryFields, **options: Any) -> Answer:
    """Answer a query with an LLM; the options are those of `AnswerOptions`."""
    from ketrag_fast.query.answering import AnswerOptions, answer_query

    chosen = AnswerOptions(**options)
    state, query = state.visible(as_query(query, fields))
    return answer_query(state.opened, state.path, query, chosen)


# ---------------------------------------------------------------- themes


def themes(
    state: IndexState, chosen: Filter | None, allow: Filter | None, progress: Callback | None
) -> Themes:
    """Return the themes of the documents that match both filters."""
    from ketrag_fast.query.themes.describe import find_themes
    from ketrag_fast.query.themes.summaries import with_summaries
    from ketrag_fast.storage.layout import Layout

    state, condition = _matching(state, chosen, allow, progress)
    found = find_themes(state.opened, condition, progress)
    return with_summaries(state.opened, found, Layout(state.path).tables)


def summarise_themes(
    state: IndexState,
    chosen: Filter | None,
    allow: Filter | None,
    progress: Callback | None,
    *,
    dry_run: bool,
) -> ThemeSummaries:
    """Have an LLM summarise the themes that `themes` returns."""
    from ketrag_fast.index import theme_summaries

    state, condition = _matching(state, chosen, allow, progress)
    return theme_summaries.summarise_themes(state, condition, progress, dry_run=dry_run)


def _matching(
    state: IndexState, chosen: Filter | None, allow: Filter | None, progress: Callback | None = None
) -> tuple[IndexState, Condition | None]:
    """Return the state of the documents that `allow` permits, and the condition of a filter."""
    state = state if allow is None else state.restricted_by(allow, progress)
    if chosen is None:
        return state, None
    from ketrag_fast.base.filters import filter_condition  # it imports NumPy

    return state, filter_condition(chosen)


# ---------------------------------------------------------------- searches


def search(
    state: IndexState,
    query: str | Query,
    limit: int,
    fields: QueryFields,
    *,
    glob: Globs = None,
    grep: str | None = None,
    related: str | None = None,
) -> Hits:
    """Return the hits of a query, or the passages that belong to a place."""
    if related is not None:
        if query:
            raise InputError(
                "a search has either a query or related", hint="leave out the query: related ranks by links"
            )
        return _related(state, related, check_top(limit), fields, glob, grep)
    query = as_query(query, fields)
    plan, hits = search_plan(state, query, check_top(limit), glob, grep)
    return hits(run_plan(plan, [query.text], quoted=False)[0][0])


def _related(
    state: IndexState, place: str, count: int, fields: QueryFields, glob: Globs, grep: str | None
) -> Hits:
    """Return the passages that belong to a place `path:line`, a file, or a name in source code."""
    from ketrag_fast.query.definitions import NAME
    from ketrag_fast.query.excerpts import Excerpts, split_position
    from ketrag_fast.query.related import related_hits, related_units
    from ketrag_fast.query.search import Searcher

    query = as_query(place, {**fields, "literal": True})
    pattern = None if grep is None else pattern_of(grep)
    state, query = state.visible(query)
    searcher = Searcher(state.opened, state.folder)
    plan = searcher.plan(state.path, query, glob, pattern)
    excerpts, own, symbol = Excerpts(searcher), [], None
    visible = state.opened.filtered(None, plan.clock.left)
    for file, part in split_position(place):
        if excerpts.has(file):
            own = excerpts.units_at(file, part, visible)
            break
    else:
        symbol = place.strip()
        if NAME.fullmatch(symbol) is None:
            raise excerpts.unknown(place, visible)
    mask = None if plan.filtered is None else plan.filtered.mask
    found = related_units(state.opened, own, symbol, count, mask, plan.clock.left)
    return related_hits(searcher, place, found)


def search_plan(
    state: IndexState, query: Query, count: int, glob: Globs, grep: str | None
) -> tuple[QueryPlan, Callable[[Context], Hits]]:
    """Return the plan of a search, and the function that makes its best `count` hits from a context."""
    from ketrag_fast.index.annotations import description_for, descriptions_of
    from ketrag_fast.query.search import Searcher, shown_words

    pattern = None if grep is None else pattern_of(grep)
    if query.top is None:
        query = replace(query, top=count * _PARTS)
    if query.budget is None:
        query = replace(query, budget=count * _PARTS * _TOKENS)
    folder = state.path
    state, query = state.visible(query)
    searcher = Searcher(state.opened, state.folder)
    plan = searcher.plan(state.path, query, glob, pattern)

    def hits(context: Context) -> Hits:
        found = searcher.hits(context, count, shown_words(plan, query.text, context))
        described = descriptions_of(folder) if found else {}
        if not described:
            return found
        rows = (replace(hit, description=description_for(hit.path or "", described)) for hit in found)
        return replace(found, hits=tuple(rows))

    return plan, hits


def pattern_of(
    pattern: str, *, ignore_case: bool = False, words: bool = False, fixed: bool = False
) -> _core.Pattern:
    """Compile a pattern. Raises InputError if it is empty or invalid."""
    if not isinstance(pattern, str) or not pattern:
        raise InputError("the pattern is empty", hint="give a text or a regular expression")
    text = pattern.encode("utf-8", "replace").decode("utf-8")
    return _core.Pattern(text, any_case=ignore_case, words=words, literal=fixed)


class Chosen(NamedTuple):
    """The files and documents that an exact search reads, by their paths and by conditions on metadata."""

    glob: Globs
    filter: Filter | None
    allow: Filter | None
    only: str | None


def grep(
    state: IndexState,
    pattern: _core.Pattern,
    chosen: Chosen,
    *,
    limit: int | None,
    deadline: float | None,
) -> list[Match]:
    """Return the lines that match a pattern."""
    from ketrag_fast.base.scopes import check_scope
    from ketrag_fast.query.narrowing import in_scope

    check_scope(chosen.only)
    clock = Clock(state.opened.settings.deadline if deadline is None else deadline, 1)
    searcher, filtered = _searcher(state, chosen.filter, chosen.allow, clock)
    scope = in_scope(searcher.opened, filtered, chosen.only)
    most = None if limit is None else check_top(limit)
    if state.unindexed:
        indexed = searcher.grep(pattern, scope, chosen.glob, None, clock.left)
        found = [one for one in indexed if one.path not in state.unindexed]
        found = [*found, *_changed_lines(state, pattern, chosen, most)][:most]
    else:
        found = searcher.grep(pattern, scope, chosen.glob, most, clock.left)
    left = None if most is None else most - len(found)
    if left == 0 or not _sees_all(state, filtered, chosen.allow):
        return found
    return found + _left_out(state, chosen).lines(pattern, left, clock.left)


def grep_counts(state: IndexState, pattern: _core.Pattern, chosen: Chosen) -> dict[str, int]:
    """Return the number of matching lines by file."""
    from ketrag_fast.base.scopes import check_scope
    from ketrag_fast.query.narrowing import in_scope

    check_scope(chosen.only)
    clock = Clock(state.opened.settings.deadline, 1)
    searcher, filtered = _searcher(state, chosen.filter, chosen.allow, clock)
    scope = in_scope(searcher.opened, filtered, chosen.only)
    found = searcher.counts(pattern, scope, chosen.glob, clock.left)
    more: list[Match] = []
    if state.unindexed:
        found = {path: count for path, count in found.items() if path not in state.unindexed}
        more += _changed_lines(state, pattern, chosen, None)
    if _sees_all(state, filtered, chosen.allow):
        more += _left_out(state, chosen).lines(pattern, None, clock.left)
    for match in more:
        found[str(match.path)] = found.get(str(match.path), 0) + 1
    return found


def _changed_lines(
    state: IndexState, pattern: _core.Pattern, chosen: Chosen, most: int | None
) -> list[Match]:
    """Return the matching lines of changed files that are not indexed yet."""
    return _unindexed(state, chosen.filter, chosen.allow).lines(pattern, chosen.glob, chosen.only, most)


def unindexed_lines(state: IndexState, query: str, most: int) -> list[Match]:
    """Return at most `most` lines of files that are not indexed yet, with words of the query."""
    if not state.unindexed:
        return []
    words = _core.lexical_keywords(query)
    return _unindexed(state, None, None).lines_with_words(words, most) if words else []


def unsearched(state: IndexState, glob: Globs, only: str | None) -> list[Failure]:
    """Return the files of the sources that exact searches do not read, with the reasons."""
    chosen = Chosen(glob, None, None, only)
    return _left_out(state, chosen).unsearched() if _sees_all(state, None, None) else []


def files(state: IndexState, glob: Globs, chosen: Filter | None, allow: Filter | None) -> Files:
    """Return the indexed files."""
    searcher, filtered = _searcher(state, chosen, allow, Clock(None, 1))
    return searcher.files(filtered, glob)


def excerpt(
    state: IndexState,
    path: str | os.PathLike[str],
    lines: int | Sequence[int] | None,
    chosen: Filter | None,
    allow: Filter | None,
) -> Excerpt:
    """Return a range of lines of the indexed text of a file."""
    from ketrag_fast.query.excerpts import Excerpts, Part, split_position

    searcher, filtered = _searcher(state, chosen, allow, Clock(None, 1))
    excerpts = Excerpts(searcher)
    name = os.fspath(path)
    new = None
    if state.unindexed:
        unindexed = _unindexed(state, chosen, allow)
        if lines is not None:
            new = unindexed.excerpt(name, _range(lines))
        else:
            plain = ((file, part) for file, part in split_position(name) if part == Part(lines=part.lines))
            new = next(filter(None, (unindexed.excerpt(file, part.lines) for file, part in plain)), None)
    if new is not None:
        return new
    if lines is not None:
        return excerpts.excerpt(name, Part(lines=_range(lines)), filtered)
    for file, part in split_position(name):
        if excerpts.has(file):
            return excerpts.excerpt(file, part, filtered)
    raise excerpts.unknown(name, filtered)


def _searcher(
    state: IndexState, chosen: Filter | None, allow: Filter | None, clock: Clock
) -> tuple[Searcher, FilterMask | None]:
    """Return a searcher over the documents that `allow` permits, and the mask of a filter."""
    from ketrag_fast.query.search import Searcher

    state, condition = _matching(state, chosen, allow)
    opened = state.opened
    condition = opened.default_condition if chosen is None else condition
    return Searcher(opened, state.folder), opened.filtered(condition, clock.left)


def _unindexed(state: IndexState, chosen: Filter | None, allow: Filter | None) -> UnindexedFiles:
    """Return the changed files that are not indexed yet, restricted to what the caller may see."""
    from ketrag_fast.base.filters import allow_condition
    from ketrag_fast.index.unindexed import UnindexedFiles

    permitted, condition = _matching(state, chosen, allow)
    condition = state.opened.default_condition if chosen is None else condition
    rights = [*state.allows, *([] if allow is None else [allow_condition(allow)])]
    return UnindexedFiles(state, permitted, [*rights, *([] if condition is None else [condition])])


def _sees_all(state: IndexState, filtered: FilterMask | None, allow: Filter | None) -> bool:
    """Return whether a search covers files without documents, whose metadata meets no condition."""
    is_restricted = filtered is not None or allow is not None or bool(state.allows)
    return not is_restricted and state.settings.refresh != "never"


def _left_out(state: IndexState, chosen: Chosen) -> LeftOutFiles:
    from ketrag_fast.index.left_out import LeftOutFiles

    return LeftOutFiles(state, chosen.glob, chosen.only)


def _range(lines: Any) -> tuple[int, int | None]:
    """Return the first and last line; the last is None if only one number is given."""
    first, last = (lines, None) if isinstance(lines, int) else (lines[0], lines[-1])
    if not isinstance(first, int) or first < 1 or (last is not None and last < first):
        raise InputError(f"lines must be a range from 1 up, got {lines!r}", hint="such as (93, 110)")
    return first, last
