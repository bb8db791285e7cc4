"""`ketrag bench train answers`: from data sets to a model folder, in steps that a second call resumes."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Callback
from ketrag_fast.errors import BackendError, ConfigError, DocumentError
from ketrag_fast.index import Index
from ketrag_fast.lab.answers.examples import (
    NEGATIVES,
    RETRIEVED,
    SpanExample,
    load_examples,
    make_examples,
    save_examples,
)
from ketrag_fast.lab.answers.fitting import EPOCHS, QUESTIONS, Fitting, load_libraries
from ketrag_fast.lab.answers.judging import MODE, Judgement, judge_answers
from ketrag_fast.lab.eval import DataSet, load_dataset
from ketrag_fast.models.embedders.discovery import resolve
from ketrag_fast.models.extractive import Extractor
from ketrag_fast.models.native_folder import FORM

WORK: Final = ".training"
"""Folder of finished steps inside the output folder; removed at the end."""
BASE: Final = "all-MiniLM-L6-v2"
_RECIPE: Final = 1
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class AnswersTraining:
    """Result of a training: folder of the model, number of questions and steps, scores on other data sets."""

    folder: Path
    questions: int
    steps: int
    judgements: tuple[Judgement, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the result as the command prints it."""
        return {
            "schema": "ketrag/answers-training/1",
            "model": str(self.folder),
            "questions": self.questions,
            "steps": self.steps,
            "judged": [one.to_json() for one in self.judgements],
        }


def train_answers(
    paths: Sequence[str],
    out: Path,
    *,
    settings: Settings,
    base: str = BASE,
    judged: Sequence[str] = (),
    epochs: int = EPOCHS,
    seed: int = 42,
    progress: Callback | None = None,
    tell: Tell = lambda _: None,
) -> AnswersTraining:
    """Train a model that quotes answers on the questions of data sets, and write it to the folder `out`.

    `base` is the name or the folder of the transformer to start from. The same call resumes after an
    interruption. The model is scored on the data sets `judged`, which are not trained on.

    Raises:
        ConfigError: A data set is named twice.
        DocumentError, InputError: A data set has no passages, or too few questions have answers.
        BackendMissing, BackendError: torch or transformers is missing, or `base` cannot be trained.
        StorageFull, ReadOnly, StorageFailed: The folder cannot be written.
    """
    if len({Path(path).name for path in (*paths, *judged)}) < len(paths) + len(judged):
        raise ConfigError(
            "two data sets have the same name",
            hint="name each folder once; a data set that is judged must not be trained on",
        )
    libraries = load_libraries()
    folder = resolve(base)
    if folder is None:
        raise BackendError(
            f"{base}: no such model on this machine",
            hint=f"give a model folder, or run: ketrag models install {BASE}",
        )
    sets = [load_dataset(path) for path in paths]
    others = [load_dataset(path) for path in judged]
    own = settings.having(modes=MODE, llm="none", embedder="builtin")
    examples: list[SpanExample] = []
    for dataset in sets:
        examples += _examples(dataset, out / WORK, own, seed, progress, tell)
    fitting = Fitting(libraries, folder, examples, seed)
    digest = _digest([_RECIPE, folder.name, epochs, seed, QUESTIONS, [d.fingerprint for d in sets]])
    tell(f"training on {len(examples):,} questions, {fitting.steps(epochs):,} steps")
    fitting.run(epochs, out / WORK / f"checkpoint-{digest}.safetensors", tell)
    fitting.save(out)
    found = [_judge(dataset, out, own, progress, tell) for dataset in others]
    shutil.rmtree(out / WORK, ignore_errors=True)
    return AnswersTraining(out, len(examples), fitting.step, tuple(one for one in found if one is not None))


def _examples(
    dataset: DataSet, work: Path, settings: Settings, seed: int, progress: Callback | None, tell: Tell
) -> list[SpanExample]:
    """Return the examples of a data set; those of an earlier call if it finished."""
    if not dataset.sources:
        raise DocumentError(f"{dataset.folder} has no passages", hint="a data set has a corpus.jsonl")
    given = {name: str(value) for name, value in sorted(settings.given.items())}
    path = (
        work / f"examples-{_digest([_RECIPE, dataset.fingerprint, NEGATIVES, RETRIEVED, seed, given])}.jsonl"
    )
    known = load_examples(path)
    if known is not None:
        tell(f"{dataset.folder.name}: finished before")
        return known
    with Index.build(list(dataset.sources), work / "index", settings=settings, progress=progress) as index:
        examples = make_examples(dataset, index, seed=seed)
    shutil.rmtree(work / "index", ignore_errors=True)
    tell(f"{dataset.folder.name}: {len(examples):,} of {len(dataset.questions):,} questions")
    save_examples(path, examples)
    return examples


def _judge(
    dataset: DataSet, out: Path, settings: Settings, progress: Callback | None, tell: Tell
) -> Judgement | None:
    """Return the scores of the trained model on a data set; None if no question has an answer."""
    tell(f"{dataset.folder.name}: reading {len(dataset.questions):,} contexts")
    model = Extractor(f"{FORM}{out}")
    with Index.build(
        list(dataset.sources), out / WORK / "index", settings=settings, progress=progress
    ) as index:
        found = judge_answers(index, dataset, model)
    shutil.rmtree(out / WORK / "index", ignore_errors=True)
    return found


def _digest(parts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
