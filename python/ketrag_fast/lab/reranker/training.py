"""`ketrag bench train reranker`: from data sets to weights, in steps that a second call resumes."""

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
from ketrag_fast.errors import ConfigError, DocumentError, InputError
from ketrag_fast.index import Index
from ketrag_fast.index.training import walk_candidates
from ketrag_fast.lab.advice.probes import make_probes
from ketrag_fast.lab.eval import DataSet, load_dataset
from ketrag_fast.lab.reranker.examples import Examples, join, make_examples
from ketrag_fast.lab.reranker.fitting import fit
from ketrag_fast.lab.reranker.validation import Validation, cross_validate
from ketrag_fast.models.walk_reranker import FILE, WalkReranker
from ketrag_fast.query.walk_features import FEATURES
from ketrag_fast.systems.shared import has_model

WORK: Final = ".training"
"""Folder of finished steps inside the output folder; removed at the end."""
PROBES: Final = 300
_RECIPE: Final = 1
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RerankerTraining:
    """The weights, where they were written, the number of questions, and the cross-validation."""

    model: WalkReranker
    folder: Path
    questions: int
    validation: Validation

    def to_json(self) -> dict[str, Any]:
        """Return the result as the command prints it."""
        return {
            "schema": "ketrag/reranker-training/1",
            "weights": str(self.folder / FILE),
            "questions": self.questions,
            "strength": self.validation.strength,
            "better": self.validation.is_better,
            "vectors": self.model.vectors,
            "rows": [row.to_json() for row in self.validation.rows],
        }


def train_reranker(
    paths: Sequence[str],
    out: Path,
    *,
    settings: Settings,
    probes: int = PROBES,
    only_named: bool = False,
    seed: int = 42,
    progress: Callback | None = None,
    tell: Tell = lambda _: None,
) -> RerankerTraining:
    """Train on the judged questions of data sets and write the weights to the folder `out`.

    Each data set is indexed twice below `out`: as it is, and without `probes` sentences that are searched for
    as questions which one passage answers, so that these are not ranked worse. Finished data sets are kept
    until the end, so that the same call resumes. With `only_named` the weights change nothing unless a query
    names the subject of a candidate, which makes them safe for other kinds of questions.

    Raises:
        ConfigError: A data set is named twice.
        DocumentError, InputError: A data set has no passages, or too few judged questions.
        StorageFull, ReadOnly, StorageFailed: The folder cannot be written.
    """
    datasets = {Path(path).name: load_dataset(path) for path in paths}
    if len(datasets) < len(paths):
        raise ConfigError("two data sets have the same name", hint="name each folder once")
    own = settings.having(modes="walk", llm="none")
    sets = {
        name: _examples(dataset, out / WORK / str(number), own, probes, progress, tell)
        for number, (name, dataset) in enumerate(datasets.items())
    }
    vectors = has_model(own)
    tell("cross-validation")
    validation = cross_validate(sets, vectors=vectors, seed=seed, only_named=only_named)
    about = {
        "datasets": {name: dataset.fingerprint for name, dataset in datasets.items()},
        "embedder": own.embedder,
        "probes": probes,
        "seed": seed,
        "validation": [row.to_json() for row in validation.rows],
    }
    tell("training")
    model = fit(
        list(sets.values()),
        vectors=vectors,
        strength=validation.strength,
        only_named=only_named,
        seed=seed,
        about=about,
    )
    model.save(out)
    shutil.rmtree(out / WORK, ignore_errors=True)
    questions = sum(int((~one.is_probe).sum()) for one in sets.values())
    return RerankerTraining(model, out, questions, validation)


def _examples(
    dataset: DataSet, folder: Path, settings: Settings, probes: int, progress: Callback | None, tell: Tell
) -> Examples:
    """Return the examples of a data set and of its cut sentences; those of an earlier call if it finished."""
    judged = [question for question in dataset.questions if question.gold]
    if len(judged) < 2:
        raise InputError(
            f"{dataset.folder} has {len(judged)} questions with judged passages; training needs more",
            hint="judgements are read from qrels.tsv (docs/evaluation.md)",
        )
    if not dataset.sources:
        raise DocumentError(f"{dataset.folder} has no passages", hint="a data set has a corpus.jsonl")
    path = folder / f"examples-{_fingerprint(dataset, settings, probes)}.npz"
    known = Examples.load(path)
    if known is not None:
        tell(f"{dataset.folder.name}: finished before")
        return known
    tell(f"{dataset.folder.name}: {len(judged):,} questions")
    with Index.build(list(dataset.sources), folder / "index", settings=settings, progress=progress) as index:
        found = walk_candidates(index, [question.text for question in judged])
        parts = [make_examples(found, [question.gold for question in judged], is_probe=False)]
        cut = make_probes(index.inspect.stored(), count=probes)
    direct = cut.of("direct")
    if direct:
        tell(f"{dataset.folder.name}: {len(direct):,} sentences cut out")
        # In the same folder, so that vectors of unchanged texts are reused.
        with Index.build(
            list(cut.documents), folder / "index", settings=settings, progress=progress
        ) as index:
            found = walk_candidates(index, [probe.text for probe in direct])
        parts.append(make_examples(found, [{probe.target.document} for probe in direct], is_probe=True))
    examples = join(parts)
    examples.save(path)
    shutil.rmtree(folder / "index", ignore_errors=True)
    return examples


def _fingerprint(dataset: DataSet, settings: Settings, probes: int) -> str:
    corpus = dataset.corpus
    size = 0 if corpus is None else corpus.stat().st_size
    given = {name: str(value) for name, value in sorted(settings.given.items())}
    parts = [_RECIPE, dataset.fingerprint, size, probes, given, FEATURES]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
