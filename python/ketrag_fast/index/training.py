"""Train a retrieval system on judged questions over an index."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import ConfigError, ModeUnavailable
from ketrag_fast.index.index import Index
from ketrag_fast.kernels.text import unpack
from ketrag_fast.query.python_channels import fitted_vectors
from ketrag_fast.query.query import check_text, core_text
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared.rows import strings
from ketrag_fast.systems.spec.stage import resolve
from ketrag_fast.systems.spec.system import Judged, OnEpoch, Trained

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
        out: File to which the weights are written.
        share: Share of the questions to use, drawn with the option `seed`.
        on_epoch: Called after each epoch with its number, the number of epochs, the loss, and Hit@1 of the
            held-out questions. Returning False stops the training.
        options: Options of the system; for cg-rag `epochs`, `rate`, `hidden`, `heads`, ...

    Raises:
        ConfigError, InputError: The system or an option is invalid.
        ModeUnavailable: The index lacks arrays that the system needs for training.
        BackendMissing, Cancelled: A package is missing, or the training was stopped.
    """
    opened = index._opened
    chosen_system = registry().trainable(system)
    if all(opened.missing[mode] is not None for mode in chosen_system.recipes):
        raise ModeUnavailable(
            f"this index lacks the arrays that {system} is trained on",
            hint=f"`ketrag index --modes auto,{next(iter(chosen_system.recipes))}` adds it",
        )
    order = np.random.default_rng(int(options.get("seed", 42))).permutation(len(questions))
    chosen = sorted(order[: round(share * len(questions))].tolist())
    texts = [core_text(check_text(questions[at][0], at)) for at in chosen]
    if not texts:
        raise ConfigError("no judged question to train on", hint="use a data set with judgements")
    vectors = opened.questions.vectors(texts) if opened.questions else fitted_vectors(opened, texts)
    if vectors is None:
        raise ModeUnavailable("this index has no vectors", hint="`ketrag index --modes auto` adds them")
    units = opened.generation.stages["units"]
    names = unpack(*strings(units, "document_ids"))  # one row per section of a document
    of_document: dict[str, list[int]] = {}
    for unit, row in enumerate(units["unit_document"].tolist()):
        of_document.setdefault(names[row], []).append(unit)
    judged = []
    for text, vector, at in zip(texts, vectors, chosen, strict=True):
        own = frozenset(unit for name in questions[at][1] for unit in of_document.get(name, ()))
        judged.append(Judged(text, np.ascontiguousarray(vector, np.float32), own))
    assert chosen_system.train is not None  # noqa: S101 - `trainable` checked
    run = resolve(chosen_system.train.run)
    trained: Trained = run(opened.generation.stages, judged, Path(out), options, on_epoch)
    return trained
