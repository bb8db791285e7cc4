"""Warm-up of an opened generation: reads its files, whose blocks are verified and unpacked on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from ketrag_fast.errors import KetragError
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.prepared import plan_of_core
from ketrag_fast.query.query import Query
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.shared.memory_bound import memory_of

_TEXT: Final = 300
"""Length in characters of the text that is used as a query."""


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
        plan = plan_of_core(opened, path, Query(text, mode=mode))
    except KetragError:  # real queries in this mode report the error
        return
    if plan is not None:
        vector = None if opened.questions is None else _vector(opened)
        opened.searcher.answer(plan.request(), text, vector=vector)


def _vector(opened: Opened) -> Any:
    """Return an arbitrary vector of length 1 in the space of the model."""
    dimension = StoredVectors.of(opened.generation.stages["vectors"]).dimension
    return np.full(dimension, dimension**-0.5, np.float32)
