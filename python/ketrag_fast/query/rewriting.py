"""Rewriting functions of modes: from a question to the text to rank by."""

from __future__ import annotations

from collections.abc import Sequence

from ketrag_fast.errors import ModeUnavailable
from ketrag_fast.query.open_generation import Opened


def hyde(
    opened: Opened, questions: Sequence[str], seconds: float | None
) -> tuple[list[str], tuple[str, ...]]:
    """Return for each question a passage that a model writes in answer to it, and warnings.

    Raises DeadlineExceeded if they are not written after `seconds`, and what opening the model raises.
    """
    if opened.writer is None:
        raise ModeUnavailable("mode hyde needs a language model that writes passages")
    return opened.writer.passages(questions, seconds)
