"""Answers of one model from the contexts of every configuration, for EM and F1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ketrag_fast.errors import ConfigError
from ketrag_fast.index import Index
from ketrag_fast.lab.eval.question import Question
from ketrag_fast.lab.eval.run import Answerer
from ketrag_fast.models.extractive import is_extractive
from ketrag_fast.models.llms.registry import is_model

if TYPE_CHECKING:
    from ketrag_fast.lab.comparison.running import Answers


def answers_by(spec: str) -> Answers:
    """Return a function that answers with the model of a spec, without citation marks.

    Raises ConfigError if the spec names no model; a failure of the model costs one configuration.
    """
    if not is_extractive(spec) and not is_model(spec):
        raise ConfigError(f"--answer-with {spec}: not a language model")

    def answers(index: Index) -> Answerer:
        def answer(question: Question, mode: str, budget: int, context: str) -> str | None:
            if not context:
                return ""  # an empty context: a wrong answer, not a missing one
            return index.ask(question.text, llm=spec, mode=mode, budget=budget).plain

        return answer

    return answers
