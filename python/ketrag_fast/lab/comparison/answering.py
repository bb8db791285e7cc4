"""Answers of one language model from the contexts of every configuration, so that EM and F1 compare these."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ketrag_fast.errors import ConfigError
from ketrag_fast.index import Index
from ketrag_fast.lab.eval.question import Question
from ketrag_fast.lab.eval.run import Answerer
from ketrag_fast.models.llms.registry import is_model

if TYPE_CHECKING:
    from ketrag_fast.lab.comparison.running import Answers

_CITED: Final = re.compile(r"(?<!\s)\s*+\[\d+\]")


def answers_by(spec: str) -> Answers:
    """The model of that spec answers. Its citations are left out of what EM and F1 judge.

    Raises ConfigError for a spec that names no model; what the model cannot do costs one configuration.
    """
    if not is_model(spec):
        raise ConfigError(f"--answer-with {spec}: it names no language model that can be asked")

    def answers(index: Index) -> Answerer:
        def answer(question: Question, mode: str, budget: int, context: str) -> str | None:
            if not context:
                return ""  # nothing was found, so nothing can be said: a wrong answer, not an absent one
            said = index.ask(question.text, llm=spec, mode=mode, budget=budget)
            return _CITED.sub("", said.text).strip()

        return answer

    return answers
