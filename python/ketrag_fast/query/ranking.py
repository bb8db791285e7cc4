"""Ranking: inputs of the core, its ranking, and reranking by a cross-encoder, by date, or both.

The inputs are vectors, weighted terms, candidates from hnswlib, and rankings by channels in Python.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ketrag_fast import _core
from ketrag_fast.errors import (
    BackendError,
    BackendMissing,
    ConfigError,
    DeadlineExceeded,
    KetragError,
    NetworkForbidden,
)
from ketrag_fast.query.modes import REFERENCE, prints_once
from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.records import dataclass, field, replace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.models.cross_encoders import CrossEncoder
    from ketrag_fast.models.embedders.sparse import Terms
    from ketrag_fast.query.python_channels import Ranking
    from ketrag_fast.systems.spec.system import Channel

DEPTH: Final = 30
"""Number of top passages per question that are reranked; later passages keep their ranks."""
_PATIENCE: Final = 10.0
"""Seconds after which a query without a deadline goes on without the vectors of an endpoint, if it may.

A person who waits gives up earlier than an endpoint that hangs; other values were not compared.
"""
_UNUSABLE: Final[tuple[type[KetragError], ...]] = (BackendMissing, BackendError, NetworkForbidden)
_LONG: Final = 1024
"""Token count that few passages exceed; a budget with room for DEPTH such passages has enough to rerank."""
PRINTED: Final = "rerank"
"""Channel of rankings that are given to the core."""
_LEAST_RANKED: Final = 64
_USUAL_TOKENS: Final = 40
"""The core's first guess at the number of units to rank (rust/core/src/channels/print.rs)."""
_SEEDS: Final = 256
"""Keywords that a budget of 12,000 tokens uses; more than the number of entities that tables start from."""


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
    """For each list of vectors, the ids that hnswlib found near each query. The core scans other lists."""
    rankings: Mapping[str, list[Ranking]] = field(default_factory=dict)
    """For each Python channel, its ranking for each query."""
    milliseconds: float = 0.0
    """Preparation time per query."""
    warnings: tuple[str, ...] = ()


def prepare(
    plan: QueryPlan, texts: list[str], threads: int = 0, *, meanings: list[str] | None = None
) -> Prepared:
    """Return the inputs of the core for some texts.

    `meanings` are the texts that are embedded, if they differ: a similar word that replaces an unknown one is
    right for the keywords of the index, but may mean something else.

    If `auto` chose the mode and its vectors are optional, a failing model adds a warning, and the query
    continues without vectors.

    Raises:
        BackendMissing, BackendError, NetworkForbidden: The embedding model cannot be used.
        ModelMismatch, ModeUnavailable: The sparse encoder differs from that of the index, or is not set.
        DeadlineExceeded: Time is over.
    """
    vectors, seconds, failures = _embed(plan, texts if meanings is None else meanings)
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
    needs_vectors = not plan.automatic or any(channel.vector != "model" for channel in channels)
    left, may_fail = plan.clock.left(), _UNUSABLE
    if left is None and embedder.is_remote and not needs_vectors:
        left, may_fail = _PATIENCE, (*_UNUSABLE, DeadlineExceeded)
    try:
        if left is None:  # loading happens once per opened index and is not query time
            embedder.load()
        started = time.perf_counter()
        vectors = embedder.vectors(texts, left)
    except may_fail as error:
        if needs_vectors:
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
    searched = [(name, channel) for channel in plan.mode.channels for name in channel.searches]
    for name, channel in searched:
        graph = opened.graphs.get(name)
        if graph is None:
            continue
        candidates = graph.candidates(vectors, _proposal_size(plan, name, channel), threads)
        if candidates is not None:
            near[name] = candidates
        if graph.missing is not None:
            warnings[graph.missing] = None
    return near, tuple(warnings)


def _proposal_size(plan: QueryPlan, name: str, channel: Channel) -> int:
    """Return the number of candidates to request from a list of vectors for a channel."""
    if name != "units":
        seeds = 0 if channel.seeds is None else int(plan.settings.value(channel.seeds))
        return max(_SEEDS, 2 * seeds)
    rows = max(_LEAST_RANKED, max(plan.budgets, default=0) // _USUAL_TOKENS)
    rows = min(rows, len(plan.opened.searcher) if plan.top is None else plan.top)
    return 2 * max(rows, 1)


def rank(
    plan: QueryPlan, questions: Sequence[str], prepared: Prepared, threads: int | None
) -> tuple[_core.Request, list[_core.Reply]]:
    """Return the request of the mode and the core's reply to each question, reranked if the plan says so.

    If `threads` is None, a single question is ranked on the calling thread.

    Raises:
        ConfigError: The mode prints more than one list of passages and cannot be reranked.
        DeadlineExceeded: Time is over.
    """
    model = plan.opened.reranker
    prefers = plan.typed is not None and plan.typed.preferred is not None
    reorders = model is not None or plan.newest is not None
    recipe = plan.mode.recipe
    has_tables = len(recipe.shares) > 1 and recipe.join != "fuse"
    if not questions or not (reorders or (prefers and not has_tables)):
        request = plan.request()
        return request, run(plan, request, prepared, threads)
    if has_tables:
        raise ConfigError(
            f"{_wish(plan)}: mode {plan.mode.name} prints tables or several lists, which cannot be reordered",
            hint=f"use a mode of passages (bm25, text, fused, walk, ...) or leave out {_wish(plan)}",
        )
    request = plan.request([max(plan.budgets, default=0) + DEPTH * _LONG])
    replies = run(plan, request, prepared, threads)
    rankings = [
        _reorder(plan, model, plan.plain_text(question), reply, threads)
        for question, reply in zip(questions, replies, strict=True)
    ]
    return request, print_rankings(plan, prepared, rankings, threads, min_score=plan.min_score)


def print_rankings(
    plan: QueryPlan, prepared: Prepared, rankings: list[Ranking], threads: int | None, *, min_score: float
) -> list[_core.Reply]:
    """Return the core's replies for given rankings instead of those of the mode."""
    final = request_to_print(plan, min_score=min_score)
    return run(plan, final, replace(prepared, near={}, rankings={PRINTED: rankings}), threads)


def request_to_print(plan: QueryPlan, *, min_score: float) -> _core.Request:
    """Return the request that prints a given ranking, as that of the channel PRINTED."""
    settings = plan.settings
    return _core.Request(
        plan.mode.name,
        [(PRINTED, 1.0)],
        list(plan.budgets),
        top=plan.top,
        truncate=not settings.system.endswith(REFERENCE),
        deadline=plan.clock.each(),
        once=prints_once(settings),
        min_score=min_score,
    )


def _wish(plan: QueryPlan) -> str:
    """Return the name of the setting that requests reranking."""
    return "newest" if plan.opened.reranker is None else "rerank"


def _reorder(
    plan: QueryPlan, model: CrossEncoder | None, question: str, reply: _core.Reply, threads: int | None
) -> Ranking:
    """Return the units of a reply, with the first DEPTH reordered by a cross-encoder's scores or by date."""
    import numpy as np

    printed = reply.contexts[0]
    units, all_scores = np.array(printed.units, np.uint32), np.array(printed.scores, np.float64)
    first = units[:DEPTH]
    if (not len(first) and printed.text) or len(printed.nodes):
        raise ConfigError(f"{_wish(plan)}: mode {plan.mode.name} prints tables, which cannot be reordered")
    scores = all_scores[:DEPTH]
    if model is not None:
        sizes = [end - start for start, end in printed.spans[:DEPTH]]
        places = plan.opened.searcher.places(first.tolist(), sizes)
        texts = [context + text for *_, text, context in places]
        found = model.scores(question, texts, threads=threads, seconds=plan.clock.each()).astype(np.float64)
        order = np.argsort(-found, kind="stable")  # equal scores keep the order of the core's ranking
        first, scores = first[order], found[order]
    if plan.newest is not None:
        from ketrag_fast.query.dates import days_of, newest_copies_first, newest_first

        days = days_of(plan.opened, plan.newest, first.tolist())
        preferred = newest_first(scores, days)
        stage = plan.opened.generation.stages["units"]
        if "unit_keys" in stage:
            keys = stage["unit_keys"].reshape(-1, 2)[first].tolist()
            preferred = newest_copies_first(preferred, days, keys)
        first, scores = first[preferred], scores[preferred]
    if plan.typed is not None and plan.typed.preferred is not None:
        # One passage with the phrase moves to the front, if it is the only one or nearly the best, because a
        # quoted title often leads to an answer elsewhere (docs/internals/ranking.md#quotes-in-questions).
        best = _core.first_preferred(scores.tolist(), plan.typed.preferred[first].tolist())
        if best is not None:
            ahead = np.concatenate([[best], np.delete(np.arange(len(first)), best)])
            first, scores = first[ahead], scores[ahead]
    return np.concatenate([first, units[DEPTH:]]), np.concatenate([scores, all_scores[DEPTH:]])


def run(
    plan: QueryPlan, request: _core.Request, prepared: Prepared, threads: int | None
) -> list[_core.Reply]:
    """Return the core's reply to each question; `threads` as in `rank`."""
    opened = plan.opened
    if threads is not None:
        return opened.searcher.answer_many(
            request,
            prepared.texts,
            vectors=prepared.vectors,
            terms=prepared.terms,
            near=dict(prepared.near),
            given=dict(prepared.rankings),
            threads=threads,
        )
    return [
        opened.searcher.answer(
            request,
            prepared.texts[0],
            vector=None if prepared.vectors is None else prepared.vectors[0],
            terms=None if prepared.terms is None else prepared.terms[0],
            near={name: ids[0] for name, ids in prepared.near.items()},
            given={name: rows[0] for name, rows in prepared.rankings.items()},
        )
    ]
