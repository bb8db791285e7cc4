"""What a question is ranked by: a mode that the index serves, bounds, and its vectors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.errors import (
    BackendError,
    BackendMissing,
    ConfigError,
    EmptyQuery,
    ModeUnavailable,
    NetworkForbidden,
)
from ketrag_fast.querying.opened import Opened
from ketrag_fast.querying.recipes import RECIPES, request_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AUTO = ("walk", "fused", "bm25", "text")
"""What `auto` tries, best first: the order of the measured table (benches/coverage.py)."""


_ENDLESS = 2**62
"""More tokens or passages than there are anywhere; twice as many still fit the core's numbers."""


def question_text(text: str, place: int | None) -> str:
    """A question as the core takes it; EmptyQuery where there is none. `place` is its place among many."""
    if not text.strip():
        where = "the question" if place is None else f"question {place}"
        raise EmptyQuery(f"{where} is empty", hint="ask something: a word is enough")
    # A lone surrogate (a byte that was no text) cannot be UTF-8; it is no word either.
    return text.encode("utf-8", "replace").decode("utf-8")


def bounded(tokens: int) -> int:
    """A budget that the core can count with; ConfigError where it is negative."""
    if tokens < 0:
        raise ConfigError(f"budget: {tokens} is negative", hint="give a number of tokens from 0 up")
    return min(tokens, _ENDLESS)


def chosen_mode(opened: Opened, mode: str | None) -> str:
    """The mode that is served: the one named, else that of the settings; `auto` takes the best there is.

    Raises ConfigError for an unknown name, ModeUnavailable where the index lacks a part.
    """
    wanted = opened.settings.mode if mode is None else mode
    if wanted == "auto":
        serving = [name for name in AUTO if opened.missing.get(name, "") is None]
        if serving:
            return serving[0]
        raise ModeUnavailable("this index serves no mode", hint="build it anew with `ketrag index --rebuild`")
    if wanted == "hyde":
        _require_writer(opened)
        return wanted
    if wanted not in opened.missing:
        known = ", ".join(["auto", *opened.missing])
        raise ConfigError(f"mode: there is no mode {wanted!r}", hint=f"the modes are {known}")
    lacking = opened.missing[wanted]
    if lacking is not None:
        raise ModeUnavailable(
            f"mode {wanted} needs {lacking}, which this index does not hold",
            hint="build it with a system that has it; `ketrag stats` lists what is there",
        )
    return wanted


def ranking(chosen: str) -> str:
    """The core's mode: HyDE is a ranking by vectors, of another text."""
    return "text" if chosen == "hyde" else chosen


def _require_writer(opened: Opened) -> None:
    lacking = opened.missing["text"]
    if lacking is not None:
        raise ModeUnavailable(f"mode hyde needs {lacking}, which this index does not hold")
    if opened.hyde is None:
        raise ModeUnavailable(
            "mode hyde needs a language model that writes a passage for each question",
            hint="name one: --llm llama-cpp:PATH.gguf or openai:MODEL@URL",
        )


def bounded_request(
    settings: Settings, chosen: str, budgets: Sequence[int], top: int | None, deadline: float | None
) -> _core.Request:
    """What the core is asked for, from the settings and from what the call gives."""
    if top is not None and top < 0:
        raise ConfigError(f"top: {top} is negative")
    most = settings.top if top is None else top
    return request_of(
        settings,
        ranking(chosen),
        budgets,
        top=None if most is None else min(most, _ENDLESS),
        deadline=settings.deadline if deadline is None else deadline,
    )


@dataclass(frozen=True)
class Asked:
    """The texts that are ranked by, their vectors if the index has a model and the mode uses them, and what
    making these took each.
    """

    texts: list[str]
    vectors: NDArray[np.float32] | None = None
    milliseconds: float = 0.0
    warnings: tuple[str, ...] = ()
    near: Mapping[str, NDArray[np.uint32]] = field(default_factory=dict)
    """By list, the ids that hnswlib found near each vector; without them all are looked at."""


def with_vectors(opened: Opened, texts: list[str], chosen: str, wanted: str) -> Asked:
    """The questions (for `hyde` the passages written for them) with their vectors.

    Where the mode was left to us (`wanted` is "auto"), a model that is not there costs the vectors, with a
    word, and not the answer; else it raises BackendMissing, BackendError or NetworkForbidden.
    """
    told: tuple[str, ...] = ()
    writing = 0.0
    if chosen == "hyde" and opened.hyde is not None and texts:
        started = time.perf_counter()
        texts, told = opened.hyde.passages(texts)
        writing = (time.perf_counter() - started) * 1000 / len(texts)
    if opened.questions is None or chosen == "bm25" or not texts:
        return Asked(texts, None, writing, told)
    try:
        opened.questions.load()  # once for an opened index, so no part of what a question takes
        started = time.perf_counter()
        vectors = opened.questions.vectors(texts)
    except (BackendMissing, BackendError, NetworkForbidden) as error:
        if wanted != "auto" or chosen != "walk":
            raise
        return Asked(texts, warnings=(f"without vectors: {error}",))
    taken = (time.perf_counter() - started) * 1000 / len(texts)
    return Asked(texts, vectors, writing + taken, told)


def with_near(opened: Opened, asked: Asked, chosen: str, request: _core.Request, threads: int = 0) -> Asked:
    """Adds what hnswlib proposes. It may propose too little: the core then looks at all vectors."""
    if asked.vectors is None or not request.budgets:
        return asked
    near: dict[str, NDArray[np.uint32]] = {}
    words = asked.warnings
    for name in RECIPES[ranking(chosen)].lists:
        graph = opened.graphs.get(name)
        if graph is None:
            continue
        rows = _rows(name, opened, max(request.budgets), request.top)
        found = graph.candidates(asked.vectors, rows, threads)
        if found is not None:
            near[name] = found
        if graph.missing is not None and graph.missing not in words:
            words = (*words, graph.missing)
    return replace(asked, near=near, warnings=words)


def _rows(name: str, opened: Opened, budget: int, top: int | None) -> int:
    if name == "keywords":
        return _SEEDS
    if name == "entities":
        return max(_LEAST_RANKED, 2 * opened.settings.seed_entities)
    rows = max(_LEAST_RANKED, budget // _USUAL_TOKENS)
    rows = min(rows, len(opened.searcher)) if top is None else min(rows, top)
    return 2 * max(rows, 1)


_LEAST_RANKED, _USUAL_TOKENS = 64, 40
"""As the core ranks at first (rust/channels/print.rs)."""
_SEEDS = 256
"""Keywords that a budget of 12,000 tokens uses."""
