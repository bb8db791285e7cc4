"""Query plans that the core answers without Python, and the core's HTTP front end that uses them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast import _core
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.plan import QueryPlan, plan_query
from ketrag_fast.query.query import Query

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.query_vectors import QueryEmbedder

Write = Callable[[Any], bytes]
"""Function that returns a value as JSON."""


Plan = _core.Plan
"""Plan of the core for requests that differ only in their text."""
Front = _core.Front
"""HTTP front end that answers plain requests from plans and forwards all other requests."""


def prepare_plan(opened: Opened, path: Path, query: Query, write: Write) -> Plan | None:
    """Return a plan that answers queries with the same options as JSON, without the interpreter.

    Returns None if the contexts need Python: explanations, reranking, channels in Python, printed graph
    nodes, neighbours, or approximate search. Raises what `plan_query` raises.
    """
    plan = plan_of_core(opened, path, query)
    if plan is None:
        return None
    embedder = _embedder_of(plan)
    split = opened.generation.manifest.settings.get("split_level", 0) != 0
    cautions = (opened.cautions.get(channel.name) for channel in plan.mode.channels)
    return Plan(
        opened.searcher,
        plan.request(),
        mode=plan.mode.name,
        kind="subchunk" if split else "chunk",
        generation=opened.generation.number,
        budget=plan.budgets[0],
        cautions=[text for text in cautions if text is not None],
        fitting=None if plan.filtered is None else plan.filtered.units,
        describe=opened.descriptions(write),
        embed=None if embedder is None else partial(_embed, embedder),
        model=id(embedder),
        parallel=embedder is not None and embedder.is_parallel,
    )


def plan_of_core(opened: Opened, path: Path, query: Query) -> QueryPlan | None:
    """Return the plan of a query if the core alone can answer it, else None.

    Raises what `plan_query` raises.
    """
    plan = plan_query(opened, path, query)
    return plan if _is_plain(plan, embeds=_embedder_of(plan) is not None) else None


def _embedder_of(plan: QueryPlan) -> QueryEmbedder | None:
    """Return the model whose vectors the mode uses, or None."""
    unused = all(channel.vector == "no" for channel in plan.mode.channels)
    return None if unused else plan.opened.questions


def _is_plain(plan: QueryPlan, *, embeds: bool) -> bool:
    """Return whether the core can answer the queries of a plan without Python."""
    recipe, channels = plan.mode.recipe, plan.mode.channels
    approximate = embeds and bool(plan.opened.graphs) and recipe.join != "fuse"
    return not (
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


def _embed(embedder: QueryEmbedder, questions: Sequence[str], seconds: float) -> NDArray[np.float32]:
    return embedder.vectors(questions, seconds)
