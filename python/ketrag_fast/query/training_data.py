"""Training of a system on judged questions over one opened generation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ketrag_fast.errors import ConfigError, ModeUnavailable
from ketrag_fast.kernels.text import unpack
from ketrag_fast.query.limits import check_text, core_text
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.python_channels import fitted_vectors
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared.rows import strings
from ketrag_fast.systems.spec.function_ref import resolve
from ketrag_fast.systems.spec.system import Judged, OnEpoch, Trained


def train_system(
    opened: Opened,
    name: str,
    questions: Sequence[tuple[str, Collection[str]]],
    out: Path,
    share: float,
    on_epoch: OnEpoch | None,
    options: Mapping[str, Any],
) -> Trained:
    """Train a system and write its weights to `out`; see `ketrag_fast.index.training.train`."""
    system = registry().trainable(name)
    if all(opened.missing[mode] is not None for mode in system.recipes):
        raise ModeUnavailable(
            f"this index lacks the arrays that {system.name} is trained on",
            hint=f"`ketrag index --modes auto,{next(iter(system.recipes))}` adds it",
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
    assert system.train is not None  # noqa: S101 - `trainable` checked
    trained: Trained = resolve(system.train.run)(opened.generation.stages, judged, out, options, on_epoch)
    return trained
