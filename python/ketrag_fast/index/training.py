"""Training of a retrieval system on judged questions over an index."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.memory import enough_memory
from ketrag_fast.index.index import Index
from ketrag_fast.query.training_data import train_system

if TYPE_CHECKING:
    from ketrag_fast.systems.spec.system import OnEpoch, Trained


@enough_memory()
def train(
    index: Index,
    system: str,
    questions: Sequence[tuple[str, Collection[str]]],
    out: str | os.PathLike[str],
    *,
    share: float = 1.0,
    on_epoch: OnEpoch | None = None,
    **options: Any,
) -> Trained:
    """Train a system on judged questions and write its weights to `out`; the index is not changed.

    Args:
        index: The index to train on.
        system: Name of a system that can be trained.
        questions: Pairs of a question and the ids of the documents that answer it.
        out: File of the weights.
        share: Share of the questions to use, drawn with the option `seed`.
        on_epoch: Called after each epoch with its number, the number of epochs, the loss, and Hit@1 of the
            held-out questions. Returning False stops the training.
        options: Options of the system; for cg-rag `epochs`, `rate`, `hidden`, `heads`, ...

    Raises:
        ConfigError, InputError: The system or an option is wrong.
        ModeUnavailable: The index lacks what the system learns from.
        BackendMissing, Cancelled: A package is missing, or the training was stopped.
    """
    opened = index._opened
    return train_system(opened, system, questions, Path(out), share, on_epoch, options)
