"""Channels written in Python. Each is called once per question, and its ranking is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ketrag_fast import _core
from ketrag_fast.errors import Cancelled, DeadlineExceeded, ExtensionError, KetragError
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.systems.registry import OWN, registry
from ketrag_fast.systems.shared.stored_rows import languages_of
from ketrag_fast.systems.spec.stage import resolve
from ketrag_fast.systems.spec.system import Channel, ChannelQuery, Rank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ranking = tuple[NDArray[np.uint32], NDArray[np.float64]]

_LEAST_RANKED, _LEAST_TOKENS = 64, 4
"""Minimum cost of a printed unit: its mark and a line break."""


def rank_in_python(
    plan: QueryPlan,
    questions: Sequence[str],
    vectors: NDArray[np.float32] | None,
    *,
    every_unit: bool = False,
) -> dict[str, list[Ranking]]:
    """Return the rankings of the mode's Python channels: for each channel, one ranking per question.

    With `every_unit` a channel ranks all units, because the core later drops those that a filter
    excludes. Raises ExtensionError with the system and channel if a channel fails or its ranking is invalid.
    """
    opened, budget, deadline = plan.opened, max(plan.budgets, default=0), plan.clock.each()
    rankings: dict[str, list[Ranking]] = {}
    languages = languages_of(opened.generation.stages.get("links"))
    units = len(opened.searcher)
    for channel in plan.mode.channels:
        if channel.rank is None or not units:
            continue
        own = None if channel.vector == "no" else vectors
        if own is None and channel.vector == "yes":
            own = fitted_vectors(opened, questions)
        wanted = units if every_unit else min(units, max(_LEAST_RANKED, budget // _LEAST_TOKENS))
        rankings[channel.name] = [
            _rank_channel(
                channel,
                channel.rank,
                ChannelQuery(
                    question=text,
                    keywords=tuple(_core.lexical_keywords(text, languages=languages)),
                    vector=None if own is None else own[row],
                    wanted=wanted,
                    budget=budget,
                    settings=opened.settings,
                    deadline=deadline,
                ),
                opened.generation.stages,
                units,
            )
            for row, text in enumerate(questions)
        ]
    return rankings


def _rank_channel(
    channel: Channel,
    function: Rank | str,
    query: ChannelQuery,
    arrays: Mapping[str, Mapping[str, Any]],
    units: int,
) -> Ranking:
    try:
        ids, scores = resolve(function)(query, arrays)
    except (Cancelled, DeadlineExceeded):
        raise
    except Exception as error:
        if isinstance(error, KetragError) and registry().origins.get(_owner(channel)) == OWN:
            raise  # errors of this package already have a hint
        raise ExtensionError(f"{_label(channel)} failed: {type(error).__name__}: {error}") from error
    try:
        return _check_ranking(ids, scores, units)
    except ValueError as error:
        raise ExtensionError(f"{_label(channel)} returned {error}") from None


def _owner(channel: Channel) -> str:
    """Return the name of the system that declares a channel."""
    return next(system.name for system in registry().systems if channel in system.channels)


def _label(channel: Channel) -> str:
    return f"channel {channel.name} of system {_owner(channel)}"


def _check_ranking(ids: Any, scores: Any, units: int) -> Ranking:
    """Return a ranking in the form that the core accepts.

    Raises ValueError; its text completes "returned ...".
    """
    try:
        numbers, values = np.asarray(ids), np.asarray(scores, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"something that is not a ranking: {error}") from None
    if numbers.ndim != 1 or values.shape != numbers.shape:
        raise ValueError(f"{numbers.shape} ids and {values.shape} scores")
    if not numbers.size:
        return np.zeros(0, np.uint32), np.zeros(0, np.float64)
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"ids of type {numbers.dtype}, not whole numbers")
    if len(numbers) > units:
        raise ValueError(f"{len(numbers):,} ids for an index of {units:,} units")
    if int(numbers.min()) < 0 or int(numbers.max()) >= units:
        bad = int(numbers.min() if numbers.min() < 0 else numbers.max())
        raise ValueError(f"the id {bad} for an index of {units:,} units")
    if not np.isfinite(values).all():
        raise ValueError("a score that is not a finite number")
    if len(np.unique(numbers)) != len(numbers):
        raise ValueError("a unit twice")
    return np.ascontiguousarray(numbers, np.uint32), np.ascontiguousarray(values)


def fitted_vectors(opened: Opened, texts: Sequence[str]) -> NDArray[np.float32] | None:
    """Return vectors of texts in the space fitted on the corpus; None if the index has no such space."""
    from ketrag_fast.kernels.text import pack
    from ketrag_fast.systems.shared.rows import strings, word_rows

    stages = opened.generation.stages
    if "basis" not in stages.get("vectors", {}):
        return None
    vocabulary, languages = strings(stages["words"], "vocabulary"), languages_of(stages["words"])
    rows = word_rows(pack(list(texts)), vocabulary, opened.settings.language, languages, 1)
    return _core.embed_rows(stages["vectors"]["basis"], *rows, threads=1)
