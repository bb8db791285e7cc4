"""Answers to score by EM and F1: from a JSONL file of `{"_id", "answer"}`, or written by a model.

A line may name the `mode` and `budget` of the context that its answer is based on; it then applies to that
row only, and takes precedence over a line without them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.errors import BackendError, ConfigError, DocumentError
from ketrag_fast.eval.datasets import DataSet, Question
from ketrag_fast.eval.reading import identity, objects
from ketrag_fast.records import dataclass

if TYPE_CHECKING:
    from ketrag_fast.index import Index

_Key = tuple[str, str | None, int | None]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers by question; `warnings` lists unused lines of the file."""

    by_key: Mapping[_Key, str]
    warnings: tuple[str, ...]

    def __call__(self, question: Question, mode: str, budget: int, context: str) -> str | None:
        """Return the answer for this row, the most specific line first; None if the file has none."""
        for key in ((question.id, mode, budget), (question.id, mode, None), (question.id, None, budget)):
            if key in self.by_key:
                return self.by_key[key]
        return self.by_key.get((question.id, None, None))


def read_answers(path: Path, dataset: DataSet) -> Answers:
    """Read the file. Raises DocumentError naming an invalid or repeated line."""
    asked = {question.id for question in dataset.questions}
    found: dict[_Key, str] = {}
    places: dict[_Key, str] = {}
    unknown = 0
    for entry, where in objects(path):
        name = identity(entry, where, "_id", "query_id", "id")
        answer, mode, budget = entry.get("answer"), entry.get("mode"), entry.get("budget")
        if not isinstance(answer, str):
            raise DocumentError(
                f"{where}: answer must be a string", hint="an empty string counts as a wrong answer"
            )
        if not (mode is None or isinstance(mode, str)):
            raise DocumentError(f"{where}: mode must be a string")
        if not (budget is None or (isinstance(budget, int) and not isinstance(budget, bool))):
            raise DocumentError(f"{where}: budget must be a whole number")
        key = (name, mode, budget)
        if key in found:
            raise DocumentError(f"{where}: question {name!r} was answered before, at {places[key]}")
        found[key], places[key] = answer, where
        unknown += name not in asked
    warnings = []
    if unknown:
        warnings.append(f"{path}: {unknown} answers belong to no question of the data set")
    unanswered = len(asked - {name for name, _, _ in found})
    if unanswered:
        warnings.append(f"{path}: {unanswered} questions have no answer: EM and F1 leave them out")
    return Answers(found, tuple(warnings))


class ModelAnswers:
    """Asks `llm` (else the model of the index, see `Index.ask`) once for each question, mode and budget.

    A question that the model fails on has no answer and is counted in `failed`; a model that fails on the
    first question raises. `model` names the model that answered.
    """

    def __init__(self, index: Index, llm: str | None = None, *, top: int | None = None) -> None:
        self._index = index
        self._llm = llm
        self._top = top
        self.failed = 0
        self.model: Mapping[str, Any] | None = None

    def __call__(self, question: Question, mode: str, budget: int, context: str) -> str | None:
        """Return the answer without citation marks, also for an empty context.

        Raises ConfigError if no model is named, and what calling the model raises.
        """
        try:
            answer = self._index.ask(
                question.text,
                llm=self._llm,
                mode=mode,
                budget=budget,
                top=self._top,
                kind=question.kind,
                options=question.options,
            )
        except BackendError:
            if self.model is None:
                raise
            self.failed += 1
            return None
        if answer.reason == "no_model":
            raise ConfigError(
                "--answers needs a language model",
                hint="name one (--llm llama-cpp:PATH.gguf or openai:MODEL@URL, --answer-llm native:FOLDER), "
                "or a file: --answers FILE",
            )
        if answer.model is not None:
            self.model = answer.model
        return answer.plain

    def about(self) -> dict[str, Any]:
        """Return the record for a run: the model, the hash of its prompt, and the number of failures."""
        from ketrag_fast.query.answer.prompt import INSTRUCTIONS

        told = hashlib.sha256(INSTRUCTIONS.encode("utf-8")).hexdigest()
        return {**(self.model or {}), "prompt": told, "failed": self.failed}
