"""A saved evaluation run: questions, results, and everything that they depend on.

A folder with `run.json` (machine, versions, seed, settings, fingerprints of models and data, rows),
`questions.jsonl`, `results.jsonl` (a line for each mode, budget and question) and `trec/`, for trec_eval and
similar tools: a run line is `question Q0 document rank score tag`, a judgement `question 0 document 1`, and
white space and `%` in ids are percent-encoded (`%20`).
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from ketrag_fast.base.processor import processor_name
from ketrag_fast.errors import DocumentError, InputError, ReadOnly
from ketrag_fast.eval.datasets import DataSet, Question
from ketrag_fast.eval.metrics import RESAMPLES, SEED
from ketrag_fast.eval.reading import identity, objects, texts
from ketrag_fast.eval.results import Result
from ketrag_fast.eval.run import Collected
from ketrag_fast.records import dataclass

SCHEMA = "ketrag/eval-run/1"
_ABOUT, _QUESTIONS, _RESULTS = "run.json", "questions.jsonl", "results.jsonl"


@dataclass(frozen=True, slots=True)
class Run:
    """A loaded run. `about` is the content of `run.json`."""

    folder: Path
    about: Mapping[str, Any]
    questions: tuple[Question, ...]
    results: tuple[Result, ...]

    @property
    def pairs(self) -> list[tuple[str, int]]:
        """The modes and budgets of the run, in order."""
        return list(dict.fromkeys((result.mode, result.budget) for result in self.results))


def save(folder: Path, about: Mapping[str, Any], dataset: DataSet, found: Collected) -> None:
    """Save the run; an older run in the folder is replaced, other files stay.

    `about` is added to the rows in `run.json` (see `provenance.describe`). Raises ReadOnly if the folder is
    not writable.
    """
    rows = [row.as_dict() for row in found.rows()]
    whole = {"schema": SCHEMA, **about, "skipped": dict(found.skipped), "rows": rows}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _ABOUT).unlink(missing_ok=True)  # written last, so that an incomplete run is not a run
        _write(folder / _QUESTIONS, (_line(_question_json(q)) for q in dataset.questions))
        _write(folder / _RESULTS, (_line(result.to_json()) for result in found.results))
        _write_runs(folder / "trec", dataset, found)
        text = json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False)
        (folder / _ABOUT).write_text(text + "\n", encoding="utf-8", newline="\n")
    except OSError as error:
        raise ReadOnly(f"{folder}: cannot be written: {error.strerror or error}") from error


def load(folder: Path) -> Run:
    """Return the run in `folder`. Raises DocumentError if it is missing or invalid."""
    path = folder / _ABOUT
    if not path.is_file():
        raise DocumentError(
            f"{folder} is not a saved evaluation run", hint="create one: ketrag eval DATASET --save FOLDER"
        )
    try:
        about = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DocumentError(f"{path}: {error}") from error
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise DocumentError(
            f"{path} does not have the schema {SCHEMA}", hint="repeat the run with this version"
        )
    questions = tuple(_question(entry, where) for entry, where in objects(folder / _QUESTIONS))
    results = []
    for entry, where in objects(folder / _RESULTS):
        try:
            results.append(Result.from_json(entry))
        except InputError as error:
            raise DocumentError(f"{where}: {error.message}") from error
    return Run(folder, about, questions, tuple(results))


def _question_json(question: Question) -> dict[str, Any]:
    metadata = {"answers": list(question.answers), "gold": sorted(question.gold)}
    return {"_id": question.id, "text": question.text, "metadata": metadata}


def _question(entry: Mapping[str, Any], where: str) -> Question:
    metadata = entry.get("metadata")
    text = entry.get("text")
    if not isinstance(metadata, dict) or not isinstance(text, str):
        raise DocumentError(f"{where}: not a question of a run")
    answers = tuple(texts(metadata.get("answers"), "answers", where))
    gold = frozenset(texts(metadata.get("gold"), "gold", where))
    return Question(identity(entry, where), text, answers, gold, {})


def _line(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False, allow_nan=False)


def _write_runs(folder: Path, dataset: DataSet, found: Collected) -> None:
    """Write `MODE-BUDGET.trec` for each mode and budget that ran, and `qrels.trec` if any are judged."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.trec"):
        old.unlink()
    for mode in found.modes:
        for budget in found.budgets if mode not in found.skipped else ():
            lines = run_lines(found.of(mode, budget), f"ketrag-{mode}-{budget}")
            _write(folder / f"{mode}-{budget}.trec", lines)
    judged = [
        f"{_name(q.id)} 0 {_name(document)} {q.grades.get(document, 1.0):g}"
        for q in dataset.questions
        for document in sorted(q.gold)
    ]
    if judged:
        _write(folder / "qrels.trec", judged)


def run_lines(results: Iterable[Result], tag: str) -> Iterable[str]:
    """Yield the documents of each context by rank. The score is 1 / rank: sections have different scores."""
    for result in results:
        for rank, document in enumerate(result.found, 1):
            yield f"{_name(result.question)} Q0 {_name(document)} {rank} {1 / rank:.6f} {tag}"


def _name(identity: str) -> str:
    if any(character.isspace() for character in identity) or "%" in identity:
        return "".join(quote(c) if c.isspace() or c == "%" else c for c in identity)
    return identity


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


_PACKAGES = ("sentence-transformers", "transformers", "torch", "llama-cpp-python", "hnswlib")


def describe(dataset: DataSet, index: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the record of a run. `index` is (a part of) the result of `Index.stats()`; `more` is added."""
    kept = ("digest", "generation", "settings", "backends", "models", "prompts")
    return {
        "machine": machine(),
        "versions": versions(),
        "seed": SEED,
        "resamples": RESAMPLES,
        "dataset": {
            "name": dataset.folder.name,
            "questions": len(dataset.questions),
            "fingerprint": dataset.fingerprint,
        },
        "index": {name: index[name] for name in kept if name in index},
        **more,
    }


def machine() -> dict[str, Any]:
    """Return processor, cores and system, without names of persons or places."""
    system = f"{platform.system()} {platform.machine()}"
    return {"processor": processor_name(), "cores": os.cpu_count(), "system": system}


def versions() -> dict[str, str]:
    """Return the versions of Python, NumPy, this package and the installed model packages."""
    found = {"python": platform.python_version(), "numpy": np.__version__}
    for package in ("ketrag-fast", *_PACKAGES):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
