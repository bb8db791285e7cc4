"""Run queries against the open state of an index: single, batched, at several budgets, and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ketrag_fast.errors import InputError
from ketrag_fast.index.state import IndexState
from ketrag_fast.query.plan import plan_query
from ketrag_fast.query.query import (
    Filter,
    Query,
    QueryFields,
    as_query,
    batches_of,
    check_budget,
    check_threads,
)
from ketrag_fast.query.retrieval import run_plan
from ketrag_fast.types import Context

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback
    from ketrag_fast.types import Answer, Themes, ThemeSummaries


def retrieve(state: IndexState, query: str | Query, fields: QueryFields) -> Context:
    """Return the context of a query."""
    state, query = state.visible(as_query(query, fields))
    return run_plan(plan_query(state.opened, state.path, query), [query.text])[0][0]


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


def themes(
    state: IndexState, chosen: Filter | None, allow: Filter | None, progress: Callback | None
) -> Themes:
    """Return the themes of the documents that match both `filter` and `allow`."""
    from ketrag_fast.base.filters import allow_condition, filter_condition
    from ketrag_fast.query.themes.describe import find_themes
    from ketrag_fast.query.themes.summaries import with_summaries
    from ketrag_fast.storage.layout import Layout

    if allow is not None:
        state = state.restricted(allow_condition(allow), progress)
    condition = None if chosen is None else filter_condition(chosen)
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
    from ketrag_fast.base.filters import allow_condition, filter_condition
    from ketrag_fast.index import theme_summaries

    if allow is not None:
        state = state.restricted(allow_condition(allow), progress)
    condition = None if chosen is None else filter_condition(chosen)
    return theme_summaries.summarise_themes(state, condition, progress, dry_run=dry_run)
