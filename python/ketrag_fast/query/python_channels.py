"""Channels that are Python functions: called for each question, and checked before the core prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ketrag_fast import _core
from ketrag_fast.errors import Cancelled, DeadlineExceeded, ExtensionError, KetragError
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.systems.registry import OWN, registry
from ketrag_fast.systems.spec.function_ref import resolve
from ketrag_fast.systems.spec.system import Channel, ChannelQuery

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ranking = tuple[NDArray[np.uint32], NDArray[np.float64]]

_LEAST_RANKED, _LEAST_TOKENS = 64, 4
"""A printed unit costs no less than its mark and a line end."""


def rankings(
    opened: Opened,
    mode: str,
    questions: Sequence[str],
    vectors: NDArray[np.float32] | None,
    budget: int,
    deadline: float | None,
    *,
    whole: bool = False,
) -> dict[str, list[Ranking]]:
    """For each channel of the mode that is a function, its ranking for each question. With `whole` it is
    asked for all units: under a filter the core takes of them what fits.

    Raises ExtensionError, naming system and channel, where one raises or returns what makes no sense.
    """
    found = registry()
    channels = [found.channels[name] for name in found.recipe(mode).channels]
    made: dict[str, list[Ranking]] = {}
    units = len(opened.searcher)
    for channel in channels:
        if channel.rank is None or not units:
            continue
        own = None if channel.vector == "no" else vectors
        if own is None and channel.vector == "yes":
            own = fitted_vectors(opened, questions)
        wanted = min(units, max(_LEAST_RANKED, budget // _LEAST_TOKENS))
        wanted = units if whole else wanted
        made[channel.name] = [
            _rank_channel(
                channel,
                ChannelQuery(
                    question=text,
                    keywords=tuple(_core.lexical_keywords(text)),
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
    return made


def _rank_channel(
    channel: Channel, query: ChannelQuery, arrays: Mapping[str, Mapping[str, Any]], units: int
) -> Ranking:
    owner = next(s.name for s in registry().systems if channel in s.channels)
    where = f"channel {channel.name} of system {owner}"
    assert channel.rank is not None  # noqa: S101 - the caller looked
    try:
        ids, scores = resolve(channel.rank)(query, arrays)
    except (Cancelled, DeadlineExceeded):
        raise
    except Exception as error:
        if isinstance(error, KetragError) and registry().origins.get(owner) == OWN:
            raise  # of this package: it says itself what to do
        raise ExtensionError(f"{where} failed: {type(error).__name__}: {error}") from error
    return _check_ranking(where, ids, scores, units)


def _check_ranking(where: str, ids: Any, scores: Any, units: int) -> Ranking:
    """As the core takes them, or ExtensionError with what is wrong."""
    try:
        numbers, values = np.asarray(ids), np.asarray(scores, np.float64)
    except (TypeError, ValueError) as error:
        raise ExtensionError(f"{where} returned what is no ranking: {error}") from None
    if numbers.ndim != 1 or values.shape != numbers.shape:
        raise ExtensionError(f"{where} returned {numbers.shape} ids and {values.shape} scores")
    if not numbers.size:
        return np.zeros(0, np.uint32), np.zeros(0, np.float64)
    if numbers.dtype.kind not in "iu":
        raise ExtensionError(f"{where} returned ids of type {numbers.dtype}, not whole numbers")
    if len(numbers) > units:
        raise ExtensionError(f"{where} returned {len(numbers):,} ids, and there are {units:,} units")
    if int(numbers.min()) < 0 or int(numbers.max()) >= units:
        bad = int(numbers.min() if numbers.min() < 0 else numbers.max())
        raise ExtensionError(f"{where} returned the id {bad}, and there are {units:,} units")
    if not np.isfinite(values).all():
        raise ExtensionError(f"{where} returned a score that is not a finite number")
    if len(np.unique(numbers)) != len(numbers):
        raise ExtensionError(f"{where} returned a unit twice")
    return np.ascontiguousarray(numbers, np.uint32), np.ascontiguousarray(values)


def fitted_vectors(opened: Opened, texts: Sequence[str]) -> NDArray[np.float32] | None:
    """In the space that is fitted on the corpus; None where the index has a model's vectors or none."""
    from ketrag_fast.kernels.text import pack
    from ketrag_fast.systems.shared.rows import strings, word_rows

    stages = opened.generation.stages
    if "basis" not in stages.get("vectors", {}):
        return None
    vocabulary = strings(stages["words"], "vocabulary")
    rows = word_rows(pack(list(texts)), vocabulary, opened.settings.language, 1)
    return _core.embed_rows(stages["vectors"]["basis"], *rows, threads=1)
