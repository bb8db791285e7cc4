"""Answers that a language model writes from each context, for scoring."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ketrag_fast.errors import BackendError, ConfigError
from ketrag_fast.lab.eval.question import Question

if TYPE_CHECKING:
    from ketrag_fast.index import Index


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
