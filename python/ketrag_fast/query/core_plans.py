"""Queries that the core answers without Python: their plans, the HTTP front end, and warm-up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ketrag_fast import _core
from ketrag_fast.errors import KetragError
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.plan import QueryPlan, plan_query
from ketrag_fast.query.query import Query
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.shared.memory_bound import memory_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.query_vectors import QueryEmbedder

Write = Callable[[Any], bytes]
"""Function that returns a value as JSON."""
Plan = _core.Plan
"""Plan of the core for requests that differ only in their text."""
Front = _core.Front
"""HTTP front end that answers plain requests from plans and forwards all other requests."""
RequestLog = _core.RequestLog
"""Log with a line for each request, written by a thread."""
_TEXT: Final = 300
"""Length in characters of the text that is used as a query to warm up."""


def prepare_plan(opened: Opened, path: Path, query: Query, write: Write) -> Plan | None:
    """Return a plan that answers queries with the same options as JSON, without the interpreter.

    Returns None if the contexts need Python: explanations, reranking, channels in Python, printed graph
    nodes, neighbours, or approximate search. Raises what `plan_query` raises.
    """
    plan = _plan_of_core(opened, path, query)
    if plan is None:
        return None
    embedder = _embedder_of(plan)
    cautions = (opened.cautions.get(channel.name) for channel in plan.mode.channels)
    return Plan(
        opened.searcher,
        plan.request(),
        mode=plan.mode.name,
        kind=opened.unit_kind,
        generation=opened.generation.number,
        budget=plan.budgets[0],
        cautions=[text for text in cautions if text is not None],
        fitting=None if plan.filtered is None else plan.filtered.units,
        describe=opened.descriptions(write),
        embed=None if embedder is None else partial(_embed, embedder),
        model=id(embedder),
        parallel=embedder is not None and embedder.is_parallel,
        literal=query.literal,
    )


def _plan_of_core(opened: Opened, path: Path, query: Query) -> QueryPlan | None:
    """Return the plan of a query if the core alone can answer it, else None."""
    plan = plan_query(opened, path, query)
    recipe, channels = plan.mode.recipe, plan.mode.channels
    approximate = _embedder_of(plan) is not None and bool(opened.graphs) and recipe.join != "fuse"
    needs_python = (
        plan.explain
        or plan.hops
        or plan.neighbourhoods
        or recipe.surveys
        or approximate
        or plan.settings.rerank is not None
        or plan.newest is not None
        or plan.has_terms
        or any(channel.rank is not None or channel.cite is not None for channel in channels)
    )
    return None if needs_python else plan


def _embedder_of(plan: QueryPlan) -> QueryEmbedder | None:
    """Return the model whose vectors the mode uses, or None."""
    unused = all(channel.vector == "no" for channel in plan.mode.channels)
    return None if unused else plan.opened.questions


def _embed(embedder: QueryEmbedder, questions: Sequence[str], seconds: float) -> NDArray[np.float32]:
    return embedder.vectors(questions, seconds)


def warm_up(opened: Opened, path: Path, go_on: Callable[[], bool] = lambda: True) -> int:
    """Read the data that a generation's modes need, up to the setting `memory`; return the bytes read.

    Modes that need an LLM or other parts in Python are skipped, and no query is sent to an endpoint.

    Raises:
        Cancelled: `go_on` returned False.
        IndexDamaged: A file is damaged.
    """
    text = opened.searcher.sample(_TEXT)
    if text is None or not text.strip():
        return 0
    for mode, missing in opened.missing.items():
        if missing is None and go_on():
            _answer(opened, path, mode, text)

    def report(*_: Any) -> bool:
        return go_on()

    return opened.searcher.read_ahead(memory_of(opened.settings) * 1_000_000, report=report)


def _answer(opened: Opened, path: Path, mode: str, text: str) -> None:
    """Answer a query in a mode of the core, to open the arrays that the mode needs."""
    try:
        plan = _plan_of_core(opened, path, Query(text, mode=mode))
    except KetragError:  # real queries in this mode report the error
        return
    if plan is None:
        return
    vector = None
    if opened.questions is not None:  # any vector of length 1
        dimension = StoredVectors.of(opened.generation.stages["vectors"]).dimension
        vector = np.full(dimension, dimension**-0.5, np.float32)
    opened.searcher.answer(plan.request(), text, vector=vector)
