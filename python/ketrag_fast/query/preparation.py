"""Questions made ready for the core: texts, vectors, proposals and rankings, within the time they have."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ketrag_fast import _core
from ketrag_fast.base.config.fields import LONGEST_SECONDS, short_repr
from ketrag_fast.errors import (
    BackendError,
    BackendMissing,
    DeadlineExceeded,
    EmptyQuery,
    ExtensionError,
    InputError,
    KetragError,
    NetworkForbidden,
)
from ketrag_fast.query.open_generation import FilterMask, Opened
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.function_ref import resolve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.query.python_channels import Ranking


def question_text(text: str, place: int | None) -> str:
    """A question as the core takes it; EmptyQuery where there is none, InputError where it is no text.
    `place` is its place among many.
    """
    where = "the question" if place is None else f"question {place}"
    if not isinstance(text, str):
        raise InputError(f"{where} is of type {type(text).__name__}", hint="a question is a text (str)")
    if not text.strip():
        raise EmptyQuery(f"{where} is empty", hint="ask something: a word is enough")
    # A lone surrogate (a byte that was no text) cannot be UTF-8; it is no word either.
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True)
class Prepared:
    """The texts that are ranked by, with what the core needs about each, and what making it took each."""

    texts: list[str]
    vectors: NDArray[np.float32] | None = None
    """Where the index has a model and the mode goes by vectors; the core makes those of the fitted space."""
    near: Mapping[str, NDArray[np.uint32]] = field(default_factory=dict)
    """By list, the ids that hnswlib found near each vector; without them all are looked at."""
    rankings: Mapping[str, list[Ranking]] = field(default_factory=dict)
    """By channel, for each text, what a Python function ranked."""
    milliseconds: float = 0.0
    warnings: tuple[str, ...] = ()
    filtered: FilterMask | None = None
    """What a filter leaves, where there is one."""

    @property
    def mask(self) -> _core.Mask | None:
        """The same as the core takes it; None where all units are left."""
        return None if self.filtered is None else self.filtered.core


class Clock:
    """The seconds that are left for some questions together, from the first word to the last byte."""

    def __init__(self, seconds: float | None, questions: int) -> None:
        """`seconds` are those of one question."""
        number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        if seconds is not None and not (number and 0 <= seconds < float("inf")):
            raise InputError(
                f"deadline: {short_repr(seconds)} is no number of seconds",
                hint="give seconds from 0 up",
            )
        self._start = time.monotonic()
        self._questions = max(questions, 1)
        self._seconds = None if seconds is None else min(seconds, LONGEST_SECONDS)

    def left(self) -> float | None:
        """For all of them; None without a limit. DeadlineExceeded where nothing is left."""
        if self._seconds is None:
            return None
        left = self._seconds * self._questions - (time.monotonic() - self._start)
        if left <= 0:
            raise DeadlineExceeded(
                f"the deadline of {self._seconds:g} s passed before anything was ranked",
                hint="give more seconds, or a mode that needs less",
            )
        return max(left, 0.0)

    def each(self) -> float | None:
        """For one question of them."""
        left = self.left()
        return None if left is None else left / self._questions


def prepare(
    opened: Opened,
    texts: list[str],
    mode: str,
    budgets: Sequence[int],
    clock: Clock,
    *,
    top: int | None,
    automatic: bool,
    filtered: FilterMask | None = None,
    threads: int = 0,
) -> Prepared:
    """The questions with all that the mode needs about them.

    Where the mode was left to us (`automatic`), a model that is not there costs the vectors, with a word, and
    not the answer; else this raises BackendMissing, BackendError or NetworkForbidden. DeadlineExceeded where
    it takes longer than the questions have.
    """
    found = registry()
    recipe = found.recipe(mode)
    channels = [found.channels[name] for name in recipe.channels]
    warnings: tuple[str, ...] = ()
    started, seconds = time.perf_counter(), 0.0
    if recipe.rewrite is not None and texts:
        texts, warnings = _rewritten(opened, mode, texts, clock.left())
        seconds = time.perf_counter() - started
    vectors = None
    if opened.questions is not None and texts and any(channel.vector != "no" for channel in channels):
        optional = automatic and all(channel.vector == "model" for channel in channels)
        try:
            if clock.left() is None:  # once for an opened index, so no part of what a question takes
                opened.questions.load()
            started = time.perf_counter()
            vectors = opened.questions.vectors(texts, clock.left())
            seconds += time.perf_counter() - started
        except (BackendMissing, BackendError, NetworkForbidden) as error:
            if not optional:
                raise
            warnings = (*warnings, f"without vectors: {error}")
    largest = max(budgets, default=0)
    # What hnswlib proposes does without a filter alone: with one all vectors that fit are looked at.
    narrowed = filtered is not None and filtered.core is not None
    searched = None if narrowed else vectors
    near, more = _proposals(opened, mode, searched, largest, top, threads)
    rankings: Mapping[str, list[Ranking]] = {}
    if any(channel.rank is not None for channel in channels) and texts:
        from ketrag_fast.query.python_channels import rankings as made

        started = time.perf_counter()
        rankings = made(opened, mode, texts, vectors, largest, clock.each(), whole=narrowed)
        seconds += time.perf_counter() - started
    taken = seconds * 1000 / max(len(texts), 1)
    return Prepared(texts, vectors, near, rankings, taken, (*warnings, *more), filtered)


def _rewritten(
    opened: Opened, mode: str, questions: list[str], seconds: float | None
) -> tuple[list[str], tuple[str, ...]]:
    """The texts that are ranked by in the questions' place, as many; ExtensionError where there are not."""
    rewrite = registry().recipe(mode).rewrite
    assert rewrite is not None  # noqa: S101 - the caller looked
    try:
        texts, warnings = resolve(rewrite)(opened, questions, seconds)
        made = [str(text) for text in texts]
        said = tuple(str(warning) for warning in warnings)
    except KetragError:
        raise
    except Exception as error:
        raise ExtensionError(
            f"the rewriting of the mode {mode} failed: {type(error).__name__}: {error}"
        ) from error
    if len(made) != len(questions):
        raise ExtensionError(f"the rewriting of the mode {mode} made {len(made)} texts of {len(questions)}")
    return made, said


def _proposals(
    opened: Opened,
    mode: str,
    vectors: NDArray[np.float32] | None,
    budget: int,
    top: int | None,
    threads: int,
) -> tuple[dict[str, NDArray[np.uint32]], tuple[str, ...]]:
    """What hnswlib proposes, and warnings. It may propose too little: the core then looks at all vectors."""
    near: dict[str, NDArray[np.uint32]] = {}
    warnings: tuple[str, ...] = ()
    recipe = registry().recipe(mode)
    if vectors is None or not opened.graphs or recipe.join == "fuse":
        return near, warnings
    for name in (listed for channel in recipe.channels for listed in registry().channels[channel].searches):
        graph = opened.graphs.get(name)
        if graph is None:
            continue
        proposed = graph.candidates(vectors, _rows(name, opened, budget, top), threads)
        if proposed is not None:
            near[name] = proposed
        if graph.missing is not None and graph.missing not in warnings:
            warnings = (*warnings, graph.missing)
    return near, warnings


def _rows(name: str, opened: Opened, budget: int, top: int | None) -> int:
    """How many of a list are worth proposing."""
    if name != "units":
        return max(_SEEDS, 2 * int(opened.settings.value("seed_entities")))
    rows = max(_LEAST_RANKED, budget // _USUAL_TOKENS)
    rows = min(rows, len(opened.searcher)) if top is None else min(rows, top)
    return 2 * max(rows, 1)


_LEAST_RANKED, _USUAL_TOKENS = 64, 40
"""As the core ranks at first (rust/core/src/channels/print.rs)."""
_SEEDS = 256
"""Keywords that a budget of 12,000 tokens uses; more than the entities that tables begin with."""
