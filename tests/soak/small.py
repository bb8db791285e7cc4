"""Limits at which a small index is changed and built as only large ones are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from ketrag_fast.building import delta
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.shared import links, units
from ketrag_fast.systems.shared.memory_bound import Bounds


@contextmanager
def small() -> Iterator[None]:
    """Change indexes of any size by deltas, and build in blocks of a few documents and runs of two units."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(delta, "LEAST", 0))
        stack.enter_context(patch.object(delta, "RECENT", 6))
        stack.enter_context(patch.object(units, "_BLOCK", 300))
        stack.enter_context(patch.object(links, "bounds_of", lambda *_: Bounds(2, 20)))
        yield


def has_delta(index: Path) -> bool:
    """Return whether the current generation has a delta."""
    return open_current(Layout(index)).delta is not None
