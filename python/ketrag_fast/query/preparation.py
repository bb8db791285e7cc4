"""Prepares queries for the core: vectors, candidates from hnswlib, and rankings by Python channels."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ketrag_fast.errors import (
    BackendError,
    BackendMissing,
    NetworkForbidden,
)
from ketrag_fast.query.plan import QueryPlan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.sparse import Terms
    from ketrag_fast.query.python_channels import Ranking

_LEAST_RANKED: Final = 64
_USUAL_TOKENS: Final = 40
"""The core's first guess at the number of units to rank (rust/core/src/channels/print.rs)."""
_SEEDS: Final = 256
"""Keywords that a budget of 12,000 tokens uses.

This is more than the number of entities that tables start from.
"""


@dataclass(frozen=True)
class Prepared:
    """Inputs of the core for a batch of queries."""

    texts: list[str]
    """The texts to rank by."""
    vectors: NDArray[np.float32] | None = None
    """Their vectors, if the mode uses vectors of a model. The core computes vectors of the fitted space."""
    terms: list[Terms] | None = None
    """Their weighted terms, if the mode matches words by learned weights."""
    near: Mapping[str, NDArray[np.uint32]] = field(default_factory=dict)
    """For each list of vectors, the ids that hnswlib found near each query.

    The core scans the other lists.
    """
    rankings: Mapping[str, list[Ranking]] = field(default_factory=dict)
    """For each Python channel, its ranking for each query."""
    milliseconds: float = 0.0
    """Preparation time per query."""
    warnings: tuple[str, ...] = ()


def prepare(plan: QueryPlan, texts: list[str], threads: int = 0) -> Prepared:
    """Return the inputs of the core for some texts.

    If `auto` chose the mode and its vectors are optional, a failing model adds a warning, and the query
    continues without vectors.

    Raises:
        BackendMissing, BackendError, NetworkForbidden: The embedding model cannot be used.
        ModelMismatch, ModeUnavailable: The sparse encoder differs from that of the index, or is not set.
        DeadlineExceeded: Time is over.
    """
    vectors, seconds, failures = _embed(plan, texts)
    terms, weighing = _weigh(plan, texts, threads)
    seconds += weighing
    # hnswlib cannot filter, so with a filter the core scans all vectors that match.
    narrowed = plan.mask is not None
    near, cautions = _propose(plan, None if narrowed else vectors, threads)
    rankings: Mapping[str, list[Ranking]] = {}
    if any(channel.rank is not None for channel in plan.mode.channels) and texts:
        from ketrag_fast.query.python_channels import rank_in_python

        started = time.perf_counter()
        rankings = rank_in_python(plan, texts, vectors, every_unit=narrowed)
        seconds += time.perf_counter() - started
    each = seconds * 1000 / max(len(texts), 1)
    return Prepared(texts, vectors, terms, near, rankings, each, (*failures, *cautions))


def _embed(plan: QueryPlan, texts: list[str]) -> tuple[NDArray[np.float32] | None, float, tuple[str, ...]]:
    """Return the vectors of the texts if the mode uses a model, the seconds that this took, and warnings."""
    embedder, channels = plan.opened.questions, plan.mode.channels
    if embedder is None or not texts or all(channel.vector == "no" for channel in channels):
        return None, 0.0, ()
    try:
        if plan.clock.left() is None:  # loading happens once per opened index and is not query time
            embedder.load()
        started = time.perf_counter()
        vectors = embedder.vectors(texts, plan.clock.left())
    except (BackendMissing, BackendError, NetworkForbidden) as error:
        if not plan.automatic or any(channel.vector != "model" for channel in channels):
            raise
        return None, 0.0, (f"without vectors: {error}",)
    return vectors, time.perf_counter() - started, ()


def _weigh(plan: QueryPlan, texts: list[str], threads: int) -> tuple[list[Terms] | None, float]:
    """Return the weighted terms of the texts if the mode uses learned weights, and the seconds it took."""
    if not texts or not plan.has_terms:
        return None, 0.0
    from ketrag_fast.systems.shared import TERMS
    from ketrag_fast.systems.shared.terms import query_terms

    arrays = plan.opened.generation.stages[TERMS.name]
    if plan.clock.left() is None:  # loading happens once per process and is not query time
        query_terms(plan.settings, arrays, [])
    started = time.perf_counter()
    terms = query_terms(plan.settings, arrays, texts, threads=threads, seconds=plan.clock.left())
    return terms, time.perf_counter() - started


def _propose(
    plan: QueryPlan, vectors: NDArray[np.float32] | None, threads: int
) -> tuple[dict[str, NDArray[np.uint32]], tuple[str, ...]]:
    """Return hnswlib's candidates by list, and warnings. If there are too few, the core scans all vectors."""
    near: dict[str, NDArray[np.uint32]] = {}
    warnings: dict[str, None] = {}
    opened = plan.opened
    if vectors is None or not opened.graphs or plan.mode.recipe.join == "fuse":
        return near, ()
    for name in (listed for channel in plan.mode.channels for listed in channel.searches):
        graph = opened.graphs.get(name)
        if graph is None:
            continue
        candidates = graph.candidates(vectors, _proposal_size(plan, name), threads)
        if candidates is not None:
            near[name] = candidates
        if graph.missing is not None:
            warnings[graph.missing] = None
    return near, tuple(warnings)


def _proposal_size(plan: QueryPlan, name: str) -> int:
    """Return the number of candidates to request from a list of vectors."""
    if name != "units":
        return max(_SEEDS, 2 * int(plan.settings.value("seed_entities")))
    rows = max(_LEAST_RANKED, max(plan.budgets, default=0) // _USUAL_TOKENS)
    rows = min(rows, len(plan.opened.searcher) if plan.top is None else plan.top)
    return 2 * max(rows, 1)
